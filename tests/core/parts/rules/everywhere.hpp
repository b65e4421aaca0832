// Only in the tests: a gradient step along k(x, .) - pull sum_i weights[i] k(x_i, x) k(x_i, .), whose weights are its state.
#pragma once
#include "parts/rules/base.hpp"

namespace gossamer {

struct Everywhere : RuleBase {
    static constexpr bool moves_all = true, follows = true;
    struct State {
        Values weights;  // one for each slot: the sum of all steps until its point came, halved for each removal since
        double total = 0;  // of all steps
        std::int64_t count = 0;
        template <class S, class F> static void each(S& s, F&& f) {
            f("total", s.total);
            f("weights", s.weights);
            f("count", s.count);
        }
    } state;
    double pull = 0, reg = 0;

    static Everywhere make(const Numbers& n) {
        Everywhere rule = make_base<Everywhere>(n);
        rule.pull = n.at(3);
        rule.reg = n.at(4);
        return rule;
    }
    template <class L> Step step(const L& loss, const Example& e, double* move, double*) const {
        if constexpr (many<L>)
            loss.slope(e.f, e.n, e.aim(), move);
        else
            move[0] = loss.slope(e.score(), e.y);
        for (int c = 0; c < e.n; ++c) move[c] *= -e.rate * e.weight;
        for (int i = 0; i < e.along.points; ++i)
            e.along.direction[i] = -pull * std::tanh(state.weights[i]) * e.along.row[i] / (1 + e.kappa);
        return {1.0 - e.rate * reg, e.offset, loss.level};
    }
    void took(const Example& e, const double* move) {
        for (int c = 0; c < e.n; ++c) state.total += std::abs(move[c]);
        ++state.count;
    }
    void placed(int slot) {
        if (slot == static_cast<int>(state.weights.size())) state.weights.push_back(0.0);
        state.weights[slot] = state.total;
    }
    void removed(int slot) {
        state.weights[slot] = state.weights.back();
        state.weights.pop_back();
        for (double& w : state.weights) w *= 0.5;
    }
    void forgotten() { state.weights.clear(); }
};
GOSSAMER_RULE(Everywhere, "everywhere")

}  // namespace gossamer
