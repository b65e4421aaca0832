// ALMA_2, Gentile 2001 (ALGORITHMS 5).
#pragma once
#include "parts/rules/base.hpp"

namespace gossamer {

struct ALMA : RuleBase {
    double alpha = 0.9, B = 1, C = 1;

    static ALMA make(const Numbers& n) {
        ALMA rule = make_base<ALMA>(n);
        rule.alpha = n.at(3);
        rule.B = n.at(4);
        rule.C = n.at(5);
        return rule;
    }
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
GOSSAMER_RULE(ALMA, "alma")

}  // namespace gossamer
