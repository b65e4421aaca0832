// Clock time: what is left of a model after the time that has passed since the row before (clock.py).
#pragma once
#include <cmath>
#include <cstddef>

namespace gossamer {

// After 128 half-lives nothing is left: the model begins anew.
constexpr double most_half_lives = 128;

// 2^-x for x >= 0, by operations that every machine rounds alike: a model is the same on all of them.
inline double halve(double x) {
    if (!(x < most_half_lives)) return 0.0;
    const double whole = std::nearbyint(x), r = (whole - x) * 0.6931471805599453;  // |r| <= ln(2) / 2
    double sum = 1.0;
    for (int k = 14; k > 0; --k) sum = std::fma(sum, r / k, 1.0);  // the series of exp(r)
    return std::ldexp(sum, -static_cast<int>(whole));
}

// out[t] = 2^-((times[t] - times[t - 1]) / half_life), 1 for the first row of all (last is NaN) and for equal times; one row
// after the other, so that any split into calls gives the same bits.
inline void fade_rows(const double* times, std::size_t rows, double last, double half_life, double* out) {
    for (std::size_t t = 0; t < rows; ++t) {
        out[t] = std::isnan(last) ? 1.0 : halve((times[t] - last) / half_life);
        last = times[t];
    }
}

}  // namespace gossamer
