// Mean and variance of every feature over a stream, and each row scaled by those of the rows up to and with itself.
// West's weighted form of Welford's recurrences; a weight of 1 for the newest row, and all others fade by `keep`.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

namespace gossamer {

// x, z: (rows, features), z may be null; mean, squares: (features,); fades: (rows,) or null, what the time since the row
// before leaves. Returns the sum of weights after the last row.
template <class T, bool centre, bool divide>
double scale_rows(const T* x, T* z, std::int64_t rows, int features, double* __restrict mean,
                  double* __restrict squares, double weight, double share, const double* fades) {
    for (std::int64_t t = 0; t < rows; ++t, x += features) {
        const double keep = fades == nullptr ? share : share * fades[t];
        weight = keep * weight + 1.0;
        const double gain = 1.0 / weight, spread = 1.0 - gain;
        for (int j = 0; j < features; ++j) {
            const double away = static_cast<double>(x[j]) - mean[j];
            mean[j] += away * gain;
            squares[j] = keep * squares[j] + away * away * spread;
        }
        if (z == nullptr) continue;
        for (int j = 0; j < features; ++j) {
            double value = static_cast<double>(x[j]);
            if (centre) value -= mean[j];
            if (divide) {  // what never changed is 0: divided by infinity, so that the loop has no branch
                const double deviation = std::sqrt(squares[j] * gain);
                value /= deviation > 0.0 ? deviation : std::numeric_limits<double>::infinity();
            }
            z[j] = static_cast<T>(value);
        }
        z += features;
    }
    return weight;
}

template <class T>
double scale_rows(const T* x, T* z, std::int64_t rows, int features, double* mean, double* squares, double weight,
                  double keep, const double* fades, bool centre, bool divide) {
    auto* run = centre ? (divide ? scale_rows<T, true, true> : scale_rows<T, true, false>)
                       : (divide ? scale_rows<T, false, true> : scale_rows<T, false, false>);
    return run(x, z, rows, features, mean, squares, weight, keep, fades);
}

}  // namespace gossamer
