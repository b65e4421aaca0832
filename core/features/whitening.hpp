// L^-1 for the Cholesky factor L of a Gram matrix that grows by one row at a time. The twin of Whitening (budgets/features.py).
//
// Its rows stand in strips of 32, each as long as its last row needs, so that z = L^-1 k is a product of tiles and costs
// half of what a square matrix would. The products run over the columns from first to last, and what is behind a row's
// end is 0: a coordinate has the same bits for one row, in a block, and after the matrix has grown.
#pragma once
#include <vector>

#include "engine/points.hpp"
#include "simd/tiles.hpp"

namespace gossamer {

class Whitening {
public:
    static constexpr int strip = 32;
    static int padded(int size) { return (size + strip - 1) / strip * strip; }
    int size() const { return strips_.empty() ? 0 : length(strips_.size() - 1) - strip + strips_.back().size(); }

    // L gets the row (z, root)
    void append(const double* z, double root) {
        const int m = size();
        if (m == padded(m)) strips_.emplace_back(m + strip);
        std::vector<double> row = times(z);
        for (double& value : row) value /= -root;
        row.resize(length(strips_.size() - 1), 0.0);
        row[m] = 1 / root;
        strips_.back().set(m % strip, row.data(), 0);
    }

    // w' L^-1
    std::vector<double> times(const double* w) const {
        const int m = size();
        std::vector<double> sum(m, 0.0), row;
        for (int i = 0; i < m; ++i) {
            row.resize(length(i / strip));
            strips_[i / strip].get(i % strip, row.data());
            for (int j = 0; j <= i; ++j) sum[j] += w[i] * row[j];
        }
        return sum;
    }

    // out[j] = z_j for the kernel values k of one row; both have room for padded(size()), k with zeros behind size()
    void row(const double* k, double* out) const {
        for (std::size_t s = 0; s < strips_.size(); ++s)
            tiles<double>().row(Pair::product, k, length(s), strips_[s].data(), strips_[s].size(), out + s * strip);
    }

    // out[(j - j0) * lanes + row], j in [j0, j1) of one strip, for a packed panel of rows: k[j * lanes + row], with zeros
    // behind size()
    void panel(const double* k, int j0, int j1, double* out) const {
        const Tiles<double>& ops = tiles<double>();
        const int s = j0 / strip;
        ops.cross(Pair::product, k, 1, length(s), strips_[s].data(), j0 - s * strip, j1 - s * strip, out, ops.lanes);
    }

private:
    static int length(std::size_t s) { return strip * (static_cast<int>(s) + 1); }
    std::vector<Points<double>> strips_;
};

}  // namespace gossamer
