// Gaussian kernels: the lightest point and the one that replaces it best become a single point between them.
#pragma once
#include "parts/budgets/base.hpp"
#include "parts/budgets/smallest.hpp"

namespace gossamer {

struct Merge : BudgetBase {
    static constexpr bool needs_kernel = true;
    struct State : NoState {
        // nothing; but a bank's bytes have room for two numbers of other budgets since version 1
        template <class S, class F> static void each_packed(S&, F&& f) {
            double unused = 0;
            std::int64_t none = 0;
            f("", unused);
            f("", none);
        }
    } state;
    double limit;

    static Merge make(const Numbers& n) { return {{}, {}, n.at(0)}; }
    template <class N> void admit(N& newcomer) {
        Expansion& e = newcomer.expansion;
        const int m = e.size();
        if (m < limit) return newcomer.place(m);
        const int slot = Smallest{{}, limit, true}.choose(e, INFINITY, newcomer.kappa);
        const double a2 = e.weight2(slot);
        int other = refuse;
        double least = INFINITY;
        Blend best;
        const auto lost = [&](int i, int halvings) {
            const double k = e.between(slot, i), b2 = e.weight2(i), ab = e.product(slot, i);
            return a2 + b2 + 2 * ab * k - search(a2, b2, ab, std::log(k), halvings, best);
        };
        for (int i = 0; i < m; ++i) {
            if (i == slot || e.product(slot, i) <= 0 || e.between(slot, i) < 1e-12) continue;
            const double loss = lost(i, 12);
            if (loss >= least) continue;
            least = loss;
            other = i;
        }
        if (other == refuse) return newcomer.place(slot);
        best.lost2 = lost(other, 50);
        if (!e.keeps_norm) {  // a rule with a metric: the newcomer is learned first
            newcomer.place(m);
            return newcomer.merge(slot, other, best);
        }
        newcomer.blend(slot, other, best);
        newcomer.place(other);  // which weighs nothing now
    }

    // The place h in (0, 1) of z = h m + (1 - h) n: where ||a_m k^((1-h)^2) + a_n k^(h^2)|| is largest, by bisection of its
    // slope; a2, b2, ab: the squared weights and their product. Writes h and both factors, returns the squared norm.
    static double search(double a2, double b2, double ab, double log_k, int halvings, Blend& at) {
        double low = 0, high = 1, h = 0, u = 0, w = 0;
        for (int i = 0; i < halvings; ++i) {
            h = 0.5 * (low + high);
            u = std::exp(log_k * (1 - h) * (1 - h));
            w = std::exp(log_k * h * h);
            const double slope = a2 * u * u * (1 - h) - b2 * w * w * h + ab * u * w * (1 - 2 * h);
            (slope > 0 ? low : high) = h;
        }
        at.h = h;
        at.u = u;
        at.w = w;
        return a2 * u * u + b2 * w * w + 2 * ab * u * w;
    }
};
GOSSAMER_BUDGET(Merge, "merge")

}  // namespace gossamer
