// Kernel-Adatron, Friess et al. 1998, with revisits (ALGORITHMS 9).
#pragma once
#include "parts/rules/base.hpp"

namespace gossamer {

struct Adatron : RuleBase {
    static constexpr bool needs_ids = true;
    double C = INFINITY;

    static Adatron make(const Numbers& n) {
        Adatron rule = make_base<Adatron>(n);
        rule.C = n.at(3);
        return rule;
    }
    template <class L> Step step(const L& loss, const Example& e, double* move, double*) const {
        std::fill_n(move, e.n, 0.0);
        if (e.kappa > 0 && e.weight > 0) {
            const double now = e.y * e.own;
            move[0] = e.y * (clip(now + e.rate * (1 - e.y * e.f[0]), 0.0, C * e.weight) - now);
        }
        return {1.0, e.offset, loss.level};
    }
};
GOSSAMER_RULE(Adatron, "adatron")

}  // namespace gossamer
