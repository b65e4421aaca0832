// ILK, Cheng et al. (6)-(16); with an offset ALGORITHMS 2.5, with nu 2.3.
#pragma once
#include "parts/rules/base.hpp"

namespace gossamer {

struct Implicit : RuleBase {
    double C = 1;
    double reg = 0;
    bool joint = false;

    static Implicit make(const Numbers& n) {
        Implicit rule = make_base<Implicit>(n);
        rule.C = n.at(3);
        rule.reg = n.at(4);
        rule.joint = n.at(5) != 0;
        return rule;
    }
    template <class L> Step step(const L& loss, const Example& e, double* move, double*) const {
        const double grow = 1.0 + e.rate * reg;
        const double keep = 1.0 / grow;
        const double size = e.rate * C * e.weight;
        Step step{keep, e.offset, loss.level};
        std::fill_n(move, e.n, 0.0);
        if (!(e.weight > 0 && size > 0)) return step;  // a tiny weight may have become 0
        if constexpr (many<L>) {
            if (e.kappa > 0) loss.implicit(e.f, keep, e.n, e.aim(), e.kappa, size * keep, move);
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
GOSSAMER_RULE(Implicit, "implicit")

}  // namespace gossamer
