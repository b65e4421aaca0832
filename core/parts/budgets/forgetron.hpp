// The oldest point leaves, after all coefficients have shrunk just enough for the theorem (ALGORITHMS 3.5).
#pragma once
#include "parts/budgets/base.hpp"

namespace gossamer {

struct Forgetron : BudgetBase {
    static constexpr bool needs_kernel = true;
    struct State {
        double spent = 0;  // of the bound
        template <class S, class F> static void each(S& s, F&& f) { f("spent", s.spent); }
        // in a bank's bytes, which had room for a count of Project's in version 1
        template <class S, class F> static void each_packed(S& s, F&& f) {
            std::int64_t unused = 0;
            f("spent", s.spent);
            f("", unused);
        }
    } state;
    double limit;

    static Forgetron make(const Numbers& n) { return {{}, {}, n.at(0)}; }
    template <class N> void admit(N& newcomer) {
        Expansion& e = newcomer.expansion;
        if (e.size() < limit) return newcomer.place(e.size());
        const int slot = oldest_slot(e);
        const double a = e.scale * e.raw[0][slot], sign = a < 0 ? -1.0 : 1.0;
        const double value = e.at_slot(slot) + newcomer.move()[0] * newcomer.kernel(slot);
        const double left = 15.0 / 32.0 * static_cast<double>(newcomer.updates()) - state.spent;
        newcomer.shrink(factor(std::abs(a), e.kappas[slot], sign * value, left));
        newcomer.place(slot);
    }

    // the factor of all coefficients if a term of weight sigma goes, which spends some of the bound; value: y_r f(x_r)
    double factor(double sigma, double kappa, double value, double left) {
        const double a = sigma * sigma * kappa - 2 * sigma * value, b = 2 * sigma;
        const double phi = a + b <= left ? 1.0 : 2 * left / (b + std::sqrt(std::max(0.0, b * b + 4 * a * left)));
        state.spent += (a * phi + b) * phi;
        return phi;
    }
};
GOSSAMER_BUDGET(Forgetron, "forgetron")

}  // namespace gossamer
