// (z - y)^2 / 2.
#pragma once
#include "parts/losses/base.hpp"

namespace gossamer {

struct Squared : LossBase {
    static constexpr Target target = Target::real;
    static Squared make(const Numbers& n) { return make_base<Squared>(n); }
    double slope(double z, double y) const { return z - y; }
    double curvature(double, double) const { return 1; }
    double implicit(double p, double y, double kappa, double weight) const { return (y - p) / (1.0 / weight + kappa); }
};
GOSSAMER_LOSS(Squared, "squared")

}  // namespace gossamer
