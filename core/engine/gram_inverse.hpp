// The twin of gram_inverse.py: Q = K^-1 of the support points, kept by rank-one updates, for budgets that project. The last
// update waits until Q is next multiplied, so that a step passes over it once; whether it waits or not changes no bit.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/stride.hpp"
#include "simd/tiles.hpp"

namespace gossamer {

class Inverse {
public:
    static constexpr int check_every = 64;       // changes between two checks of the error
    static constexpr double most_error = 1e-8;   // of K Q - I, from which Q is rebuilt
    static constexpr double least_pivot = 1e-9;  // of k(x, x): smaller pivots are rounding

    bool active = false;   // Q is made when the budget is full for the first time
    std::int64_t age = 0;  // changes since Q was last checked

    // of the current newcomer: its kernel values, d = Q k, k.d and k(x, x) - k.d
    std::vector<double> row, weights;
    double inside = 0, residual = 0;

    int size() const { return size_; }
    double at(int i, int j) {
        settle();
        return q_[i * stride_ + j];
    }

    void clear() {
        size_ = 0;
        waits_ = false;
        active = false;
        age = 0;
    }

    // the part of the newcomer inside the span of the points; row[i * ld]: its kernel values
    template <class T> void solve(const T* values, std::ptrdiff_t ld, double kappa) {
        row.resize(size_);
        weights.resize(size_ + 7);  // room for a last, incomplete vector
        for (int i = 0; i < size_; ++i) row[i] = static_cast<double>(values[i * ld]);
        if (waits_)
            tiles<double>().turn(q_.data(), stride_, first_.data(), second_.data(), row.data(), size_, size_,
                                 weights.data());
        else
            tiles<double>().combine(q_.data(), stride_, row.data(), size_, size_, weights.data());
        waits_ = false;
        weights.resize(size_);
        inside = std::min(kappa, std::max(0.0, tiles<double>().dot(row.data(), weights.data(), size_)));
        residual = kappa - inside > least_pivot * kappa ? kappa - inside : 0.0;
    }

    // Q_ii after the newcomer has joined
    double with_newcomer(int i) const { return diagonal_[i] + weights[i] * weights[i] / residual; }

    // the newcomer takes a place at the end
    void append() {
        settle();
        reserve(size_ + 1);
        const int n = size_++;
        std::fill_n(q_.begin() + n * stride_, size_, 0.0);
        for (int i = 0; i < n; ++i) q_[i * stride_ + n] = 0;
        first_ = weights;
        first_.push_back(-1);
        scale(first_, 1 / std::sqrt(residual));
        second_.assign(size_, 0.0);
        update();
    }

    // the newcomer takes the place of a slot, whose function is projected on the others and the newcomer: coefficient j
    // of the others (the newcomer's is at `slot`) falls by that of the slot times share[j]
    const std::vector<double>& replace(int slot) {
        settle();
        first_ = weights;
        second_.resize(size_);
        const double own = weights[slot] / residual;
        for (int i = 0; i < size_; ++i) second_[i] = q_[slot * stride_ + i] + weights[i] * own;
        const double pivot = second_[slot];
        first_[slot] = -1;
        second_[slot] = -own;
        share_ = second_;
        scale(share_, 1 / pivot);
        std::fill_n(q_.begin() + slot * stride_, size_, 0.0);
        for (int i = 0; i < size_; ++i) q_[i * stride_ + slot] = 0;
        scale(first_, 1 / std::sqrt(residual));
        scale(second_, 1 / std::sqrt(pivot));
        update();
        return share_;
    }

    // a point goes as it is, the last one takes its slot
    void remove(int slot) {
        settle();
        const int last = size_ - 1;
        second_.assign(q_.begin() + slot * stride_, q_.begin() + slot * stride_ + size_);
        scale(second_, 1 / std::sqrt(second_[slot]));
        first_.assign(size_, 0.0);
        update();
        settle();
        for (int i = 0; i <= last; ++i) q_[slot * stride_ + i] = q_[last * stride_ + i];
        for (int i = 0; i <= last; ++i) q_[i * stride_ + slot] = q_[i * stride_ + last];
        q_[slot * stride_ + slot] = q_[last * stride_ + last];
        --size_;
        see_diagonal();
        if (size_ == 0) clear();
    }

    // Whether Q has lost its accuracy and must be made anew: an entry of its diagonal is not positive, or its error in one
    // row, which is measured now and then, is too large. kernel(i, j): of the points.
    template <class Kernel> bool worn(int slot, Kernel&& kernel) {
        if (!std::all_of(diagonal_.begin(), diagonal_.end(), [](double q) { return q > 0 && q < INFINITY; }))
            return true;
        if (age < check_every) return false;
        age = 0;
        settle();
        double error = 0;
        first_.resize(size_);
        for (int i = 0; i < size_; ++i) {
            for (int j = 0; j < size_; ++j) first_[j] = kernel(i, j);
            const double found = tiles<double>().dot(q_.data() + slot * stride_, first_.data(), size_);
            error = std::max(error, std::abs(found - (i == slot ? 1.0 : 0.0)));
        }
        return !(error <= most_error);
    }

