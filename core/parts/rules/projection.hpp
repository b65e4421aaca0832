// Herbster 2001, Figs. 2-4, and passive-aggressive: the step to zero loss, then slack, then the norm ball.
#pragma once
#include "parts/rules/base.hpp"

namespace gossamer {

struct Projection : RuleBase {
    enum class Slack { none, clip, square } slack = Slack::none;
    double C = INFINITY;       // PA-I, PA-II
    double radius = INFINITY;  // gamma

    static Projection make(const Numbers& n) {
        Projection rule = make_base<Projection>(n);
        rule.slack = static_cast<Slack>(static_cast<int>(n.at(3)));
        rule.C = n.at(4);
        rule.radius = n.at(5);
        return rule;
    }
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
GOSSAMER_RULE(Projection, "projection")

}  // namespace gossamer
