// Every newcomer is kept.
#pragma once
#include "parts/budgets/base.hpp"

namespace gossamer {

struct Unlimited : BudgetBase {
    static Unlimited make(const Numbers&) { return {}; }
    template <class N> void admit(N& newcomer) { newcomer.place(newcomer.expansion.size()); }
};
GOSSAMER_BUDGET(Unlimited, "unlimited")

}  // namespace gossamer
