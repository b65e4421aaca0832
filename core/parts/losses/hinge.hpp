// max(0, margin - y z); the level is the margin.
#pragma once
#include "parts/losses/base.hpp"

namespace gossamer {

struct Hinge : LossBase {
    static constexpr Target target = Target::binary;
    static Hinge make(const Numbers& n) { return make_base<Hinge>(n); }
    double slope(double z, double y) const { return y * z <= level ? -y : 0.0; }
    double implicit(double p, double y, double kappa, double weight) const {
        return y * clip((level - y * p) / kappa, 0.0, weight);
    }
    double adapt(double z, double y, double rate) const {
        return std::isnan(nu) ? level : level + rate * (nu - (y * z <= level ? 1.0 : 0.0));
    }
};
GOSSAMER_LOSS(Hinge, "hinge")

}  // namespace gossamer
