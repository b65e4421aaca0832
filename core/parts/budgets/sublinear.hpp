// NORMA's Theorem 6 (ALGORITHMS 1.8): round t sees the last min(t, max(start, ceil(t^power))) rounds.
#pragma once
#include "parts/budgets/base.hpp"

namespace gossamer {

struct Sublinear : BudgetBase {
    static constexpr bool expires = true;
    double start, power;

    static Sublinear make(const Numbers& n) { return {{}, n.at(0), n.at(1)}; }
    template <class N> void admit(N& newcomer) { newcomer.place(newcomer.expansion.size()); }
    int expired(const Expansion& e, std::int64_t time) const {
        const double t = static_cast<double>(time);
        return born_before(e, t - std::min(t, std::max(start, std::ceil(std::pow(t, power)))));
    }
};
GOSSAMER_BUDGET(Sublinear, "sublinear")

}  // namespace gossamer
