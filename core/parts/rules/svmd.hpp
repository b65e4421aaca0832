// SVMD, Vishwanathan, Schraudolph, Smola 2006: a step size that descends too (ALGORITHMS 4).
#pragma once
#include "parts/rules/base.hpp"

namespace gossamer {

struct SVMD : RuleBase {
    static constexpr bool needs_trace = true;
    double reg = 0, meta = 0, memory = 1;
    static constexpr double largest_growth = 1e6;  // of the rate, over the first one
    double C = 0;                                  // > 0: implicit steps with this weight of the loss

    static SVMD make(const Numbers& n) {
        SVMD rule = make_base<SVMD>(n);
        rule.reg = n.at(3);
        rule.meta = n.at(4);
        rule.memory = n.at(5);
        rule.C = n.at(6);
        return rule;
    }
    bool trace_matters() const { return meta > 0; }
    template <class L> Step step(const L& loss, const Example& e, double* move, double* trace_move) const {
        const double size = (C > 0 ? C : 1.0) * e.weight;
        double pull = 0;  // <slope, v>
        if constexpr (many<L>) {
            loss.slope(e.f, e.n, e.aim(), move);
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
            lost ? (void)std::fill_n(trace_move, e.n, 0.0) : loss.curvature(e.f, e.n, e.aim(), e.v, trace_move);
            for (int c = 0; c < e.n; ++c) trace_move[c] = -shortened * (move[c] + memory * trace_move[c]);
            if (C > 0 && e.kappa > 0 && e.weight > 0)
                loss.implicit(e.f, step.keep, e.n, e.aim(), e.kappa, rate * size * step.keep, move);
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
GOSSAMER_RULE(SVMD, "svmd")

}  // namespace gossamer
