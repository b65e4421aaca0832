// NORMA, Kivinen et al. (9)-(18).
#pragma once
#include "parts/rules/base.hpp"

namespace gossamer {

struct Gradient : RuleBase {
    double reg = 0;
    bool shorten = true;  // steps go no further than to the minimum

    static Gradient make(const Numbers& n) {
        Gradient rule = make_base<Gradient>(n);
        rule.reg = n.at(3);
        rule.shorten = n.size() < 5 || n[4] != 0;
        return rule;
    }
    template <class L> Step step(const L& loss, const Example& e, double* move, double* spare) const {
        const double size = e.rate * e.weight;
        Step step{1.0 - e.rate * reg, e.offset, loss.level};
        if constexpr (several<L>) {  // as for each target alone
            loss.each(e.n, [&](const auto& l, int j) {
                const double slope = l.slope(e.f[j], e.targets[j]);
                move[j] = -(shorten ? stable(l, e.f[j], e.targets[j], slope, size, e.kappa) : size) * slope;
            });
        } else if constexpr (many<L>) {
            loss.slope(e.f, e.n, e.aim(), move);
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
GOSSAMER_RULE(Gradient, "gradient")

}  // namespace gossamer
