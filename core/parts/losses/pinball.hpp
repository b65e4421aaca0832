// the pinball loss of a quantile, which is the level.
#pragma once
#include "parts/losses/base.hpp"

namespace gossamer {

struct Pinball : LossBase {
    static constexpr Target target = Target::real;
    static Pinball make(const Numbers& n) { return make_base<Pinball>(n); }
    double slope(double z, double y) const {
        const double r = y - z;
        return r > 0 ? -level : r < 0 ? 1.0 - level : 0.0;
    }
    double implicit(double p, double y, double kappa, double weight) const {
        return clip((y - p) / kappa, -weight * (1.0 - level), weight * level);
    }
};
GOSSAMER_LOSS(Pinball, "pinball")

}  // namespace gossamer
