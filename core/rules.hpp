// The twins of rules.py: what one example does to the model.
#pragma once
#include <cmath>
#include <string>
#include <variant>

#include "losses.hpp"

namespace gossamer {

constexpr double tiny_kappa = 1e-300;  // k(x, x) up to here counts as zero

struct Example {
    double value;   // f(x), without the offset
    double offset;
    double y;
    double kappa;   // k(x, x)
    double rate;
    double weight;
};

struct Step {
    double keep;         // factor of all coefficients
    double coefficient;  // of the newcomer
    double offset;
    double level;
};

struct Rated {
    double rate = 1;
    bool inverse_sqrt = false;
    bool fit_intercept = false;
    double rate_at(long long t) const {
        return inverse_sqrt ? rate * (1.0 / std::sqrt(static_cast<double>(t))) : rate;
    }
};

// NORMA, Kivinen et al. (9)-(18)
struct Gradient : Rated {
    double reg = 0;
    template <class L> Step step(const L& loss, const Example& e) const {
        const double z = e.value + e.offset;
        const double move = -(e.rate * e.weight) * loss.slope(z, e.y);
        return {1.0 - e.rate * reg, e.kappa > 0 ? move : 0.0, fit_intercept ? e.offset + move : e.offset,
                loss.adapt(z, e.y, e.rate * e.weight)};
    }
};

// ILK, Cheng et al. (6)-(16); with an offset ALGORITHMS 2.5, with nu 2.3
struct Implicit : Rated {
    double C = 1;
    double reg = 0;
    bool joint = false;
    template <class L> Step step(const L& loss, const Example& e) const {
        const double grow = 1.0 + e.rate * reg;
        const double keep = 1.0 / grow;
        const double p = keep * e.value + e.offset;
        const double reach = fit_intercept ? e.kappa + grow : e.kappa;
        double move = 0, level = loss.level;
        if (e.weight > 0) {
            const double level_rate = e.rate * C * e.weight;
            if (joint) {
                const auto both = loss.joint(p, e.y, std::max(reach, tiny_kappa), level_rate * keep, level_rate);
                move = both.first;
                level = both.second;
            } else {
                level = loss.adapt(e.value + e.offset, e.y, level_rate);
                if (reach > 0) move = loss.implicit(p, e.y, reach, level_rate * keep);
            }
        }
        return {keep, e.kappa > 0 ? move : 0.0, fit_intercept ? e.offset + grow * move : e.offset, level};
    }
};

using Rule = std::variant<Gradient, Implicit>;

inline Rule make_rule(const std::string& name, const Numbers& numbers) {
    const auto rated = [&](auto rule) {
        rule.rate = numbers.at(0);
        rule.inverse_sqrt = numbers.at(1) != 0;
        rule.fit_intercept = numbers.at(2) != 0;
        return rule;
    };
    if (name == "gradient") {
        Gradient rule = rated(Gradient{});
        rule.reg = numbers.at(3);
        return rule;
    }
    if (name == "implicit") {
        Implicit rule = rated(Implicit{});
        rule.C = numbers.at(3);
        rule.reg = numbers.at(4);
        rule.joint = numbers.at(5) != 0;
        return rule;
    }
    throw std::invalid_argument("the core has no rule '" + name + "'");
}

}  // namespace gossamer
