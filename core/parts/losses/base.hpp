// What every loss has: slope, implicit step and adaptive level. ALGORITHMS 1.1, 2.2, 2.4.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <utility>

#include "parts/part.hpp"

namespace gossamer {

inline double clip(double value, double low, double high) { return std::min(std::max(value, low), high); }
inline double expit(double z) { return z >= 0 ? 1 / (1 + std::exp(-z)) : std::exp(z) / (1 + std::exp(z)); }

enum class Target { binary, real, none, label, several };

// What every loss has; a loss hides what it does differently. Its `level` is its adaptive parameter, or the first one.
struct LossBase {
    static constexpr double free_reach = 0;  // up to here a gradient step times its reach stays before the minimum
    double level = 0;
    double nu = NAN;                       // NaN: the level does not adapt
    const Numbers& label_kernel() const {  // outputs x outputs; empty: the identity
        static const Numbers none;
        return none;
    }

    template <class L> static L make_base(const Numbers& numbers) {
        L loss;
        loss.level = at(numbers, 0, 0.0);
        loss.nu = at(numbers, 1, NAN);
        return loss;
    }
    static double at(const Numbers& numbers, std::size_t i, double otherwise) {
        return i < numbers.size() ? numbers[i] : otherwise;
    }
    double adapt(double, double, double) const { return level; }
    double curvature(double, double) const { return 0; }  // the second derivative, for SVMD
    // what a second-order step counts as curvature (`stiffness`): of classes, at least; of several, as the mean over them
    static constexpr double least_stiffness = 1;
    double stiffness(const double*, int n, int, const double* move) const {
        return static_cast<double>(std::count_if(move, move + n, [](double m) { return m != 0; })) / n;
    }
    static constexpr double widening =
        0.5;  // a score of two classes, as a part of each class's score when a third comes
    static constexpr double largest_bend = 0.5;  // of several classes
    std::pair<double, double> joint(double, double, double, double, double) const {
        throw std::logic_error("this loss has no joint step");
    }
};

template <class L> constexpr bool several = L::target == Target::several;           // a loss of a score per target
template <class L> constexpr bool many = L::target == Target::label || several<L>;  // of a score per class or target

// The curvature that a second-order step counts at the score where it ends, with the slope there; for real targets, where the
// second derivative is 0, that of iteratively reweighted least squares.
template <class L> double stiffness(const L& loss, double z, double y, double slope) {
    const double bend = loss.curvature(z, y);
    if constexpr (L::target != Target::real) return std::max(bend, L::least_stiffness);
    if (bend > 0) return bend;
    return std::abs(slope) < std::abs(y - z) ? std::abs(slope / (y - z)) : 1.0;
}

// Whether the scores are comparable with that of y: a model that has diverged takes no step.
inline bool apart(const double* f, double keep, int n, int y) {
    for (int j = 0; j < n; ++j)
        if (!std::isfinite(keep * f[j] - keep * f[y])) return false;
    return true;
}

}  // namespace gossamer
