// The contract of a rule: its input, the scores of an example and a few numbers about the model; its output, the newcomer's
// coefficients, one per output, and how everything else scales; and the base of all rules.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "engine/expansion.hpp"
#include "parts/losses/base.hpp"
#include "parts/part.hpp"

namespace gossamer {

class Metric;  // engine/metric.hpp

constexpr double tiny_kappa = 1e-300;  // k(x, x) up to here counts as zero

// For a rule that moves all points: the newcomer's kernel values, and the direction over the points to write. The step then
// goes along k(x, .) + sum_i direction[i] k(x_i, .), for each output by its move.
struct Along {
    const double* row = nullptr;
    double* direction = nullptr;
    int points = 0;
    bool rests = false;           // the rule has said that there is no step
    mutable bool solved = false;  // the rule has written the direction
};

// What a row has to be: a class, or a target for each output. A loss takes the one that it knows.
struct Aim {
    double y;
    const double* targets;
    operator int() const { return static_cast<int>(y); }
    operator const double*() const { return targets; }
};

struct Example {
    const double* f;  // the scores, without the offset, one per output
    const double* v;  // SVMD's trace at x, or null
    int n;            // outputs
    double offset, y, kappa, rate, weight;
    double norm2;             // ||f||^2, where the rule needs it
    double own;               // the coefficient this example already has, if it came before (Adatron)
    std::int64_t updates;     // so far
    double inner, last_rate;  // of the trace: <f, v> and the step size before
    const Along& along;
    const double* targets;  // y, or one for each output
    double score() const { return f[0] + offset; }
    Aim aim() const { return {y, targets}; }
};

struct Step {
    double keep;  // factor of all coefficients
    double offset;
    double level;
    Trace trace{};
};

// The size of a gradient step that goes no further than to the minimum of the loss; where a loss of real targets is
// linear, only steps that move the score by 2 or more are shortened. reach: how far the score moves per unit of
// coefficient. For one class, then for several, whose slope is given and whose curvature is that along it.
template <class L> double stable(const L& loss, double z, double y, double slope, double size, double reach) {
    if constexpr (L::free_reach > 0)
        if (size * reach < L::free_reach) return size;  // no need to compute the curvature
    const double pull = loss.curvature(z, y) * reach;
    if (size * pull > 1) size = 1 / pull;
    if constexpr (L::target == Target::real)
        if (size * reach >= 2 && slope != 0)
            size = std::min(size, std::abs(loss.implicit(z, y, reach, INFINITY) / slope));
    return size;
}
template <class L> double stable(const L& loss, const Example& e, const double* slope, double size, double* bend) {
    if (size * e.kappa * L::largest_bend < 0.95) return size;  // no need to compute the curvature
    loss.curvature(e.f, e.n, e.aim(), slope, bend);
    double along = 0, square = 0;
    for (int c = 0; c < e.n; ++c) {
        along += slope[c] * bend[c];
        square += slope[c] * slope[c];
    }
    const double pull = square > 0 ? along / square * e.kappa : 0.0;
    return size * pull <= 1 ? size : 1 / pull;
}

// What every rule has; a rule hides what it does differently. step(loss, example, move, trace_move) writes the newcomer's
// coefficients, one per output, and says how everything else changes; it changes nothing itself, for it may be asked twice.
struct RuleBase {
    static constexpr bool needs_trace = false, needs_ids = false;
    static constexpr bool moves_all =
        false;  // step() writes example.along.direction too; needs the points' kernel values
    static constexpr bool keeps_norm = true;  // ||f|| is kept up to date; otherwise it is computed when asked for
    static constexpr bool follows = false;    // its state is told of steps and slots, by the functions from took() on
    NoState state;
    double rate = 1;
    bool inverse_sqrt = false;
    bool fit_intercept = false;

    template <class R> static R make_base(const Numbers& n) {
        R rule;
        rule.rate = n.at(0);
        rule.inverse_sqrt = n.at(1) != 0;
        rule.fit_intercept = n.at(2) != 0;
        return rule;
    }
    template <class L> bool rests(const L&, const Example&) const { return false; }  // no step, whatever the direction
    double variance(const Along&, double kappa) const { return kappa; }              // s^2 at a row, with a metric
    const Metric* metric() const { return nullptr; }  // A = metric_factor() metric(), if there is one
    double metric_factor() const { return 1; }
    void took(const Example&, const double*) {}  // a step with these moves, before the budget
    void placed(int) {}                          // a newcomer in this slot
    void absorbed(const double*, int) {}         // the newcomer's step was taken along these shares of the points
    void handed_over(int, const double*) {}  // a slot's function goes to the others: their shares, less 1 at the slot
    void removed(int) {}                     // the last slot has taken the place of a slot
    void renewed(const double*, int, double) {}  // points have left since the step: the kernel values now, and k(x, x)
    void forgotten() {}                          // all points have left
    void ended() {}                              // a round in which a step was asked for; any, if ages()
    bool ages() const { return false; }
    double fade(double factor) { return factor; }  // time has passed: the factor of f
    double drop(int, Values&) {
        return 0;
    }  // the shares of the others in a slot that is dropped, and the pivot; 0: none
    // Two observations become one at a point between theirs, in the slot of the first, for a rule with a metric: its kernel
    // values with all points, k(z, z), and the coefficients, which change
    void merged(int, int, const Values&, double, Rows2&) {}
    bool trace_matters() const { return false; }  // whether a step of the trace alone counts as one
    double rate_at(std::int64_t t) const {
        return inverse_sqrt ? rate * (1.0 / std::sqrt(static_cast<double>(t))) : rate;
    }
};

}  // namespace gossamer