    // Q from the kernel values of m points, kernel(i, j), by a Cholesky factor. A point whose part outside the span of
    // those before it is at most `tolerance` of k(x, x) is dependent(point, weights of those before it, part outside):
    // it is left out if that says so, and then Q is only good for being made again without it.
    template <class Kernel, class Dependent>
    void make(int m, double tolerance, Kernel&& kernel, Dependent&& dependent) {
        std::vector<int> kept;
        std::vector<std::vector<double>> lower, solved;  // L and L^-1, a row for each of the kept
        std::vector<double> l, w, all;
        for (int p = 0; p < m; ++p) {
            const int n = static_cast<int>(kept.size());
            const double kappa = kernel(p, p);
            double pivot = kappa;
            l.assign(n + 1, 0.0);
            w.assign(n + 1, 0.0);
            for (int i = 0; i < n; ++i) {
                l[i] = (kernel(p, kept[i]) - tiles<double>().dot(lower[i].data(), l.data(), i)) / lower[i][i];
                pivot -= l[i] * l[i];
                tiles<double>().rank_two(w.data(), l[i], solved[i].data(), 0.0, solved[i].data(), i + 1);
            }
            if (pivot <= tolerance * kappa) {
                all.assign(m, 0.0);
                for (int i = 0; i < n; ++i) all[kept[i]] = w[i];
                if (dependent(p, all, pivot > least_pivot * kappa ? pivot : 0.0)) continue;
            }
            l[n] = std::sqrt(std::max(pivot, least_pivot * kappa));
            for (int j = 0; j < n; ++j) w[j] /= -l[n];
            w[n] = 1 / l[n];
            lower.push_back(l);
            solved.push_back(w);
            kept.push_back(p);
        }
        const int n = static_cast<int>(kept.size());
        size_ = 0;
        waits_ = false;
        reserve(n);
        size_ = n;
        for (int i = 0; i < n; ++i) std::fill_n(q_.begin() + i * stride_, n, 0.0);
        second_.assign(n, 0.0);
        for (const std::vector<double>& row : solved) {  // Q = L^-T L^-1
            first_ = row;
            first_.resize(n, 0.0);
            apply(static_cast<int>(row.size()));
        }
        see_diagonal();
        active = true;
        age = 0;
    }

    // the lower triangle, row by row: Q is symmetric to the bit
    std::vector<double> triangle() const {
        if (waits_) {
            Inverse other(*this);
            other.settle();
            return other.triangle();
        }
        std::vector<double> values;
        values.reserve(static_cast<std::size_t>(size_) * (size_ + 1) / 2);
        for (int i = 0; i < size_; ++i) values.insert(values.end(), &q_[i * stride_], &q_[i * stride_] + i + 1);
        return values;
    }

    // as a field of a state (parts/part.hpp): the triangle, none while Q is not active; its age is a field of its own
    std::vector<double> packed() const { return active ? triangle() : std::vector<double>(); }
    static std::size_t packed_length(int points) { return static_cast<std::size_t>(points) * (points + 1) / 2; }
    static bool fits(const std::vector<double>& values, int points) {
        if (values.empty()) return true;
        if (points == 0 || values.size() != packed_length(points)) return false;
        if (!tiles<double>().finite(values.data(), values.size())) return false;
        for (std::size_t i = 0; i < static_cast<std::size_t>(points); ++i)
            if (!(values[i * (i + 3) / 2] > 0)) return false;
        return true;
    }
    void unpack(const std::vector<double>& values, int points) { set_triangle(values, values.empty() ? 0 : points); }

    void set_triangle(const std::vector<double>& values, int size) {
        size_ = 0;
        waits_ = false;
        reserve(size);
        size_ = size;
        const double* from = values.data();
        for (int i = 0; i < size; from += ++i) std::copy_n(from, i + 1, q_.begin() + i * stride_);
        for (int first = 0; first < size;
             first += 8)  // a few rows of the upper half at a time: a column would leave the cache
            for (int i = first; i < size; ++i)
                for (int j = first; j < std::min(i, first + 8); ++j) q_[j * stride_ + i] = q_[i * stride_ + j];
        see_diagonal();
        active = size > 0;
    }

private:
    std::vector<double> q_, diagonal_, first_, second_, share_;
    std::ptrdiff_t stride_ = 0;
    int size_ = 0;
    bool waits_ = false;  // first_ first_' - second_ second_' is still to be added

    static void scale(std::vector<double>& values, double factor) {
        for (double& x : values) x *= factor;
    }

    // Q += first first' - second second', for the first n rows and columns: now, or when Q is next multiplied
    void apply(int n) {
        for (int i = 0; i < n; ++i)
            tiles<double>().rank_two(q_.data() + i * stride_, first_[i], first_.data(), second_[i], second_.data(), n);
    }
    void update() {
        see_diagonal();
        tiles<double>().squares(diagonal_.data(), first_.data(), second_.data(), size_);
        for (std::vector<double>* values : {&first_, &second_}) values->resize((size_ + 7) / 8 * 8, 0.0);
        waits_ = true;
        ++age;
    }
    void settle() {
        if (waits_) apply(size_);
        waits_ = false;
    }
    void see_diagonal() {
        diagonal_.resize(size_);
        for (int i = 0; i < size_; ++i) diagonal_[i] = q_[i * stride_ + i];
    }

    void reserve(int m) {
        if (m <= stride_) return;
        const std::ptrdiff_t wider = wider_stride(stride_, m);
        std::vector<double> grown(static_cast<std::size_t>(wider) * wider);
        for (int i = 0; i < size_; ++i) std::copy_n(q_.begin() + i * stride_, size_, grown.begin() + i * wider);
        q_.swap(grown);
        stride_ = wider;
    }
};

}  // namespace gossamer
