// SILK: the least |coefficient| sqrt(k(x, x)), or |coefficient|, leaves, the newcomer included.
#pragma once
#include "parts/budgets/base.hpp"
#include "simd/tiles.hpp"

namespace gossamer {

struct Smallest : BudgetBase {
    double limit;
    bool by_norm;

    static Smallest make(const Numbers& n) { return {{}, n.at(0), n.at(1) != 0}; }
    template <class N> void admit(N& newcomer) {
        newcomer.place(choose(newcomer.expansion, newcomer.size(), newcomer.kappa));
    }

    // size: the Euclidean norm of the newcomer's coefficients
    int choose(const Expansion& e, double size, double kappa) const {
        const int m = e.size();
        if (m < limit) return m;
        const double newcomer = size / e.scale * (by_norm ? std::sqrt(kappa) : 1.0);
        const double* roots = by_norm ? e.roots.data() : nullptr;
        const auto weight = [&](int i) { return by_norm ? e.sizes[i] * roots[i] : e.sizes[i]; };
        if (m >= Ranking::worthwhile) {
            const int slot = e.ranking.first(m, [&](int i, int j) {
                const double a = weight(i), b = weight(j);
                return a < b || (a == b && e.births[i] < e.births[j]);
            });
            return newcomer < weight(slot) ? refuse : slot;
        }
        const double least = tiles<double>().least(e.sizes.data(), roots, m);
        if (newcomer < least) return refuse;
        int slot = refuse;
        for (int i = 0; i < m; ++i)
            if (weight(i) == least && (slot == refuse || e.births[i] < e.births[slot])) slot = i;
        return slot;
    }
};
GOSSAMER_BUDGET(Smallest, "smallest")

}  // namespace gossamer
