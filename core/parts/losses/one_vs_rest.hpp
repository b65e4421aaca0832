// A squared hinge for each class against the rest: sum_j max(0, margin - s_j f_j)^2 / 2, s_j = 1 for y and -1 else.
#pragma once
#include "parts/losses/base.hpp"

namespace gossamer {

struct OneVsRest : LossBase {
    static constexpr Target target = Target::label;
    static constexpr double widening = 1, largest_bend = 1;
    int classes = 0;
    double margin = 1;

    static OneVsRest make(const Numbers& numbers) {
        OneVsRest loss;
        loss.classes = static_cast<int>(numbers.at(0));
        loss.margin = numbers.at(1);
        return loss;
    }

    // s_j times what class j is short of its margin
    double missing(double f, bool own) const { return own ? std::max(0.0, margin - f) : -std::max(0.0, margin + f); }

    void slope(const double* f, int n, int y, double* out) const {
        for (int j = 0; j < n; ++j) out[j] = -missing(f[j], j == y);
    }
    void curvature(const double* f, int n, int y, const double* v, double* out) const {
        for (int j = 0; j < n; ++j) out[j] = missing(f[j], j == y) != 0 ? v[j] : 0.0;
    }
    void implicit(const double* f, double keep, int n, int y, double kappa, double weight, double* out) const {
        std::fill_n(out, n, 0.0);
        if (!apart(f, keep, n, y)) return;
        for (int j = 0; j < n; ++j) out[j] = missing(keep * f[j], j == y) / (1 / weight + kappa);
    }
};
GOSSAMER_LOSS(OneVsRest, "one_vs_rest")

}  // namespace gossamer
