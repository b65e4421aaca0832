// A learner whose kernel is compiled too: kernel values by blocks of rows, then THE LOOP over each block.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "engine/gate.hpp"
#include "engine/kernel.hpp"
#include "engine/layout.hpp"
#include "engine/loop.hpp"
#include "engine/variance.hpp"
#include "simd/tiles.hpp"

namespace gossamer {

template <class T, class Layout = DenseLayout<T>> class Learner {
public:
    using Batch = typename Layout::Batch;
    using Rows = typename Layout::Rows;
    using Points = typename Layout::Points;
    using Matrix = typename Layout::Matrix;
    mutable Gate gate;
    bool retired = false;  // another learner has taken over its state: single rows are sent there

    Learner(Kernel kernel, Loop loop, int d) : kernel_(std::move(kernel)), loop_(std::move(loop)), d_(d), points_(d) {}

    int features() const { return d_; }
    int outputs() const { return loop_.expansion.outputs(); }
    Loop& loop() { return loop_; }
    const Loop& loop() const { return loop_; }
    const Points& points() const { return points_; }
    const Matrix& dropped_points() const { return dropped_; }
    void use(Kernel kernel) { kernel_ = std::move(kernel); }

    // whether a row may be learned or scored: finite, and so is k(x, x)
    bool accepts(Batch x) const { return gossamer::accepts(kernel_, x, d_, kernel_.bounded()); }

    // n rows; `all` points at their targets, weights, rates, ids, scores and levels
    void learn(Batch x, std::int64_t n, const Block<T>& all) {
        for (std::int64_t i = 0; i < n;) {
            Block<T> block = all.part(i, static_cast<int>(std::min<std::int64_t>(n - i, rows_at_once())));
            const std::int64_t before = loop_.updates;
            learn_block(from(x, i), block);
            const double share = static_cast<double>(loop_.updates - before) / block.rows;
            busy_ += (share - busy_) * std::min(1.0, block.rows / 256.0);
            i += block.rows;
        }
    }

    // [row * columns + output]: of the first outputs, as another thread may have learned of more since the caller asked for their number
    void score(Batch x, std::int64_t n, double* scores, int columns) const {
        const Expansion& e = loop_.expansion;
        score_by(points_, e.raw, e.scale, e.offset, x, n, scores, columns);
    }

    // the mean of all hypotheses so far
    void score_mean(Batch x, std::int64_t n, double* scores, int columns) const {
        const Expansion& e = loop_.expansion;
        Rows2 coefs;
        for (int c = 0; c < e.outputs(); ++c) coefs.push_back(e.total(c, true));
        Points points = points_;
        points.append(dropped_);
        const double rounds = static_cast<double>(std::max<std::int64_t>(loop_.steps, 1));
        score_by(points, coefs, 1 / rounds, e.offset_sum / rounds, x, n, scores, columns);
    }

    // the variance that is left at rows, of a rule that learns it
    void variance(Batch x, std::int64_t n, double* out) const {
        static thread_local Rows rows;
        static thread_local std::vector<T> g;
        static thread_local Values kappas, values, covered;
        const Tiles<T>& ops = tiles<T>();
        const int lanes = tiles<double>().lanes;
        Variance of(loop_);
        const int m = of.points();
        if (n < ops.lanes / 2) {
            at_least(g, points_.padded());
            for (std::int64_t i = 0; i < n; ++i) {
                rows.single(from(x, i), d_);
                rows.against_single(kernel_, points_, from(x, i), d_, g.data());
                rows.diagonal(kernel_, d_, kappas);
                values.assign(g.begin(), g.begin() + m);
                out[i] = Variance::left(kappas[0], of.covered(values.data()));
            }
            return;
        }
        const int most = ops.lanes * std::max(1, std::min(4, panels_in_cache()));
        for (std::int64_t i = 0; i < n; i += most) {
            rows.pack(from(x, i), static_cast<int>(std::min<std::int64_t>(n - i, most)), d_);
            rows.diagonal(kernel_, d_, kappas);
            const int panels = (rows.count + lanes - 1) / lanes;
            at_least(g, static_cast<std::size_t>(std::min(m, strip)) * rows.ld);
            at_least(values, static_cast<std::size_t>(panels) * m * lanes);
            at_least(covered, static_cast<std::size_t>(panels) * lanes);
            for (int j = 0, end; j < m; j = end) {
                end = std::min(m - j, strip) + j;
                rows.against(kernel_, points_, d_, j, end, 0, g.data());
                for (int p = 0; p < panels; ++p)
                    for (int k = j; k < end; ++k)
                        std::copy_n(g.data() + (k - j) * rows.ld + p * lanes, lanes,
                                    values.data() + (static_cast<std::ptrdiff_t>(p) * m + k) * lanes);
            }
            of.covered(values.data(), panels, covered.data());
            for (int t = 0; t < rows.count; ++t) out[i + t] = Variance::left(kappas[t], covered[t]);
        }
    }

    // k(points, points), row-major
    std::vector<double> gram() const {
        const int m = points_.size();
        std::vector<double> values(static_cast<std::size_t>(m) * m);
        fill_gram(values.data(), m);
        return values;
    }

    // The points of a saved state, whose numbers are in loop() already. `learns`: not only scores from now on.
    void restore_points(const Matrix& points, Matrix dropped, bool learns = true) {
        points_.clear();
        points_.append(points);
        dropped_ = std::move(dropped);
        if (learns && loop_.expansion.with_gram)
            loop_.expansion.make_gram([&](double* to, std::ptrdiff_t apart) { fill_gram(to, apart); });
    }

private:
    static constexpr int strip = Layout::strip;

    Batch from(const Batch& x, std::int64_t i) const { return Layout::from(x, i, d_); }

    // The loop's source: stores a newcomer's point and computes its column of kernel values.
    struct Source {
        static constexpr bool direct = false, spreads = false, blends = true;
        Learner& self;
        Batch x;
        T* g;
        void place(int row, int slot) {
            Rows& rows = self.rows_;
            self.leaves(slot);
            self.points_.set(slot, self.from(x, row), rows.norms[row]);
            if (row + 1 == rows.count) return;
            const int panel = (row + 1) / tiles<T>().lanes;
            rows.against(self.kernel_, self.points_, self.d_, slot, slot + 1, panel, g + slot * rows.ld);
        }
        void remove(int slot, int) {
            self.leaves(slot);
            self.points_.move_last(slot);
        }
        // the point of a slot becomes h of itself and 1 - h of another; its kernel values with all points
        void blend(int row, int slot, int other, double h, double* column) {
            const int d = self.d_;
            std::vector<T> values(self.points_.padded());
            self.leaves(slot);
            const Matrix made = self.points_.blend(slot, other, h);
            const Batch z = Layout::batch(made);
            Rows single;
            single.single(z, d);
            self.points_.set(slot, z, single.norms[0]);
            single.against_single(self.kernel_, self.points_, z, d, values.data());
            std::copy_n(values.begin(), self.points_.size(), column);
            Rows& rows = self.rows_;
            if (rows.count > 1) {
                rows.against(self.kernel_, self.points_, d, slot, slot + 1, row / tiles<T>().lanes, g + slot * rows.ld);
                return;
            }
            Points one(d);
            one.set(0, x, rows.norms[0]);
            single.against_single(self.kernel_, one, z, d, values.data());
            g[slot] = values[0];
        }
    };

    void leaves(int slot) {
        if (loop_.expansion.average != Average::all || slot >= points_.size()) return;
        points_.read(slot, dropped_);
    }

    void learn_block(const Batch& x, Block<T>& block) {
        const int m = points_.size();
        if (block.rows == 1) {
            rows_.single(x, d_);
            at_least(g_, points_.padded() + 1);
            rows_.against_single(kernel_, points_, x, d_, g_.data());
            block.ld = 1;
        } else {
            rows_.pack(x, block.rows, d_);
            at_least(g_, static_cast<std::size_t>(m + block.rows) * rows_.ld);
            for (int j = 0, end; j < m; j = end) {
                end = std::min(m - j, strip) + j;
                rows_.against(kernel_, points_, d_, j, end, 0, g_.data() + j * rows_.ld);
            }
            block.ld = rows_.ld;
        }
        rows_.diagonal(kernel_, d_, kappas_);
        block.g = g_.data();
        block.kappas = kappas_.data();
        Source source{*this, x, g_.data()};
        loop_.run(block, source);
    }

    void score_by(const Points& points, const Rows2& coefs, double scale, double offset, const Batch& x, std::int64_t n,
                  double* scores, int columns) const {
        static thread_local Rows rows;
        static thread_local std::vector<T> g;
        static thread_local Values sums;
        const Tiles<T>& ops = tiles<T>();
        const int m = points.size(), outputs = std::min(columns, static_cast<int>(coefs.size()));
        if (n < ops.lanes / 2) {
            at_least(g, points.padded());
            for (std::int64_t i = 0; i < n; ++i) {
                rows.single(from(x, i), d_);
                rows.against_single(kernel_, points, from(x, i), d_, g.data());
                for (int c = 0; c < outputs; ++c)
                    scores[i * columns + c] = scale * ops.dot(g.data(), coefs[c].data(), m) + offset;
                loop_.expansion.join(scores + i * columns);
            }
            return;
        }
        const int most = ops.lanes * std::max(1, std::min(4, panels_in_cache()));
        for (std::int64_t i = 0; i < n; i += most) {
            rows.pack(from(x, i), static_cast<int>(std::min<std::int64_t>(n - i, most)), d_);
            at_least(g, static_cast<std::size_t>(std::min(m, strip)) * rows.ld);
            sums.assign(static_cast<std::size_t>(outputs) * partial_sums * rows.ld, 0.0);
            for (int j = 0, end; j < m; j = end) {
                end = std::min(m - j, strip) + j;
                rows.against(kernel_, points, d_, j, end, 0, g.data());
                for (int c = 0; c < outputs; ++c)
                    for (int q = 0; q < partial_sums; ++q)
                        ops.partial(g.data(), rows.ld, coefs[c].data() + j, end - j, q, 0, rows.count,
                                    sums.data() + (c * partial_sums + q) * rows.ld, true);
            }
            for (int t = 0; t < rows.count; ++t) {
                double* out = scores + (i + t) * columns;
                for (int c = 0; c < outputs; ++c)
                    out[c] = scale * fold(sums.data() + c * partial_sums * rows.ld + t, rows.ld) + offset;
                loop_.expansion.join(out);
            }
        }
    }

    // Few updates: large blocks. Many: small ones, since each newcomer's column is made for the rows behind it, and a step
    // that moves all points makes all sums of these rows again.
    int rows_at_once() const {
        const int lanes = tiles<T>().lanes;
        const double wanted = loop_.moves_all() ? 0.1 / (busy_ + 0.01) : 0.3 * points_.size() / (busy_ + 0.02) / lanes;
        return lanes * std::max(1, std::min(static_cast<int>(std::min(wanted, 8.0)), panels_in_cache()));
    }

    int panels_in_cache() const {
        return static_cast<int>((std::size_t(192) << 10) / (sizeof(T) * Layout::values(d_) * tiles<T>().lanes));
    }

    // the kernel values of the points as newcomers: to[i * apart + j] of point i and point j
    void fill_gram(double* to, std::ptrdiff_t apart) const {
        static thread_local Rows rows;
        static thread_local std::vector<T> g;
        static thread_local Matrix point;
        const int m = points_.size();
        at_least(g, points_.padded());
        for (int i = 0; i < m; ++i) {
            point.clear();
            points_.read(i, point);
            const Batch x = Layout::batch(point);
            rows.single(x, d_);
            rows.against_single(kernel_, points_, x, d_, g.data());
            std::copy_n(g.begin(), m, to + i * apart);
        }
    }

    Kernel kernel_;
    Loop loop_;
    int d_;
    Points points_;
    Matrix dropped_;  // evicted points that still count in the mean
    Rows rows_;
    std::vector<T> g_;
    std::vector<double> kappas_;
    double busy_ = 0.5;  // running share of rows that update: chooses the block, changes no result
};

}  // namespace gossamer
