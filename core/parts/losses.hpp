// The twins of losses.py: slope, implicit step and adaptive level of each loss. ALGORITHMS 1.1, 2.2, 2.4.
// Every loss has a `level` (its adaptive parameter, or the first one) so that the loop can set it.
#pragma once
#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace gossamer {

using Numbers = std::vector<double>;

inline double clip(double value, double low, double high) { return std::min(std::max(value, low), high); }
inline double expit(double z) { return z >= 0 ? 1 / (1 + std::exp(-z)) : std::exp(z) / (1 + std::exp(z)); }

enum class Target { binary, real, none, label };

struct Fixed {  // a loss whose level does not adapt
    double level = 0;
    double nu = NAN;
    double adapt(double, double, double) const { return level; }
    double curvature(double, double) const { return 0; }  // the second derivative, for SVMD
    std::pair<double, double> joint(double, double, double, double, double) const {
        throw std::logic_error("this loss has no joint step");
    }
};

struct Hinge : Fixed {
    static constexpr Target target = Target::binary;
    double slope(double z, double y) const { return y * z <= level ? -y : 0.0; }
    double implicit(double p, double y, double kappa, double weight) const {
        return y * clip((level - y * p) / kappa, 0.0, weight);
    }
    double adapt(double z, double y, double rate) const {
        return std::isnan(nu) ? level : level + rate * (nu - (y * z <= level ? 1.0 : 0.0));
    }
};

struct SquaredHinge : Fixed {
    static constexpr Target target = Target::binary;
    double slope(double z, double y) const { return -y * std::max(0.0, level - y * z); }
    double curvature(double z, double y) const { return y * z < level ? 1 : 0; }
    double implicit(double p, double y, double kappa, double weight) const {
        return y * std::max(0.0, level - y * p) / (1.0 / weight + kappa);
    }
};

struct Logistic : Fixed {
    static constexpr Target target = Target::binary;
    double slope(double z, double y) const { return -y * expit(-y * z); }
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

struct Squared : Fixed {
    static constexpr Target target = Target::real;
    double slope(double z, double y) const { return z - y; }
    double curvature(double, double) const { return 1; }
    double implicit(double p, double y, double kappa, double weight) const { return (y - p) / (1.0 / weight + kappa); }
};

struct EpsilonInsensitive : Fixed {
    static constexpr Target target = Target::real;
    double slope(double z, double y) const {
        return std::abs(y - z) > level ? (z > y ? 1.0 : -1.0) : 0.0;
    }
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

struct Huber : Fixed {
    static constexpr Target target = Target::real;
    static constexpr double smallest = 1e-6;
    bool standard = false;
    bool by_gradient = false;
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

struct Pinball : Fixed {  // the level is the quantile
    static constexpr Target target = Target::real;
    double slope(double z, double y) const {
        const double r = y - z;
        return r > 0 ? -level : r < 0 ? 1.0 - level : 0.0;
    }
    double implicit(double p, double y, double kappa, double weight) const {
        return clip((y - p) / kappa, -weight * (1.0 - level), weight * level);
    }
};

struct Novelty : Fixed {
    static constexpr Target target = Target::none;
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

}  // namespace gossamer
