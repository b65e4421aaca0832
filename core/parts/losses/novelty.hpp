// max(0, margin - z), without targets; the level is the margin.
#pragma once
#include "parts/losses/base.hpp"

namespace gossamer {

struct Novelty : LossBase {
    static constexpr Target target = Target::none;
    static Novelty make(const Numbers& n) { return make_base<Novelty>(n); }
    double slope(double z, double) const { return z < level ? -1.0 : 0.0; }
    double implicit(double p, double, double kappa, double weight) const {
        return clip((level - p) / kappa, 0.0, weight);
    }
    double adapt(double z, double, double rate) const {
        return std::isnan(nu) ? level : level + rate * (nu - (z < level ? 1.0 : 0.0));
    }
    std::pair<double, double> joint(double p, double, double kappa, double weight, double rate) const {
        const double beta = clip((level + rate * nu - p) / (weight * kappa + rate), 0.0, 1.0);
        return {weight * beta, level + rate * (nu - beta)};
    }
};
GOSSAMER_LOSS(Novelty, "novelty")

}  // namespace gossamer
