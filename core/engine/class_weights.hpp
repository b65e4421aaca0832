// Classes weighed so that each counts alike, by the rows of each so far. The twin of `balance` (estimators/class_weights.py).
#pragma once
#include <algorithm>
#include <cstddef>

namespace gossamer {

// codes: (rows,) of 0, 1, ..., classes - 1; weights, fades: (rows,) or null; counts: (classes,), which go on; out: (rows,)
inline void balance(const double* codes, const double* weights, const double* fades, std::size_t rows, double* counts,
                    std::size_t classes, double* out) {
    for (std::size_t t = 0; t < rows; ++t) {
        if (fades != nullptr && fades[t] != 1)
            for (std::size_t c = 0; c < classes; ++c) counts[c] *= fades[t];
        const std::size_t own = static_cast<std::size_t>(codes[t]);
        const double weight = weights == nullptr ? 1.0 : weights[t];
        counts[own] += weight;
        double total = 0, known = 0;
        for (std::size_t c = 0; c < classes; ++c) {
            total += counts[c];
            known += counts[c] > 0 ? 1 : 0;
        }
        out[t] = counts[own] > 0 ? weight * std::min(total / (known * counts[own]), 1 + counts[own]) : 0.0;
    }
}

}  // namespace gossamer
