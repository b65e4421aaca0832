// The twin of Additive (kernels/additive.py): k(x, s) = sum over coordinates of a kernel of one number each.
#pragma once
#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

#include "parts/part.hpp"
#include "trees/onedim.hpp"

namespace gossamer {

// One number made of a row, and the terms of its kernel.
struct Coordinate {
    enum class Made : int { plain, product, difference } made = Made::plain;
    int a = 0, b = 0;
    std::vector<Term> terms;

    // stride: between the features of the row
    template <class T> T key(const T* x, std::ptrdiff_t stride = 1) const {
        const T first = x[a * stride];
        if (made == Made::plain) return first;
        return made == Made::product ? first * x[b * stride] : first - x[b * stride];
    }
    double kernel(double p, double q) const {
        double sum = 0;
        for (const Term& term : terms) sum += value(term, p, q);
        return sum;
    }
    // ramps begin at 0
    bool inside(double key) const {
        return std::isfinite(key) && (key >= 0 || std::none_of(terms.begin(), terms.end(), [](const Term& term) {
                                          return term.kind == Term::Kind::ramp;
                                      }));
    }
};

// For each coordinate: how it is made, a, b, its number of terms; and for each of these: kind, order, weight, theta,
// then for a decay its order + 1 coefficients.
inline std::vector<Coordinate> read_coordinates(const Numbers& numbers, int features) {
    std::size_t at = 0;
    const auto next = [&] { return numbers.at(at++); };
    const auto index = [&](int limit) {
        const double number = next();
        if (!(number >= 0 && number < limit)) throw std::invalid_argument("a coordinate of the kernel is out of range");
        return static_cast<int>(number);
    };
    std::vector<Coordinate> coordinates;
    while (at < numbers.size()) {
        Coordinate c;
        c.made = static_cast<Coordinate::Made>(index(3));
        c.a = index(features);
        c.b = index(features);
        for (int left = index(1 << 20); left > 0; --left) {
            Term term;
            term.kind = static_cast<Term::Kind>(index(3));
            term.order = index(largest_order + 1);
            const double weight = next();
            term.theta = next();
            for (int j = 0; j <= term.order; ++j) {
                const int z = term.order;
                if (term.kind == Term::Kind::decay) term.coefs[j] = weight * next();
                if (term.kind == Term::Kind::ramp) term.coefs[j] = weight * binomials(z)[j] / (2 * z + 1 - j);
                if (term.kind == Term::Kind::power) term.coefs[0] = weight;
            }
            c.terms.push_back(term);
        }
        coordinates.push_back(std::move(c));
    }
    return coordinates;
}

}  // namespace gossamer
