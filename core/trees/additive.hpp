// A learner with an additive kernel whose expansion stands in trees, one per coordinate: a row is scored and learned in
// O(log m) for each. The twin of Learner for THE LOOP, without kernel values.
#pragma once
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "trees/coordinates.hpp"
#include "engine/gate.hpp"
#include "engine/loop.hpp"
#include "trees/tree.hpp"

namespace gossamer {

// The points, one row per slot.
template <class T> class Table {
public:
    explicit Table(int d) : d_(d) {}
    int size() const { return static_cast<int>(values_.size() / d_); }
    const T* row(int slot) const { return values_.data() + static_cast<std::ptrdiff_t>(slot) * d_; }
    const std::vector<T>& rows() const { return values_; }
    void set(int slot, const T* x) {
        if (slot == size()) values_.resize(values_.size() + d_);
        std::copy_n(x, d_, values_.data() + static_cast<std::ptrdiff_t>(slot) * d_);
    }
    void move_last(int slot) {
        std::copy_n(row(size() - 1), d_, values_.data() + static_cast<std::ptrdiff_t>(slot) * d_);
        values_.resize(values_.size() - d_);
    }
    void assign(std::vector<T> rows) { values_ = std::move(rows); }

private:
    int d_;
    std::vector<T> values_;
};

template <class T> class Additive : Evaluator {
public:
    mutable Gate gate;
    bool retired = false;  // another learner has taken over its state: single rows are sent there

    Additive(std::vector<Coordinate> coordinates, Loop loop, int d)
        : coordinates_(std::move(coordinates)), loop_(std::move(loop)), d_(d), points_(d) {
        loop_.forbid_kernel();
        Expansion& e = loop_.expansion;
        if (e.with_gram) e.evaluator = this;
        e.with_gram = false;
        for (const Coordinate& c : coordinates_) trees_.emplace_back(c.terms, rows());
    }
    Additive(const Additive&) = delete;

    int features() const { return d_; }
    int outputs() const { return loop_.expansion.outputs(); }
    int effects() const { return static_cast<int>(coordinates_.size()); }
    Loop& loop() { return loop_; }
    const Loop& loop() const { return loop_; }
    const Table<T>& points() const { return points_; }
    const std::vector<T>& dropped_points() const { return dropped_; }

    // whether a row may be learned or scored: inside the kernel's domain, and k(x, x) finite
    bool accepts(const T* x) const {
        double kappa = 0;
        for (int i = 0; i < d_; ++i)
            if (!std::isfinite(x[i])) return false;
        for (const Coordinate& c : coordinates_) {
            const double key = c.key(x);
            if (!c.inside(key)) return false;
            kappa += c.kernel(key, key);
        }
        return std::isfinite(static_cast<T>(kappa));  // as in the NumPy loop
    }

    // n rows, row-major; `all` points at their targets, weights, rates, ids, scores and levels
    void learn(const T* x, std::int64_t n, const Block<T>& all) {
        for (std::int64_t i = 0; i < n; ++i) {
            const T* row = x + i * d_;
            read_keys(row, keys_);
            if (i == 0) fetch(trees_, keys_.data());
            if (i + 1 < n) {  // prefetch the next row's nodes while this row is learned
                read_keys(row + d_, others_);
                fetch(trees_, others_.data());
            }
            const double kappa = kernel(keys_, keys_), kappa0 = kappa > tiny_kappa ? kappa : 0.0;
            double value = 0;
            Block<double> block = all.template part<double>(i, 1);
            block.g = &value;
            block.kappas = &kappa0;
            Source source{*this, row};
            loop_.run(block, source);
        }
    }

    // [row * columns + output]: of the first outputs, as another thread may have learned of more since the caller asked for their number
    void score(const T* x, std::int64_t n, double* scores, int columns) const {
        const Expansion& e = loop_.expansion;
        score_by(trees_, e.scale, e.offset, x, n, scores, columns);
    }

    // the mean of all hypotheses so far
    void score_mean(const T* x, std::int64_t n, double* scores, int columns) const {
        const Expansion& e = loop_.expansion;
        std::vector<T> all = points_.rows();
        all.insert(all.end(), dropped_.begin(), dropped_.end());
        const std::size_t m = all.size() / d_;
        std::vector<double> coefs(m * outputs());
        for (int c = 0; c < outputs(); ++c) {
            const Values sums = e.total(c, true);
            for (std::size_t i = 0; i < m; ++i) coefs[i * outputs() + c] = sums[i];
        }
        std::vector<Key> keys(m);
        std::vector<Tree> trees;
        for (const Coordinate& c : coordinates_) {
            for (std::size_t i = 0; i < m; ++i) keys[i] = {c.key(all.data() + i * d_), static_cast<std::int64_t>(i)};
            trees.emplace_back(c.terms, outputs());
            trees.back().build(keys, coefs, outputs());
        }
        const double rounds = static_cast<double>(std::max<std::int64_t>(loop_.steps, 1));
        score_by(trees, 1 / rounds, e.offset_sum / rounds, x, n, scores, columns);
    }

    // the contribution of each coordinate to each score: [(row * effects + coordinate) * columns + output]
    void score_effects(const T* x, std::int64_t n, double* scores, int columns) const {
        std::vector<double> sums(rows()), room(scratch());
        for (std::int64_t i = 0; i < n; ++i)
            for (int k = 0; k < effects(); ++k) {
                std::fill(sums.begin(), sums.end(), 0.0);
                trees_[k].add(coordinates_[k].key(x + i * d_), room.data(), sums.data());
                double* out = scores + (i * effects() + k) * columns;
                for (int c = 0; c < std::min(columns, outputs()); ++c) out[c] = loop_.expansion.scale * sums[c];
                loop_.expansion.join(out);
            }
    }

    // the shape of every tree, so that a restored learner rounds as this one does
    std::vector<std::int64_t> shape() const {
        std::vector<std::int64_t> all;
        for (const Tree& tree : trees_) {
            const auto one = tree.shape();
            all.push_back(static_cast<std::int64_t>(one.size()));
            all.insert(all.end(), one.begin(), one.end());
        }
        return all;
    }

    // The points of a saved state, whose numbers are in loop() already. Without a shape, from another kind of learner, the
    // trees are as full as can be.
    void restore_points(const std::vector<T>& points, std::vector<T> dropped, const std::vector<std::int64_t>* shapes) {
        const Expansion& e = loop_.expansion;
        const int m = e.size();
        for (const std::vector<T>* rows : {&points, static_cast<const std::vector<T>*>(&dropped)})
            for (std::size_t i = 0; i + d_ <= rows->size(); i += d_)
                if (!accepts(rows->data() + i))
                    throw std::invalid_argument(
                        "The 'points' parameter of the core must be inside the kernel's domain.");
        std::vector<std::int64_t> births = e.births;  // they tell equal keys apart
        std::sort(births.begin(), births.end());
        if (std::adjacent_find(births.begin(), births.end()) != births.end() || (m > 0 && births.back() > loop_.steps))
            throw std::invalid_argument("The 'births' parameter of the core must be different rounds of the past.");
        std::vector<double> coefs(static_cast<std::size_t>(m) * rows());
        for (int i = 0; i < m; ++i)
            for (int r = 0; r < rows(); ++r) coefs[static_cast<std::size_t>(i) * rows() + r] = coef(r, i);
        std::vector<Key> keys(m);
        std::size_t at = 0;
        for (int k = 0; k < effects(); ++k) {
            for (int i = 0; i < m; ++i)
                keys[i] = {coordinates_[k].key(points.data() + static_cast<std::size_t>(i) * d_), e.births[i]};
            if (shapes == nullptr) {
                trees_[k].build(keys, coefs, rows());
                continue;
            }
            const std::vector<std::int64_t>& shape = *shapes;
            const std::int64_t length = at < shape.size() ? shape[at++] : -1;
            if (length < 0 || length > static_cast<std::int64_t>(shape.size() - at))
                throw std::invalid_argument("The 'state' parameter of the core must have the shape of every tree.");
            const std::vector<std::int64_t> one(shape.begin() + at, shape.begin() + at + length);
            at += length;
            if (!trees_[k].build(keys, coefs, rows(), &one))
                throw std::invalid_argument("The 'state' parameter of the core must have trees that fit its points.");
        }
        if (shapes != nullptr && at != shapes->size())
            throw std::invalid_argument("The 'state' parameter of the core must have the shape of every tree.");
        points_.assign(points);
        births_ = e.births;
        dropped_ = std::move(dropped);
    }

private:
    struct Source {
        static constexpr bool direct = true, spreads = false;
        Additive& self;
        const T* x;

        void values(int, double* out) { self.evaluate(self.keys_, out); }
        double kernel(int, int slot) {
            self.read_keys(self.points_.row(slot), self.others_);
            return self.kernel(self.keys_, self.others_);
        }
        void place(int, int slot) {
            if (slot < self.points_.size()) self.leave(slot);
            self.points_.set(slot, x);
            self.births_.resize(self.points_.size());
            self.births_[slot] = self.loop_.expansion.births[slot];
            self.read_coefs(slot);
            for (int k = 0; k < self.effects(); ++k)
                self.trees_[k].insert({self.keys_[k], self.births_[slot]}, self.coefs_.data());
        }
        void remove(int slot, int) {
            self.leave(slot);
            self.points_.move_last(slot);
            self.births_[slot] = self.births_.back();
            self.births_.pop_back();
        }
        void change(int slot) {
            self.read_coefs(slot);
            for (int k = 0; k < self.effects(); ++k)
                self.trees_[k].change({self.key(k, slot), self.births_[slot]}, self.coefs_.data());
        }
        void rescale(const Fold& fold, bool cleared) {
            const int n = self.outputs();
            for (Tree& tree : self.trees_) {
                if (fold.main != 1) tree.scale(0, n, fold.main);
                if (cleared || fold.trace != 1) tree.scale(n, tree.rows(), cleared ? 0 : fold.trace);
            }
        }
        void grow() {
            for (Tree& tree : self.trees_)
                while (tree.rows() < self.rows()) {
                    const bool traced = !self.loop_.expansion.trace.empty();
                    tree.grow(traced ? tree.rows() / 2 : tree.rows());  // a new output, and a trace behind all others
                    if (traced) tree.grow(tree.rows());
                }
        }
    };

    // Evaluator: all sums at the point of a slot
    void at(int slot, double* values) const override {
        static thread_local std::vector<double> keys;
        read_keys(points_.row(slot), keys);
        evaluate(keys, values);
    }

    void evaluate(const std::vector<double>& keys, double* out) const {
        static thread_local std::vector<double> room;
        if (room.size() < scratch()) room.resize(scratch());
        std::fill_n(out, rows(), 0.0);
        for (int k = 0; k < effects(); ++k) trees_[k].add(keys[k], room.data(), out);
    }

    static void fetch(const std::vector<Tree>& trees, const double* keys) {
        constexpr std::size_t at_once = 16;
        constexpr int cached = 2;  // trees of at most this many levels stay in the processor's cache
        for (std::size_t first = 0; first < trees.size(); first += at_once) {
            Tree::Walk walks[at_once];
            const std::size_t n = std::min(at_once, trees.size() - first);
            int height = 0;
            for (std::size_t i = 0; i < n; ++i) {
                walks[i] = trees[first + i].walk();
                height = std::max(height, walks[i].level);
            }
            if (height <= cached) continue;
            for (; height > 0; --height)
                for (std::size_t i = 0; i < n; ++i) trees[first + i].step(keys[first + i], walks[i]);
        }
    }

    void score_by(const std::vector<Tree>& trees, double scale, double offset, const T* x, std::int64_t n,
                  double* scores, int columns) const {
        std::vector<double> sums(rows()), room(scratch()), keys, next;
        for (std::int64_t i = 0; i < n; ++i) {
            std::fill(sums.begin(), sums.end(), 0.0);
            read_keys(x + i * d_, keys);
            if (i + 1 < n) {
                read_keys(x + (i + 1) * d_, next);
                fetch(trees, next.data());
            }
            for (int k = 0; k < effects(); ++k) trees[k].add(keys[k], room.data(), sums.data());
            double* out = scores + i * columns;
            for (int c = 0; c < std::min(columns, outputs()); ++c) out[c] = scale * sums[c] + offset;
            loop_.expansion.join(out);
        }
    }

    void leave(int slot) {
        for (int k = 0; k < effects(); ++k) trees_[k].erase({key(k, slot), births_[slot]});
        if (loop_.expansion.average != Average::all) return;
        const T* x = points_.row(slot);
        dropped_.insert(dropped_.end(), x, x + d_);
    }

    double key(int k, int slot) const { return coordinates_[k].key(points_.row(slot)); }
    void read_keys(const T* x, std::vector<double>& keys) const {
        keys.resize(effects());
        for (int k = 0; k < effects(); ++k) keys[k] = coordinates_[k].key(x);
    }
    double kernel(const std::vector<double>& p, const std::vector<double>& q) const {
        double sum = 0;
        for (int k = 0; k < effects(); ++k) sum += coordinates_[k].kernel(p[k], q[k]);
        return sum;
    }

    int rows() const { return static_cast<int>(loop_.expansion.raw.size() + loop_.expansion.trace.size()); }
    double coef(int row, int slot) const {
        const Expansion& e = loop_.expansion;
        return row < outputs() ? e.raw[row][slot] : e.trace[row - outputs()][slot];
    }
    void read_coefs(int slot) {
        coefs_.resize(rows());
        for (int r = 0; r < rows(); ++r) coefs_[r] = coef(r, slot);
    }
    std::size_t scratch() const {
        std::size_t most = 0;
        for (const Tree& tree : trees_) most = std::max(most, tree.scratch_size());
        return most;
    }

    std::vector<Coordinate> coordinates_;
    Loop loop_;
    int d_;
    Table<T> points_;
    std::vector<std::int64_t> births_;  // of the terms as they stand in the trees
    std::vector<T> dropped_;            // evicted points that still count in the mean
    std::vector<Tree> trees_;
    std::vector<double> keys_, others_, coefs_;  // of the current example
};

}  // namespace gossamer
