// Only in the tests: a budget with an array of its own. Every slot has a mark; the smallest leaves, every third newcomer is
// refused, and every fifth makes all coefficients smaller.
#pragma once
#include "parts/budgets/base.hpp"

namespace gossamer {

struct Marked : BudgetBase {
    static constexpr bool follows = true;
    struct State {
        Values marks;
        std::int64_t turns = 0;
        template <class S, class F> static void each(S& s, F&& f) {
            f("marks", s.marks);
            f("turns", s.turns);
        }
    } state;
    double limit;

    static Marked make(const Numbers& n) { return {{}, {}, n.at(0)}; }
    template <class N> void admit(N& newcomer) {
        ++state.turns;
        const int size = newcomer.expansion.size();
        if (state.turns % 3 == 0 && size > 0) return newcomer.refuse();
        if (state.turns % 5 == 0) newcomer.shrink(0.9);
        if (size < limit) state.marks.push_back(0.0);
        const int slot =
            size < limit
                ? size
                : static_cast<int>(std::min_element(state.marks.begin(), state.marks.end()) - state.marks.begin());
        state.marks[slot] = newcomer.size() + std::sin(static_cast<double>(state.turns));
        newcomer.place(slot);
    }
    void removed(int slot) {
        state.marks[slot] = state.marks.back();
        state.marks.pop_back();
    }
    void forgotten() { state.marks.clear(); }
};
GOSSAMER_BUDGET(Marked, "marked")

}  // namespace gossamer
