// max(0, |y - z| - epsilon); the level is epsilon.
#pragma once
#include "parts/losses/base.hpp"

namespace gossamer {

struct EpsilonInsensitive : LossBase {
    static constexpr Target target = Target::real;
    static EpsilonInsensitive make(const Numbers& n) { return make_base<EpsilonInsensitive>(n); }
    double slope(double z, double y) const { return std::abs(y - z) > level ? (z > y ? 1.0 : -1.0) : 0.0; }
    double implicit(double p, double y, double kappa, double weight) const {
        const double r = y - p;
        return std::copysign(std::min(weight, std::max(0.0, std::abs(r) - level) / kappa), r);
    }
    double adapt(double z, double y, double rate) const {
        return std::isnan(nu) ? level : std::max(0.0, level + rate * ((std::abs(y - z) > level ? 1.0 : 0.0) - nu));
    }
    std::pair<double, double> joint(double p, double y, double kappa, double weight, double rate) const {
        const double r = y - p;
        double beta = clip((std::abs(r) - level + rate * nu) / (weight * kappa + rate), 0.0, 1.0);
        double next = level + rate * (beta - nu);
        if (next < 0.0) {
            next = 0.0;
            beta = clip(std::abs(r) / (weight * kappa), 0.0, 1.0);
        }
        return {std::copysign(weight * beta, r), next};
    }
};
GOSSAMER_LOSS(EpsilonInsensitive, "epsilon_insensitive")

}  // namespace gossamer
