// The twins of budgets.py: which slot a newcomer gets.
#pragma once
#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <variant>

#include "expansion.hpp"
#include "losses.hpp"
#include "tiles.hpp"

namespace gossamer {

constexpr int refuse = -1;

inline int oldest_slot(const Expansion& e) {
    if (e.size() >= Ranking::worthwhile)
        return e.ranking.first(e.size(), [&](int i, int j) { return e.births[i] < e.births[j]; });
    int slot = 0;
    std::int64_t first = e.births[0];
    for (int i = 1; i < e.size(); ++i) {  // a branch that is rarely taken beats std::min_element's chain of moves
        if (e.births[i] >= first) continue;
        first = e.births[i];
        slot = i;
    }
    return slot;
}

// the oldest slot if it was born before `first`
inline int born_before(const Expansion& e, double first) {
    if (e.size() == 0) return refuse;
    const int slot = oldest_slot(e);
    return static_cast<double>(e.births[slot]) < first ? slot : refuse;
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
        return std::isinf(age) ? refuse : born_before(e, static_cast<double>(time) - age);
    }
};

// NORMA's Theorem 6 (ALGORITHMS 1.8): round t sees the last min(t, max(start, ceil(t^power))) rounds
struct Sublinear {
    double start, power;
    int choose(const Expansion& e, double, double) const { return e.size(); }
    int expired(const Expansion& e, std::int64_t time) const {
        const double t = static_cast<double>(time);
        return born_before(e, t - std::min(t, std::max(start, std::ceil(std::pow(t, power)))));
    }
};

// SILK: the least |coefficient| sqrt(k(x, x)), or |coefficient|, the newcomer included
struct Smallest {
    double limit;
    bool by_norm;
    // size: the Euclidean norm of the newcomer's coefficients
    int choose(const Expansion& e, double size, double kappa) const {
        const int m = e.size();
        if (m < limit) return m;
        const double newcomer = size / e.scale * (by_norm ? std::sqrt(kappa) : 1.0);
        const double* roots = by_norm ? e.roots.data() : nullptr;
        const auto weight = [&](int i) { return by_norm ? e.sizes[i] * roots[i] : e.sizes[i]; };
        if (m >= Ranking::worthwhile) {
            const int slot = e.ranking.first(m, [&](int i, int j) {
                const double a = weight(i), b = weight(j);
                return a < b || (a == b && e.births[i] < e.births[j]);
            });
            return newcomer < weight(slot) ? refuse : slot;
        }
        const double least = tiles<double>().least(e.sizes.data(), roots, m);
        if (newcomer < least) return refuse;
        int slot = refuse;
        for (int i = 0; i < m; ++i)
            if (weight(i) == least && (slot == refuse || e.births[i] < e.births[slot])) slot = i;
        return slot;
    }
    int expired(const Expansion&, std::int64_t) const { return refuse; }
};

using Budget = std::variant<Unlimited, Oldest, Sublinear, Smallest>;

inline Budget make_budget(const std::string& name, const Numbers& numbers) {
    if (name == "unlimited") return Unlimited{};
    if (name == "oldest") return Oldest{numbers.at(0), numbers.at(1)};
    if (name == "sublinear") return Sublinear{numbers.at(0), numbers.at(1)};
    if (name == "smallest") return Smallest{numbers.at(0), numbers.at(1) != 0};
    throw std::invalid_argument("the core has no budget '" + name + "'");
}

}  // namespace gossamer
