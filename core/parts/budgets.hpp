// The twins of budgets.py: which slot a newcomer gets.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <variant>

#include "engine/expansion.hpp"
#include "parts/losses.hpp"
#include "simd/tiles.hpp"

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

// RBP: one of the points, drawn by its budget's seed and the round the youngest came
struct Random {
    double limit;
    std::uint64_t seed;
    int choose(const Expansion& e, double, double) const {
        const int m = e.size();
        if (m < limit) return m;
        const auto youngest = static_cast<std::uint64_t>(*std::max_element(e.births.begin(), e.births.end()));
        std::uint64_t x = seed * 0x9E3779B97F4A7C15u + youngest;  // splitmix64
        x += 0x9E3779B97F4A7C15u;
        x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
        x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
        return static_cast<int>((x ^ (x >> 31)) % static_cast<std::uint64_t>(m));
    }
    int expired(const Expansion&, std::int64_t) const { return refuse; }
};

// The oldest, after everything has shrunk just enough for the theorem (ALGORITHMS 3.5). THE LOOP does it.
struct Forgetron {
    double limit;
    int expired(const Expansion&, std::int64_t) const { return refuse; }

    // the factor of all coefficients if a term of weight sigma goes, and what that spends; value: y_r f(x_r)
    static double factor(double sigma, double kappa, double value, double left, double* spent) {
        const double a = sigma * sigma * kappa - 2 * sigma * value, b = 2 * sigma;
        const double phi = a + b <= left ? 1.0 : 2 * left / (b + std::sqrt(std::max(0.0, b * b + 4 * a * left)));
        *spent += (a * phi + b) * phi;
        return phi;
    }
};

// Gaussian kernels: two points become the best single one between them. THE LOOP does it.
struct Merge {
    double limit;
    int expired(const Expansion&, std::int64_t) const { return refuse; }

    // The place h in (0, 1) of z = h m + (1 - h) n: where ||a_m k^((1-h)^2) + a_n k^(h^2)|| is largest, by bisection of its
    // slope; a2, b2, ab: the squared weights and their product. Writes both factors, returns the squared norm.
    static double blend(double a2, double b2, double ab, double log_k, int halvings, double* h, double* u, double* w) {
        double low = 0, high = 1;
        for (int i = 0; i < halvings; ++i) {
            *h = 0.5 * (low + high);
            *u = std::exp(log_k * (1 - *h) * (1 - *h));
            *w = std::exp(log_k * *h * *h);
            const double slope = a2 * *u * *u * (1 - *h) - b2 * *w * *w * *h + ab * *u * *w * (1 - 2 * *h);
            (slope > 0 ? low : high) = *h;
        }
        return a2 * *u * *u + b2 * *w * *w + 2 * ab * *u * *w;
    }
};

// The point whose part outside the span of the others weighs least, and that part alone is lost. THE LOOP does it.
struct Project {
    double limit, tolerance;
    bool at_once;         // also before it is full
    double start, share;  // of a budget that grows from `start` while what it loses is more than this share of the norm

    double room(const Expansion& e) const { return start > 0 ? std::max(e.room, start) : limit; }

    // after a loss: so many losses as there are points make a window, at whose end there may be more room
    void grow(Expansion& e, double lost) const {
        if (start == 0) return;
        e.window_lost += lost;
        if (++e.window < room(e)) return;
        if (e.window_lost > share * std::sqrt(e.norm2)) e.room = std::min(limit, 2 * room(e));
        e.window = 0;
        e.window_lost = 0;
    }
    int expired(const Expansion&, std::int64_t) const { return refuse; }

    // the slot that is missed least once the newcomer (move, of squared size `square`) is there, or refuse for the newcomer
    int choose(const Expansion& e, double square) const {
        static thread_local Values lost;
        lost.resize(e.size());
        for (int i = 0; i < e.size(); ++i) lost[i] = e.weight2(i) / e.inverse.with_newcomer(i);
        const double least = tiles<double>().least(lost.data(), nullptr, e.size());
        if (square * e.inverse.residual / (e.scale * e.scale) < least) return refuse;
        int slot = refuse;
        for (int i = 0; i < e.size(); ++i)
            if (lost[i] == least && (slot == refuse || e.births[i] < e.births[slot])) slot = i;
        return slot;
    }
};

// budgets that do more than name a slot
template <class B>
constexpr bool reshapes = std::is_same_v<B, Project> || std::is_same_v<B, Merge> || std::is_same_v<B, Forgetron>;

using Budget = std::variant<Unlimited, Oldest, Sublinear, Smallest, Random, Forgetron, Merge, Project>;

inline Budget make_budget(const std::string& name, const Numbers& numbers) {
    if (name == "unlimited") return Unlimited{};
    if (name == "oldest") return Oldest{numbers.at(0), numbers.at(1)};
    if (name == "sublinear") return Sublinear{numbers.at(0), numbers.at(1)};
    if (name == "smallest") return Smallest{numbers.at(0), numbers.at(1) != 0};
    if (name == "random") return Random{numbers.at(0), static_cast<std::uint64_t>(numbers.at(1))};
    if (name == "forgetron") return Forgetron{numbers.at(0)};
    if (name == "merge") return Merge{numbers.at(0)};
    if (name == "project")
        return Project{numbers.at(0), numbers.at(1), numbers.at(2) != 0, numbers.at(3), numbers.at(4)};
    throw std::invalid_argument("the core has no budget '" + name + "'");
}

}  // namespace gossamer
