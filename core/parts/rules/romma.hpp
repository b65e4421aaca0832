// ROMMA and aggressive ROMMA, Li and Long 2002 (ALGORITHMS 8).
#pragma once
#include "parts/rules/base.hpp"

namespace gossamer {

struct ROMMA : RuleBase {
    static constexpr double least_margin = 1e-4;  // of sqrt(k(x, x))
    bool aggressive = false;

    static ROMMA make(const Numbers& n) {
        ROMMA rule = make_base<ROMMA>(n);
        rule.aggressive = n.at(3) != 0;
        return rule;
    }
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
            // f with a margin below least_margin is scaled down to that margin
            const double norm2 =
                step.keep * step.keep * e.norm2 + 2 * step.keep * move[0] * f + move[0] * move[0] * e.kappa;
            if (norm2 * e.kappa * (least_margin * least_margin) > 1) {
                const double size = 1 / (least_margin * std::sqrt(norm2 * e.kappa));
                step.keep *= size;
                move[0] *= size;
            }
        }
        return step;
    }
};
GOSSAMER_RULE(ROMMA, "romma")

}  // namespace gossamer
