// RBP: one of the points leaves, drawn by the budget's seed and the round in which the youngest came.
#pragma once
#include "parts/budgets/base.hpp"

namespace gossamer {

struct Random : BudgetBase {
    double limit;
    std::uint64_t seed;

    static Random make(const Numbers& n) { return {{}, n.at(0), static_cast<std::uint64_t>(n.at(1))}; }
    template <class N> void admit(N& newcomer) { newcomer.place(choose(newcomer.expansion)); }

    int choose(const Expansion& e) const {
        const int m = e.size();
        if (m < limit) return m;
        const auto youngest = static_cast<std::uint64_t>(*std::max_element(e.births.begin(), e.births.end()));
        std::uint64_t x = seed * 0x9E3779B97F4A7C15u + youngest;  // splitmix64
        x += 0x9E3779B97F4A7C15u;
        x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
        x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
        return static_cast<int>((x ^ (x >> 31)) % static_cast<std::uint64_t>(m));
    }
};
GOSSAMER_BUDGET(Random, "random")

}  // namespace gossamer
