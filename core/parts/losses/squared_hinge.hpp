// max(0, margin - y z)^2 / 2.
#pragma once
#include "parts/losses/base.hpp"

namespace gossamer {

struct SquaredHinge : LossBase {
    static constexpr Target target = Target::binary;
    static SquaredHinge make(const Numbers& n) { return make_base<SquaredHinge>(n); }
    double slope(double z, double y) const { return -y * std::max(0.0, level - y * z); }
    double curvature(double z, double y) const { return y * z < level ? 1 : 0; }
    double implicit(double p, double y, double kappa, double weight) const {
        return y * std::max(0.0, level - y * p) / (1.0 / weight + kappa);
    }
};
GOSSAMER_LOSS(SquaredHinge, "squared_hinge")

}  // namespace gossamer
