// What every budget has, and what several need. A budget decides about a newcomer: a row whose step is not zero.
//
// admit(newcomer) calls what it wants of the newcomer (Loop::Newcomer): place(slot) with slot == size to append, place(slot)
// to replace, refuse(), shrink, change_all, blend, remove. A budget hides what it does differently from BudgetBase.
#pragma once
#include <cstdint>

#include "engine/expansion.hpp"
#include "parts/part.hpp"

namespace gossamer {

constexpr int refuse = -1;

struct BudgetBase {
    static constexpr bool needs_kernel = false;  // of the newcomer and between points; trees and features have none
    static constexpr bool reaches = false;  // reach(newcomer) is asked before the step, for the k(x, x) to step with
    static constexpr bool expires = false;  // expired(expansion, round) names slots that have no part in a round
    static constexpr bool follows = false;  // its state has a share in every slot: removed(slot), forgotten()
    NoState state;
    template <class N> double reach(N& newcomer) { return newcomer.kappa; }
    int expired(const Expansion&, std::int64_t) const { return refuse; }
    void removed(int) {}  // the last slot has taken the place of a slot
    void forgotten() {}   // all points have left
};

inline int oldest_slot(const Expansion& e) {
    if (e.size() >= Ranking::worthwhile)
        return e.ranking.first(e.size(), [&](int i, int j) { return e.births[i] < e.births[j]; });
    int slot = 0;
    std::int64_t first = e.births[0];
    for (int i = 1; i < e.size(); ++i) {  // a branch that is rarely taken beats std::min_element's chain of moves
        if (e.births[i] >= first) continue;
        first = e.births[i];
        slot = i;
    }
    return slot;
}

// the oldest slot if it was born before `first`
inline int born_before(const Expansion& e, double first) {
    if (e.size() == 0) return refuse;
    const int slot = oldest_slot(e);
    return static_cast<double>(e.births[slot]) < first ? slot : refuse;
}

}  // namespace gossamer
