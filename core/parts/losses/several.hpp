// Several targets at once: the sum of one loss over all of them. The base is one of the losses of a single score, without nu.
#pragma once
#include <variant>

#include "parts/losses/base.hpp"
#include "parts/losses/epsilon_insensitive.hpp"
#include "parts/losses/hinge.hpp"
#include "parts/losses/huber.hpp"
#include "parts/losses/logistic.hpp"
#include "parts/losses/pinball.hpp"
#include "parts/losses/squared.hpp"
#include "parts/losses/squared_hinge.hpp"

namespace gossamer {

struct Several : LossBase {
    using Base = std::variant<Squared, EpsilonInsensitive, Huber, Pinball, Hinge, SquaredHinge, Logistic>;
    static constexpr Target target = Target::several;
    static constexpr double largest_bend = INFINITY;  // every step looks at its curvature
    int classes = 1;                                  // targets
    Base base;

    // the number of targets, the place of the base in the variant, its own numbers
    static Several make(const Numbers& numbers) {
        Several loss;
        loss.classes = static_cast<int>(numbers.at(0));
        loss.base = make_base<0>(static_cast<std::size_t>(numbers.at(1)), Numbers(numbers.begin() + 2, numbers.end()));
        return loss;
    }
    bool signs() const {
        return std::visit([](const auto& l) { return l.target == Target::binary; }, base);
    }

    void slope(const double* f, int n, const double* y, double* out) const {
        each(n, [&](const auto& l, int j) { out[j] = l.slope(f[j], y[j]); });
    }
    void curvature(const double* f, int n, const double* y, const double* v, double* out) const {
        each(n, [&](const auto& l, int j) { out[j] = l.curvature(f[j], y[j]) * v[j]; });
    }
    void implicit(const double* f, double keep, int n, const double* y, double kappa, double weight,
                  double* out) const {
        each(n, [&](const auto& l, int j) { out[j] = l.implicit(keep * f[j], y[j], kappa, weight); });
    }
    // the mean over the targets, of those that ask for a step; z: where it ends
    double stiffness(const double* z, int n, const double* y, const double* move, double weight) const {
        double sum = 0;
        each(n, [&](const auto& l, int j) {
            if (move[j] != 0) sum += gossamer::stiffness(l, z[j], y[j], -move[j] / weight);
        });
        return sum / n;
    }

    // calls work(base, j) for every target
    template <class Work> void each(int n, Work&& work) const {
        std::visit(
            [&](const auto& l) {
                for (int j = 0; j < n; ++j) work(l, j);
            },
            base);
    }

private:
    template <std::size_t i> static Base make_base(std::size_t place, const Numbers& numbers) {
        if (place == i) return std::variant_alternative_t<i, Base>::make(numbers);
        if constexpr (i + 1 < std::variant_size_v<Base>) return make_base<i + 1>(place, numbers);
        throw std::invalid_argument("the core has no loss for several targets of this kind");
    }
};
GOSSAMER_LOSS(Several, "several")

}  // namespace gossamer
