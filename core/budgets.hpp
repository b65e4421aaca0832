// The twins of budgets.py: which slot a newcomer gets.
#pragma once
#include <algorithm>
#include <cmath>
#include <string>
#include <variant>

#include "expansion.hpp"
#include "losses.hpp"
#include "tiles.hpp"

namespace gossamer {

constexpr int refuse = -1;

inline int oldest_slot(const Expansion& e) {
    return static_cast<int>(std::min_element(e.births.begin(), e.births.end()) - e.births.begin());
}

struct Unlimited {
    int choose(const Expansion& e, double, double) const { return e.size(); }
    int expired(const Expansion&, std::int64_t) const { return refuse; }
};

// truncated NORMA: by count, by age in rounds, or both
struct Oldest {
    double limit, age;
    int choose(const Expansion& e, double, double) const { return e.size() < limit ? e.size() : oldest_slot(e); }
    int expired(const Expansion& e, std::int64_t time) const {
        if (std::isinf(age) || e.size() == 0) return refuse;
        const int slot = oldest_slot(e);
        return static_cast<double>(e.births[slot]) < static_cast<double>(time) - age ? slot : refuse;
    }
};

// SILK: the least |coefficient| sqrt(k(x, x)), or |coefficient|, the newcomer included
struct Smallest {
    double limit;
    bool by_norm;
    int choose(const Expansion& e, double coefficient, double kappa) const {
        const int m = e.size();
        if (m < limit) return m;
        const double* roots = by_norm ? e.roots.data() : nullptr;
        const double least = tiles<double>().least(e.raw.data(), roots, m);
        const double newcomer = std::abs(coefficient / e.scale) * (by_norm ? std::sqrt(kappa) : 1.0);
        if (newcomer < least) return refuse;
        int slot = refuse;
        for (int i = 0; i < m; ++i) {
            const double weight = by_norm ? std::abs(e.raw[i]) * roots[i] : std::abs(e.raw[i]);
            if (weight == least && (slot == refuse || e.births[i] < e.births[slot])) slot = i;
        }
        return slot;
    }
    int expired(const Expansion&, std::int64_t) const { return refuse; }
};

using Budget = std::variant<Unlimited, Oldest, Smallest>;

inline Budget make_budget(const std::string& name, const Numbers& numbers) {
    if (name == "unlimited") return Unlimited{};
    if (name == "oldest") return Oldest{numbers.at(0), numbers.at(1)};
    if (name == "smallest") return Smallest{numbers.at(0), numbers.at(1) != 0};
    throw std::invalid_argument("the core has no budget '" + name + "'");
}

}  // namespace gossamer
