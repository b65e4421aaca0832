// The deviation of every feature over a stream of sparse rows, and each row divided by those of the rows up to and with
// itself: the recurrences of scaler.hpp without centring, in time that goes with the non-zeros.
//
// The numbers of a feature rest while it is 0. When it comes again, the rounds in which it was 0 are joined to its past at
// once (Chan, Golub, LeVeque 1979): of the weight W(t) after round t, they have what the past, faded, leaves.
#pragma once
#include <cmath>
#include <cstdint>

#include "engine/sparse_points.hpp"

namespace gossamer {

// W(t) = keep^t origin + 1 + keep + ... + keep^(t - 1)
struct FadingWeight {
    double keep, origin;
    double faded(std::int64_t rounds) const { return keep == 1 ? 1.0 : std::pow(keep, static_cast<double>(rounds)); }
    double after(std::int64_t rounds) const {
        if (keep == 1) return origin + static_cast<double>(rounds);
        const double share = faded(rounds);
        return share * origin + (1 - share) / (1 - keep);
    }
};

// mean and squares as they were after round `touched`, brought to round `now`
inline void rest_until(const FadingWeight& weight, std::int64_t now, double& mean, double& squares,
                       std::int64_t& touched) {
    if (touched == now) return;
    const double share = weight.faded(now - touched), past = share * weight.after(touched), total = weight.after(now);
    squares = share * squares + mean * mean * past * ((total - past) / total);
    mean *= past / total;
    touched = now;
}

// x: rows; z: their values scaled, or null; mean, squares, touched: (features,); `round`: rounds so far
template <class T>
void scale_sparse_rows(const SparseBatch<T>& x, std::int64_t rows, T* z, const FadingWeight& weight, std::int64_t round,
                       bool divide, double* mean, double* squares, std::int64_t* touched) {
    for (std::int64_t t = 0; t < rows; ++t) {
        const SparseRow<T> row = x.row(t);
        const double gain = 1.0 / weight.after(round + t + 1);
        for (int k = 0; k < row.count; ++k) {
            const Column j = row.columns[k];
            const double value = static_cast<double>(row.values[k]);
            if (value != 0) {
                rest_until(weight, round + t, mean[j], squares[j], touched[j]);
                const double away = value - mean[j];
                mean[j] += away * gain;
                squares[j] = weight.keep * squares[j] + away * away * (1.0 - gain);
                touched[j] = round + t + 1;
            }
            if (z == nullptr) continue;
            T& out = z[x.starts[t] + k];
            out = row.values[k];
            if (!divide || value == 0) continue;
            const double deviation = std::sqrt(squares[j] * gain);
            out = deviation > 0 ? static_cast<T>(value / deviation) : T(0);
        }
    }
}

}  // namespace gossamer
