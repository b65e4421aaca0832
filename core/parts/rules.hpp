// The twins of rules.py: what one example does to the model.
//
// A rule sees the scores of the example and a few numbers about the model; it writes the newcomer's coefficients, one
// per output, and says how everything else scales.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <type_traits>
#include <variant>

#include "engine/expansion.hpp"
#include "parts/multiclass.hpp"

namespace gossamer {

constexpr double tiny_kappa = 1e-300;  // k(x, x) up to here counts as zero

struct Example {
    const double* f;  // the scores, without the offset, one per output
    const double* v;  // SVMD's trace at x, or null
    int n;            // outputs
    double offset, y, kappa, rate, weight;
    double norm2;          // ||f||^2, where the rule needs it
    double own;            // the coefficient this example already has, if it came before (Adatron)
    std::int64_t updates;  // so far
    double inner, last_rate;  // of the trace: <f, v> and the step size before
    double score() const { return f[0] + offset; }
    int label() const { return static_cast<int>(y); }
};

struct Step {
    double keep;  // factor of all coefficients
    double offset;
    double level;
    Trace trace{};
};

template <class L> constexpr bool many = L::target == Target::label;

// The size of a gradient step that goes no further than to the minimum of the loss; where a loss of real targets is a
// straight line, only steps that move the score by 2 or more are held back. reach: how far the score moves per unit of coefficient. For one class, then for several, whose
// slope is given and whose curvature is that along it.
template <class L> double stable(const L& loss, double z, double y, double slope, double size, double reach) {
    if constexpr (std::is_same_v<L, Logistic>)
        if (size * reach < 3.9) return size;  // its curvature is at most 1/4: no need to make it
    const double pull = loss.curvature(z, y) * reach;
    if (size * pull > 1) size = 1 / pull;
    if constexpr (L::target == Target::real)
        if (size * reach >= 2 && slope != 0) size = std::min(size, std::abs(loss.implicit(z, y, reach, INFINITY) / slope));
    return size;
}
template <class L> double stable(const L& loss, const Example& e, const double* slope, double size, double* bend) {
    if (size * e.kappa < 1.9) return size;  // a curvature of several classes is at most 1/2
    loss.curvature(e.f, e.n, e.label(), slope, bend);
    double along = 0, square = 0;
    for (int c = 0; c < e.n; ++c) {
        along += slope[c] * bend[c];
        square += slope[c] * slope[c];
    }
    const double pull = square > 0 ? along / square * e.kappa : 0.0;
    return size * pull <= 1 ? size : 1 / pull;
}

// What every rule has; a rule hides what it changes.
struct RuleBase {
    static constexpr bool needs_trace = false, needs_ids = false;
    double rate = 1;
    bool inverse_sqrt = false;
    bool fit_intercept = false;
    double rate_at(std::int64_t t) const {
        return inverse_sqrt ? rate * (1.0 / std::sqrt(static_cast<double>(t))) : rate;
    }
};

// NORMA, Kivinen et al. (9)-(18)
struct Gradient : RuleBase {
    double reg = 0;
    bool shorten = true;  // steps go no further than to the minimum
    template <class L> Step step(const L& loss, const Example& e, double* move, double* spare) const {
        const double size = e.rate * e.weight;
        Step step{1.0 - e.rate * reg, e.offset, loss.level};
        if constexpr (many<L>) {
            loss.slope(e.f, e.n, e.label(), move);
            const double shortened = shorten ? stable(loss, e, move, size, spare) : size;
            for (int c = 0; c < e.n; ++c) move[c] *= -shortened;
        } else {
            const double reach = fit_intercept ? e.kappa + 1 : e.kappa;
            const double slope = loss.slope(e.score(), e.y);
            move[0] = -(shorten ? stable(loss, e.score(), e.y, slope, size, reach) : size) * slope;
            if (fit_intercept) step.offset += move[0];
            step.level = loss.adapt(e.score(), e.y, size);
        }
        return step;
    }
};

// ILK, Cheng et al. (6)-(16); with an offset ALGORITHMS 2.5, with nu 2.3
struct Implicit : RuleBase {
    double C = 1;
    double reg = 0;
    bool joint = false;
    template <class L> Step step(const L& loss, const Example& e, double* move, double*) const {
        const double grow = 1.0 + e.rate * reg;
        const double keep = 1.0 / grow;
        const double size = e.rate * C * e.weight;
        Step step{keep, e.offset, loss.level};
        std::fill_n(move, e.n, 0.0);
        if (!(e.weight > 0)) return step;
        if constexpr (many<L>) {
            if (e.kappa > 0) loss.implicit(e.f, keep, e.n, e.label(), e.kappa, size * keep, move);
        } else {
            const double p = keep * e.f[0] + e.offset;
            const double reach = fit_intercept ? e.kappa + grow : e.kappa;
            if (joint) {
                const auto both = loss.joint(p, e.y, std::max(reach, tiny_kappa), size * keep, size);
                move[0] = both.first;
                step.level = both.second;
            } else {
                step.level = loss.adapt(e.score(), e.y, size);
                if (reach > 0) move[0] = loss.implicit(p, e.y, reach, size * keep);
            }
            if (fit_intercept) step.offset += grow * move[0];
        }
        return step;
    }
};

// Herbster 2001, Figs. 2-4, and passive-aggressive: the step to zero loss, then slack, then the norm ball
struct Projection : RuleBase {
    enum class Slack { none, clip, square } slack = Slack::none;
    double C = INFINITY;       // PA-I, PA-II
    double radius = INFINITY;  // gamma
    template <class L> Step step(const L& loss, const Example& e, double* move, double*) const {
        Step step{1.0, e.offset, loss.level};
        std::fill_n(move, e.n, 0.0);
        if (!(e.kappa > 0) || !(e.weight > 0)) return step;
        if constexpr (!many<L>) {
            double a = loss.implicit(e.f[0], e.y, e.kappa, INFINITY);
            if (slack == Slack::clip) a = clip(a, -C * e.weight, C * e.weight);
            if (slack == Slack::square) a *= e.kappa / (e.kappa + 1 / (2 * C * e.weight));
            const double norm2 = e.norm2 + 2 * a * e.f[0] + a * a * e.kappa;
            if (a != 0 && norm2 > radius * radius) {
                step.keep = radius / std::sqrt(norm2);
                a *= step.keep;
            }
            move[0] = a;
        }
        return step;
    }
};

// ALMA_2, Gentile 2001 (ALGORITHMS 5)
struct ALMA : RuleBase {
    double alpha = 0.9, B = 1, C = 1;
    template <class L> Step step(const L& loss, const Example& e, double* move, double*) const {
        Step step{1.0, e.offset, loss.level};
        std::fill_n(move, e.n, 0.0);
        if (!(e.kappa > 0) || !(e.weight > 0)) return step;
        const double k = static_cast<double>(e.updates + 1), root = std::sqrt(e.kappa);
        const double margin = e.y * e.f[0] / root;
        if (margin > (1 - alpha) * B / std::sqrt(k)) return step;
        const double size = C / std::sqrt(k);
        const double norm2 = e.norm2 + 2 * size * margin + size * size;
        step.keep = norm2 > 1 ? 1 / std::sqrt(norm2) : 1.0;
        move[0] = step.keep * size * e.y / root;
        return step;
    }
};

// ROMMA and aggressive ROMMA, Li and Long 2002 (ALGORITHMS 8)
struct ROMMA : RuleBase {
    static constexpr double least_margin = 1e-4;  // of sqrt(k(x, x))
    bool aggressive = false;
    template <class L> Step step(const L& loss, const Example& e, double* move, double*) const {
        Step step{1.0, e.offset, loss.level};
        std::fill_n(move, e.n, 0.0);
        const double f = e.f[0], yf = e.y * f, kn = e.kappa * e.norm2;
        if (!(e.kappa > 0) || !(e.weight > 0) || (aggressive ? yf >= 1 : yf > 0)) return step;
        const double den = kn - f * f;
        if (e.norm2 == 0 || yf >= kn || !(den > 1e-12 * kn)) {  // only the newest constraint binds, or start anew
            step.keep = 0;
            move[0] = e.y / e.kappa;
        } else {
            step.keep = (kn - yf) / den;
            move[0] = e.norm2 / den * (e.y - f);
            // what claims a margin below all meaning is scaled down to one that has it
            const double norm2 = step.keep * step.keep * e.norm2 + 2 * step.keep * move[0] * f + move[0] * move[0] * e.kappa;
            if (norm2 * e.kappa * (least_margin * least_margin) > 1) {
                const double size = 1 / (least_margin * std::sqrt(norm2 * e.kappa));
                step.keep *= size;
                move[0] *= size;
            }
        }
        return step;
    }
};

// Kernel-Adatron, Friess et al. 1998, with revisits (ALGORITHMS 9)
struct Adatron : RuleBase {
    static constexpr bool needs_ids = true;
    double C = INFINITY;
    template <class L> Step step(const L& loss, const Example& e, double* move, double*) const {
        std::fill_n(move, e.n, 0.0);
        if (e.kappa > 0 && e.weight > 0) {
            const double now = e.y * e.own;
            move[0] = e.y * (clip(now + e.rate * (1 - e.y * e.f[0]), 0.0, C * e.weight) - now);
        }
        return {1.0, e.offset, loss.level};
    }
};

// SVMD, Vishwanathan, Schraudolph, Smola 2006: a step size that descends too (ALGORITHMS 4)
struct SVMD : RuleBase {
    static constexpr bool needs_trace = true;
    double reg = 0, meta = 0, memory = 1;
    static constexpr double largest_growth = 1e6;  // of the rate, over the first one
    double C = 0;  // > 0: implicit steps with this weight of the loss
    template <class L> Step step(const L& loss, const Example& e, double* move, double* trace_move) const {
        const double size = (C > 0 ? C : 1.0) * e.weight;
        double pull = 0;  // <slope, v>
        if constexpr (many<L>) {
            loss.slope(e.f, e.n, e.label(), move);
            for (int c = 0; c < e.n; ++c) pull += move[c] * e.v[c];
        } else {
            move[0] = loss.slope(e.score(), e.y);
            pull = move[0] * e.v[0];
        }
        const double growth = meta * (reg * e.inner + size * pull);
        const bool lost = !std::isfinite(growth);  // the trace has overflowed: start it again
        double last = e.last_rate;
        if (meta > 0 && !lost) {
            last *= std::max(0.5, 1 - growth);
            last = clip(last, 1e-12, std::min(largest_growth * this->rate, reg > 0 ? 0.999 / reg : INFINITY));
        }
        const double rate = last;
        Step step{C > 0 ? 1.0 / (1.0 + rate * reg) : 1.0 - rate * reg, e.offset, loss.level};
        step.trace = {lost ? 0.0 : memory * (1.0 - rate * reg), rate * reg, rate};
        if constexpr (many<L>) {
            const double shortened = stable(loss, e, move, rate * size, trace_move);
            lost ? (void)std::fill_n(trace_move, e.n, 0.0) : loss.curvature(e.f, e.n, e.label(), e.v, trace_move);
            for (int c = 0; c < e.n; ++c) trace_move[c] = -shortened * (move[c] + memory * trace_move[c]);
            if (C > 0 && e.kappa > 0 && e.weight > 0)
                loss.implicit(e.f, step.keep, e.n, e.label(), e.kappa, rate * size * step.keep, move);
            else
                for (int c = 0; c < e.n; ++c) move[c] *= -shortened;
        } else {
            const double shortened = stable(loss, e.score(), e.y, move[0], rate * size, e.kappa);
            const double bend = lost ? 0.0 : loss.curvature(e.score(), e.y) * e.v[0];
            trace_move[0] = -shortened * (move[0] + memory * bend);
            step.level = loss.adapt(e.score(), e.y, rate * size);
            if (C > 0 && e.kappa > 0 && e.weight > 0)
                move[0] = loss.implicit(step.keep * e.f[0], e.y, e.kappa, rate * size * step.keep);
            else
                move[0] *= -shortened;
        }
        return step;
    }
};

using Rule = std::variant<Gradient, Implicit, Projection, ALMA, ROMMA, Adatron, SVMD>;

inline Rule make_rule(const std::string& name, const Numbers& n) {
    const auto based = [&](auto rule) {
        rule.rate = n.at(0);
        rule.inverse_sqrt = n.at(1) != 0;
        rule.fit_intercept = n.at(2) != 0;
        return rule;
    };
    if (name == "gradient") {
        Gradient rule = based(Gradient{});
        rule.reg = n.at(3);
        rule.shorten = n.size() < 5 || n[4] != 0;
        return rule;
    }
    if (name == "implicit") {
        Implicit rule = based(Implicit{});
        rule.C = n.at(3);
        rule.reg = n.at(4);
        rule.joint = n.at(5) != 0;
        return rule;
    }
    if (name == "projection") {
        Projection rule = based(Projection{});
        rule.slack = static_cast<Projection::Slack>(static_cast<int>(n.at(3)));
        rule.C = n.at(4);
        rule.radius = n.at(5);
        return rule;
    }
    if (name == "alma") {
        ALMA rule = based(ALMA{});
        rule.alpha = n.at(3);
        rule.B = n.at(4);
        rule.C = n.at(5);
        return rule;
    }
    if (name == "romma") {
        ROMMA rule = based(ROMMA{});
        rule.aggressive = n.at(3) != 0;
        return rule;
    }
    if (name == "adatron") {
        Adatron rule = based(Adatron{});
        rule.C = n.at(3);
        return rule;
    }
    if (name == "svmd") {
        SVMD rule = based(SVMD{});
        rule.reg = n.at(3);
        rule.meta = n.at(4);
        rule.memory = n.at(5);
        rule.C = n.at(6);
        return rule;
    }
    throw std::invalid_argument("the core has no rule '" + name + "'");
}

}  // namespace gossamer
