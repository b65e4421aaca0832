// log(1 + exp(-y z)).
#pragma once
#include "parts/losses/base.hpp"

namespace gossamer {

struct Logistic : LossBase {
    static constexpr Target target = Target::binary;
    static constexpr double free_reach = 3.9;  // its curvature is at most 1/4
    static Logistic make(const Numbers& n) { return make_base<Logistic>(n); }
    double slope(double z, double y) const { return -y * expit(-y * z); }
    static constexpr double least_stiffness = 1e-4;
    double curvature(double z, double) const { return expit(z) * expit(-z); }
    double implicit(double p, double y, double kappa, double weight) const {
        const double m = y * p;
        double high = weight * expit(-m);
        double low = weight * expit(-(m + kappa * high));
        double a = std::min(high, std::max(low, -m / kappa));  // from the inflection Newton's steps never overshoot
        for (int i = 0; i < 100; ++i) {
            const double q = expit(-(m + a * kappa));
            const double residual = a - weight * q;
            (residual > 0 ? high : low) = a;
            const double newton = a - residual / (1.0 + weight * kappa * q * (1.0 - q));
            const double best = low < newton && newton < high ? newton : 0.5 * (low + high);
            if (std::abs(best - a) <= 1e-15 * best || best == low || best == high) return y * best;
            a = best;
        }
        return y * a;
    }
};
GOSSAMER_LOSS(Logistic, "logistic")

}  // namespace gossamer
