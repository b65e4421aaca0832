// Huber's loss; the level is delta.
#pragma once
#include "parts/losses/base.hpp"

namespace gossamer {

struct Huber : LossBase {
    static constexpr Target target = Target::real;
    static constexpr double smallest = 1e-6;
    bool standard = false;
    bool by_gradient = false;
    static Huber make(const Numbers& n) {
        Huber loss = make_base<Huber>(n);
        loss.standard = at(n, 2, 0.0) != 0;
        loss.by_gradient = at(n, 3, 0.0) != 0;
        return loss;
    }
    double factor() const { return standard ? level : 1.0; }
    double slope(double z, double y) const { return factor() * clip((z - y) / level, -1.0, 1.0); }
    double curvature(double z, double y) const { return std::abs(z - y) < level ? factor() / level : 0; }
    double implicit(double p, double y, double kappa, double weight) const {
        const double w = weight * factor();
        return clip((y - p) / (level / w + kappa), -w, w);
    }
    double adapt(double z, double y, double rate) const {
        if (std::isnan(nu)) return level;
        const double r = std::abs(y - z), ratio = r / level;
        const double change =
            by_gradient ? 0.5 * rate * (std::min(1.0, ratio * ratio) - nu) : rate * ((r > level ? 1.0 : 0.0) - nu);
        return std::max(smallest, level + change);
    }
};
GOSSAMER_LOSS(Huber, "huber")

}  // namespace gossamer
