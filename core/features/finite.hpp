// A learner in a space of finite dimension: a row becomes its features z(x), and THE LOOP keeps one weight for each. The
// twin of FiniteBlocks (_engine/features.py). The features are those of a dictionary that grows with the stream (Nystrom), z = L^-1
// k(dictionary, x), or cosines and sines of fixed frequencies (Fourier).
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "engine/gate.hpp"
#include "engine/kernel.hpp"
#include "engine/loop.hpp"
#include "engine/points.hpp"
#include "engine/rows.hpp"
#include "features/whitening.hpp"

namespace gossamer {

// The features of a block of rows, with the buffers that they are made in.
template <class T> struct Features {
    Rows<T> rows;
    std::vector<T> g, cosines, sines;    // kernel values or phases, points down, rows across
    std::vector<double> panels, turned;  // the same in panels of doubles, and the features of one panel
    std::vector<double> kappas;          // k(x, x)
    std::vector<double> z;               // [row * stride + coordinate]
    std::ptrdiff_t stride = 0, room = 0;  // room: the rows of a panel

    double* of(int row) { return z.data() + row * stride; }
    double* panel(int p) { return panels.data() + p * room * tiles<double>().lanes; }
};

template <class T> class Finite {
public:
    mutable Gate gate;
    bool retired = false;  // another learner has taken over its state: single rows are sent there

    // `kernel` is the dictionary's; with frequencies, row-major, it is the product that makes their phases.
    // `tolerance`: the share of k(x, x) that has to lie outside the dictionary's span to join, inside to make a step
    Finite(Kernel kernel, Loop loop, int d, int limit, double tolerance, const std::vector<T>& frequencies)
        : kernel_(std::move(kernel)), loop_(std::move(loop)), d_(d), limit_(limit), tolerance_(tolerance), points_(d),
          waves_(!frequencies.empty()) {
        loop_.forbid_kernel(true);
        points_.append(frequencies);
        for (int i = 0; waves_ && i < 2 * points_.size(); ++i) append_weight(1.0, 1);
    }

    int features() const { return d_; }
    int outputs() const { return loop_.expansion.outputs(); }
    Loop& loop() { return loop_; }
    const Loop& loop() const { return loop_; }
    const Points<T>& points() const { return points_; }
    const std::vector<T>& dropped_points() const { return none_; }

    // whether a row may be learned or scored: finite, and so is k(x, x)
    bool accepts(const T* x) const { return gossamer::accepts(kernel_, x, d_, waves_ || kernel_.bounded()); }

    // n rows, row-major; `all` points at their targets, weights, rates, ids, scores and levels
    void learn(const T* x, std::int64_t n, const Block<T>& all) {
        for (std::int64_t first = 0; first < n;) {
            const int count = static_cast<int>(std::min<std::int64_t>(n - first, rows_at_once()));
            make(x + first * d_, count, block_);
            for (int t = 0; t < count; ++t) {
                const std::int64_t i = first + t;
                Source source{*this, x + i * d_, t, block_.of(t)};
                source.look();
                Block<double> block = all.template part<double>(i, 1);
                block.kappas = &source.kappa;
                block.ids = nullptr;  // no row has a slot of its own
                loop_.run(block, source);
            }
            first += count;
        }
    }

    // [row * columns + output]: of the first outputs, as another thread may have learned of more since the caller asked for their number
    void score(const T* x, std::int64_t n, double* scores, int columns) const {
        const Expansion& e = loop_.expansion;
        score_by(e.raw, e.scale, e.offset, x, n, scores, columns);
    }

    // the mean of all hypotheses so far
    void score_mean(const T* x, std::int64_t n, double* scores, int columns) const {
        const Expansion& e = loop_.expansion;
        Rows2 sums;
        for (int c = 0; c < outputs(); ++c) sums.push_back(e.total(c));
        const double rounds = static_cast<double>(std::max<std::int64_t>(loop_.steps, 1));
        score_by(sums, 1 / rounds, e.offset_sum / rounds, x, n, scores, columns);
    }

    // Effective coefficients: of k(points, .), L^-T w; of cosines and sines, w / sqrt(frequencies)
    Rows2 coefs() const {
        const Expansion& e = loop_.expansion;
        Rows2 all;
        for (const Values& w : e.raw) {
            all.push_back(waves_ ? w : whitening_.times(w.data()));
            for (double& value : all.back()) value *= waves_ ? e.scale * height() : e.scale;
        }
        return all;
    }

    // The points of a saved state, whose numbers are in loop() already.
    void restore_points(const std::vector<T>& points, const std::vector<T>&) {
        const Expansion& e = loop_.expansion;
        const int m = e.size();
        const bool fits = waves_ ? m == 2 * points_.size() : m <= limit_;
        if (!fits) throw std::invalid_argument("The 'points' parameter of the core must be as many as the budget keeps.");
        points_ = Points<T>(d_);
        whitening_ = Whitening();
        points_.append({points.begin(), waves_ ? points.begin() + points.size() / 2 : points.begin()});
        Features<T> one;
        for (int i = 0; i < m && !waves_; ++i) {
            make(points.data() + static_cast<std::size_t>(i) * d_, 1, one);
            const double rest = e.kappas[i] - tiles<double>().dot(one.of(0), one.of(0), i);
            if (!(rest > 0) || !std::isfinite(rest))
                throw std::invalid_argument("The 'points' parameter of the core must be linearly independent.");
            whitening_.append(one.of(0), std::sqrt(rest));
            points_.set(i, points.data() + static_cast<std::size_t>(i) * d_, one.rows.norms[0]);
        }
    }

private:
    // The loop's source: the current row is features already, and a step moves all weights.
    struct Source {
        static constexpr bool direct = true, spreads = true;
        Finite& self;
        const T* x;
        int row;
        double* z;
        double kappa = 1, root = 0;  // of the row in the space; its part outside, if the row would join the dictionary

        void look() {
            if (self.waves_) return;
            const int m = self.points_.size();
            const double whole = self.block_.kappas[row], inside = tiles<double>().dot(z, z, m), rest = whole - inside;
            const bool joins = m < self.limit_ && rest > self.tolerance_ * whole;
            root = joins ? std::sqrt(rest) : 0;
            kappa = joins ? whole : inside > std::max(tiny_kappa, self.tolerance_ * whole) ? inside : 0;
        }
        void values(int, double* out) const {
            const Expansion& e = self.loop_.expansion;
            for (const Rows2* rows : {&e.raw, &e.trace})
                for (const Values& w : *rows) *out++ = tiles<double>().dot(z, w.data(), e.size());
        }
        void spread(const double* move, const double* trace_move) {
            if (root > 0) self.join(*this);
            self.add(z, move, trace_move);
        }
        void forget() { self.forget(); }
        void rescale(const Fold&, bool) {}
        void grow() {}
        // there is no slot of its own for a row
        double kernel(int, int) const { return 0; }
        void place(int, int) {}
        void remove(int, int) {}
        void change(int) {}
    };

    double height() const { return 1 / std::sqrt(static_cast<double>(points_.size())); }
    int dimension() const { return waves_ ? 2 * points_.size() : points_.size(); }

    // the features of rows, and room for those of newcomers among them
    void make(const T* x, int count, Features<T>& out) const {
        const int m = points_.size(), lanes = tiles<double>().lanes, panels = (count + lanes - 1) / lanes;
        out.room = Whitening::padded(m + (waves_ ? 0 : std::min(count, limit_ - m)));
        out.stride = std::max<std::ptrdiff_t>(waves_ ? 2 * m : out.room, 1);
        at_least(out.z, out.stride * panels * lanes);
        Rows<T>& rows = out.rows;
        if (count == 1) {
            rows.single(x, d_);
            at_least(out.g, points_.padded() + 1);
            rows.against_single(kernel_, points_, x, d_, out.g.data());
        } else {
            rows.pack(x, count, d_);
            at_least(out.g, static_cast<std::size_t>(m + 1) * rows.ld);
            constexpr int strip = 128;  // points whose kernel values are made together
            for (int j = 0; j < m; j += strip)
                rows.against(kernel_, points_, d_, j, std::min(m, j + strip), 0, out.g.data() + j * rows.ld);
        }
        if (waves_) return make_waves(count, out);
        rows.diagonal(kernel_, d_, out.kappas);
        if (count == 1) {
            at_least(out.panels, out.room);
            std::copy_n(out.g.data(), m, out.panels.data());
            std::fill(out.panels.data() + m, out.panels.data() + out.room, 0.0);
            whitening_.row(out.panels.data(), out.z.data());
            return;
        }
        at_least(out.panels, out.room * panels * lanes);
        at_least(out.turned, Whitening::strip * lanes);
        for (int p = 0; p < panels; ++p) {
            double* k = out.panel(p);
            for (int j = 0; j < m; ++j) std::copy_n(out.g.data() + j * rows.ld + p * lanes, lanes, k + j * lanes);
            std::fill(k + m * lanes, k + out.room * lanes, 0.0);
        }
        for (int j = 0; j < m; j += Whitening::strip)  // a strip stays near while all panels meet it
            for (int p = 0; p < panels; ++p) {
                const int n = std::min(m - j, Whitening::strip);
                whitening_.panel(out.panel(p), j, j + n, out.turned.data());
                for (int r = 0; r < lanes; ++r)
                    for (int i = 0; i < n; ++i) out.of(p * lanes + r)[j + i] = out.turned[i * lanes + r];
            }
    }

    // z = (cos p, sin p) / sqrt(frequencies) for the phases p in g
    void make_waves(int count, Features<T>& out) const {
        const Tiles<T>& ops = tiles<T>();
        const int m = points_.size(), across = count == 1 ? points_.padded() : static_cast<int>(out.rows.ld);
        const T high = static_cast<T>(height());
        at_least(out.cosines, across);
        at_least(out.sines, across);
        for (int j = 0; j < (count == 1 ? 1 : m); ++j) {
            ops.waves(out.g.data() + static_cast<std::ptrdiff_t>(j) * across, across, high, out.cosines.data(),
                      out.sines.data());
            for (int t = 0; t < (count == 1 ? m : count); ++t) {
                double* z = count == 1 ? out.of(0) + t : out.of(t) + j;
                z[0] = static_cast<double>(out.cosines[t]);
                z[m] = static_cast<double>(out.sines[t]);
            }
        }
    }

    // The current row joins the dictionary: it and the rows behind it in the block get one more coordinate.
    void join(Source& source) {
        Features<T>& block = block_;
        const int m = points_.size(), lanes = tiles<double>().lanes, count = block.rows.count;
        points_.set(m, source.x, block.rows.norms[source.row]);
        whitening_.append(source.z, source.root);
        source.z[m] = source.root;
        append_weight(block.kappas[source.row], loop_.steps);
        if (source.row + 1 >= count) return;
        T* column = block.g.data();  // the panels have what it had
        const int panel = (source.row + 1) / tiles<T>().lanes;
        block.rows.against(kernel_, points_, d_, m, m + 1, panel, column);
        for (int p = (source.row + 1) / lanes; p * lanes < count; ++p) {
            std::copy_n(column + p * lanes, lanes, block.panel(p) + m * lanes);
            whitening_.panel(block.panel(p), m, m + 1, block.turned.data());
            for (int r = 0; r < lanes; ++r)
                if (p * lanes + r > source.row) block.of(p * lanes + r)[m] = block.turned[r];
        }
    }

    // one more weight, 0
    void append_weight(double kappa, std::int64_t birth) {
        Expansion& e = loop_.expansion;
        for (Rows2* rows : {&e.raw, &e.summed, &e.trace})
            for (Values& values : *rows) values.push_back(0.0);
        for (Values* values : {&e.sizes, &e.roots, &e.entered}) values->push_back(0.0);
        e.kappas.push_back(kappa);
        e.births.push_back(birth);
        e.ids.push_back(-birth);
    }

    // f <- f + sum_c move[c] <z, .>, and v; the norm is exact, as the space is Euclidean
    void add(const double* z, const double* move, const double* trace_move) {
        Expansion& e = loop_.expansion;
        const int m = e.size();
        e.settle_sums();
        const auto axpy = [&](double factor, Values& w) {
            if (factor == 0) return;
            for (int i = 0; i < m; ++i) w[i] += factor * z[i];
        };
        for (int c = 0; c < e.outputs(); ++c) {
            axpy(move[c] / e.scale, e.raw[c]);
            if (!e.trace.empty()) axpy((trace_move[c] - e.mix * move[c]) / e.trace_scale, e.trace[c]);
        }
        measure();
    }

    // ||f||^2 and <f, v>
    void measure() {
        Expansion& e = loop_.expansion;
        const int n = e.outputs();
        const auto dot = [&](const Values& a, const Values& b) { return tiles<double>().dot(a.data(), b.data(), e.size()); };
        double norm2 = 0, inner = 0;
        for (int a = 0; a < n; ++a) {
            if (e.labels.empty()) norm2 += dot(e.raw[a], e.raw[a]);
            for (int b = 0; !e.labels.empty() && b < n; ++b)
                if (const double label = e.labels[a * n + b]; label != 0) norm2 += label * dot(e.raw[a], e.raw[b]);
            if (!e.trace.empty())
                inner += e.scale * (e.trace_scale * dot(e.raw[a], e.trace[a]) +
                                    e.mix * e.scale * dot(e.raw[a], e.raw[a]));
        }
        e.norm2 = std::max(0.0, e.scale * e.scale * norm2);
        e.inner = inner;
    }

    // all weights are 0; the space stays
    void forget() {
        loop_.expansion.settle_sums();
        for (Rows2* rows : {&loop_.expansion.raw, &loop_.expansion.trace})
            for (Values& values : *rows) std::fill(values.begin(), values.end(), 0.0);
        loop_.expansion.inner = 0;
    }

    void score_by(const Rows2& weights, double scale, double offset, const T* x, std::int64_t n, double* scores,
                  int columns) const {
        static thread_local Features<T> block;
        const int outputs = std::min(columns, static_cast<int>(weights.size())), m = dimension();
        for (std::int64_t first = 0; first < n;) {
            const int count = static_cast<int>(std::min<std::int64_t>(n - first, rows_at_once()));
            make(x + first * d_, count, block);
            for (int t = 0; t < count; ++t) {
                double* out = scores + (first + t) * columns;
                for (int c = 0; c < outputs; ++c)
                    out[c] = scale * tiles<double>().dot(block.of(t), weights[c].data(), m) + offset;
                loop_.expansion.join(out);
            }
            first += count;
        }
    }

    // up to four panels, whose rows, and kernel values and features, stay in the second- and third-level cache
    int rows_at_once() const {
        const std::size_t lanes = tiles<T>().lanes, row = sizeof(T) * d_ * lanes;
        const std::size_t made = 2 * sizeof(double) * (dimension() + 1) * lanes;
        const std::size_t panels = std::min((std::size_t(192) << 10) / row, (std::size_t(2) << 20) / made);
        return static_cast<int>(lanes * std::max<std::size_t>(1, std::min<std::size_t>(4, panels)));
    }

    Kernel kernel_;
    Loop loop_;
    int d_, limit_;
    double tolerance_;
    Points<T> points_;  // the dictionary, or the frequencies
    bool waves_;
    Whitening whitening_;
    Features<T> block_;
    std::vector<T> none_;
};

}  // namespace gossamer
