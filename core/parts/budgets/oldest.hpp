// Truncated NORMA: the oldest point leaves, by count, by age in rounds, or both.
#pragma once
#include "parts/budgets/base.hpp"

namespace gossamer {

struct Oldest : BudgetBase {
    static constexpr bool expires = true;
    double limit, age;

    static Oldest make(const Numbers& n) { return {{}, n.at(0), n.at(1)}; }
    template <class N> void admit(N& newcomer) {
        const Expansion& e = newcomer.expansion;
        newcomer.place(e.size() < limit ? e.size() : oldest_slot(e));
    }
    int expired(const Expansion& e, std::int64_t time) const {
        return std::isinf(age) ? refuse : born_before(e, static_cast<double>(time) - age);
    }
};
GOSSAMER_BUDGET(Oldest, "oldest")

}  // namespace gossamer
