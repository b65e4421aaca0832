// Project with a size that grows from `start` while what is lost is more than a share of the norm.
#pragma once
#include "parts/budgets/project.hpp"

namespace gossamer {

struct Auto : Projecting<Auto> {
    struct State {
        double room = 0, window_lost = 0;
        std::int64_t window = 0;
        Inverse inverse;
        template <class S, class F> static void each(S& s, F&& f) {
            f("room", s.room);
            f("window", s.window);
            f("window_lost", s.window_lost);
            f("inverse", s.inverse);
            f("inverse_age", s.inverse.age);
        }
    } state;
    double start = 0, share = 0;

    double room() const { return std::max(state.room, start); }

    // a window is as many losses as there is room; at its end there may be more room
    void grow(const Expansion& e, double lost) {
        state.window_lost += lost;
        if (++state.window < room()) return;
        if (state.window_lost > share * std::sqrt(e.squared_norm())) state.room = std::min(limit, 2 * room());
        state.window = 0;
        state.window_lost = 0;
    }

    static Auto make(const Numbers& n) {
        Auto budget;
        budget.limit = n.at(0);
        budget.tolerance = n.at(1);
        budget.start = n.at(2);
        budget.share = n.at(3);
        return budget;
    }
};
GOSSAMER_BUDGET(Auto, "auto")

}  // namespace gossamer
