// The variance that is left at rows, s^2 = k(x, x) - k A k, for rules that learn a metric A: by matrix products over panels of
// rows. Each sum runs over the points from first to last, so a row has the same bits alone and in any block.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "engine/loop.hpp"
#include "engine/metric.hpp"
#include "engine/rows.hpp"
#include "simd/tiles.hpp"

namespace gossamer {

class Variance {
public:
    explicit Variance(const Loop& loop) {
        std::visit(
            [&](const auto& r) {
                if (r.metric() == nullptr) return;
                points_ = r.metric()->size();
                factor_ = r.metric_factor();
                r.metric()->to_panels(panels_);
            },
            loop.rule);
    }

    int points() const { return points_; }  // of which the kernel values are asked for

    // k A k of a row
    double covered(const double* row) {
        at_least(product_, panels_.size() / std::max(points_, 1));
        tiles<double>().row(Pair::product, row, points_, panels_.data(), points_, product_.data());
        double sum = 0;
        for (int i = 0; i < points_; ++i) sum += row[i] * product_[i];
        return factor_ * sum;
    }

    // of panels of rows: values[(panel * points + point) * lanes + row], out[row]
    void covered(const double* values, int panels, double* out) {
        const int lanes = tiles<double>().lanes, columns = panels * lanes;
        at_least(product_, static_cast<std::size_t>(strip) * columns);
        std::fill_n(out, columns, 0.0);
        for (int first = 0; first < points_; first += strip) {
            const int last = std::min(points_, first + strip);
            tiles<double>().cross(Pair::product, values, panels, points_, panels_.data(), first, last, product_.data(),
                                  columns);
            for (int p = 0; p < panels; ++p)
                for (int i = first; i < last; ++i) {
                    const double* k = values + (static_cast<std::ptrdiff_t>(p) * points_ + i) * lanes;
                    const double* v = product_.data() + static_cast<std::ptrdiff_t>(i - first) * columns + p * lanes;
                    for (int r = 0; r < lanes; ++r) out[p * lanes + r] += k[r] * v[r];
                }
        }
        for (int t = 0; t < columns; ++t) out[t] *= factor_;
    }

    static double left(double kappa, double covered) { return kappa - std::min(std::max(0.0, covered), kappa); }

private:
    static constexpr int strip = 128;  // rows of A in a product; a multiple of what tiles take at once
    int points_ = 0;
    double factor_ = 1;
    std::vector<double> panels_, product_;
};

}  // namespace gossamer
