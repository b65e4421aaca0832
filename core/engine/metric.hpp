// A symmetric positive semidefinite matrix over the points, for rules that learn the metric of their steps (parts/rules/newton.hpp).
//
// Kept are the lower triangle and the whole blocks of `block` rows and columns on the diagonal, rows padded with zeros to
// a block. Every change is a sum of outer products of a vector with itself. The last change waits until the matrix is next
// multiplied, so that a step passes over it once; whether it waits or not changes no bit.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <vector>

#include "engine/stride.hpp"
#include "simd/tiles.hpp"

namespace gossamer {

class Metric {
public:
    static constexpr double largest = 1e150;         // in a state from outside
    static constexpr double largest_change = 1e100;  // which only a forged matrix reaches: it then begins anew

    int size() const { return size_; }

    void clear() {
        size_ = 0;
        rank_ = 0;
    }

    // row `slot`
    void read(int slot, double* out) {
        settle();
        for (int i = 0; i < size_; ++i) out[i] = at(slot, i);
    }

    // out[i] = sum_j A_ij k[j], after the change that waits
    void multiply(const double* k, double* out) const {
        const int padded = pad(size_);
        padded_.assign(2 * padded, 0.0);
        std::copy_n(k, size_, padded_.begin());
        double* product = padded_.data() + padded;
        pass(padded_.data(), product);
        std::copy_n(product, size_, out);
    }

    // the rows as support points in panels (simd/tiles.hpp), which are the columns too
    void to_panels(std::vector<double>& panels) const {
        if (rank_ > 0) return settled().to_panels(panels);
        static_assert(block == panel_width<double>);
        panels.assign(static_cast<std::size_t>(pad(size_)) * size_, 0.0);
        const auto place = [&](int i, int j) {
            return panels.data() + (i / block * static_cast<std::ptrdiff_t>(size_) + j) * block;
        };
        for (int i = 0; i < size_; ++i) {
            const double* row = values_.data() + i * stride_;
            for (int j = 0; j < i; j += block) std::copy_n(row + j, std::min(block, i - j), place(j, i));
            for (int j = 0; j <= i; ++j) place(i, j)[i % block] = row[j];
        }
    }

    // rows of zeros up to n
    void extend(int n) {
        if (n <= size_) return;
        reserve(n);
        for (int i = size_; i < pad(n); ++i) std::fill_n(values_.begin() + i * stride_, i / block * block + block, 0.0);
        size_ = n;
        for (std::vector<double>& term : terms_) term.resize(pad(n), 0.0);
    }

    // A += w u u', for w >= 0
    void add(double w, const double* u) {
        settle();
        scale_into(terms_[0], std::sqrt(w), u);
        rank_ = 1;
        if (!is_small(terms_[0])) begin_anew();
    }

    // A becomes its Schur complement: the observation of a slot is deleted. Its row, from read(), and its pivot; 0: none.
    void erase(int slot, const double* row, double pivot) {
        settle();
        for (std::vector<double>& term : terms_) term.assign(pad(size_), 0.0);
        if (pivot > 0) {
            scale_into(terms_[1], 1 / std::sqrt(pivot), row);
            rank_ = 3;
            settle();
        }
        for (int j = 0; j < size_; ++j) set(slot, j, 0.0);
    }

    // A <- P A P' with P = I + change e_slot', and then A += w u u'
    void map(int slot, const double* change, double w, const double* u) {
        settle();
        const double own = at(slot, slot);
        // change b' + b change' with b = A_slot + A_ss change / 2, as a difference of two squares of balanced vectors
        auto& [plus, minus, scaled] = terms_;
        plus.assign(pad(size_), 0.0);
        minus.assign(pad(size_), 0.0);
        double first = 0, second = 0;
        for (int i = 0; i < size_; ++i) {
            minus[i] = at(slot, i) + 0.5 * own * change[i];
            first += change[i] * change[i];
            second += minus[i] * minus[i];
        }
        const double balance = first > 0 && second > 0 ? std::sqrt(std::sqrt(second / first)) : 1.0;
        const double half = std::sqrt(0.5);
        for (int i = 0; i < size_; ++i) {
            const double a = half * balance * change[i], b = half / balance * minus[i];
            plus[i] = a + b;
            minus[i] = a - b;
        }
        scale_into(scaled, std::sqrt(w), u);
        rank_ = 3;
        if (!is_small(plus) || !is_small(minus) || !is_small(scaled)) begin_anew();
    }

    // the last slot takes the place of a slot
    void remove(int slot) {
        settle();
        const int last = size_ - 1;
        for (int j = 0; j < last && slot != last; ++j)
            if (j != slot) set(slot, j, at(last, j));
        if (slot != last) set(slot, slot, at(last, last));
        for (int j = 0; j <= last; ++j) set(last, j, 0.0);
        --size_;
    }

    void scale(double factor) {
        settle();
        for (int i = 0; i < size_; ++i)
            for (int j = 0; j < i / block * block + block; ++j) values_[i * stride_ + j] *= factor;
    }

    // as a field of a state (parts/part.hpp): the lower triangle
    std::vector<double> packed() const {
        if (rank_ > 0) return settled().packed();
        std::vector<double> triangle;
        triangle.reserve(static_cast<std::size_t>(size_) * (size_ + 1) / 2);
        for (int i = 0; i < size_; ++i)
            triangle.insert(triangle.end(), values_.begin() + i * stride_, values_.begin() + i * stride_ + i + 1);
        return triangle;
    }
    static std::optional<std::size_t> packed_length(int) { return std::nullopt; }
    static bool fits(const std::vector<double>& values, int points) {
        return rows_of(values) >= 0 && rows_of(values) <= points &&
               std::all_of(values.begin(), values.end(), [](double a) { return std::abs(a) <= largest; });
    }
    void unpack(const std::vector<double>& values, int) {
        clear();
        extend(rows_of(values));
        const double* from = values.data();
        for (int i = 0; i < size_; ++i)
            for (int j = 0; j <= i; ++j) set(i, j, *from++);
    }

private:
    static constexpr int block = panel_width<double>;
    // mutable: a product is no change, but takes the change that waits
    mutable std::vector<double> values_, padded_;
    std::vector<double> terms_[3];  // the change that waits: A += t0 t0' - t1 t1' + t2 t2', or t0 t0' alone
    mutable int rank_ = 0;          // their number: 0, 1 or 3
    std::ptrdiff_t stride_ = 0;
    int size_ = 0;

    static int pad(int n) { return (n + block - 1) / block * block; }
    double at(int i, int j) const { return i < j ? values_[j * stride_ + i] : values_[i * stride_ + j]; }
    void set(int i, int j, double value) {
        values_[std::max(i, j) * stride_ + std::min(i, j)] = value;
        if (i / block == j / block) values_[std::min(i, j) * stride_ + std::max(i, j)] = value;
    }

    // the change that waits, and a product, if k is not null
    void pass(const double* k, double* out) const {
        const double* const terms[3] = {terms_[0].data(), terms_[1].data(), terms_[2].data()};
        for (int i = 0; i < size_; i += block)
            tiles<double>().reflect(values_.data() + i * stride_, stride_, i, terms, rank_, k, out);
        rank_ = 0;
    }
    void settle() {
        if (rank_ > 0) pass(nullptr, nullptr);
    }
    Metric settled() const {
        Metric other(*this);
        other.settle();
        return other;
    }

    static bool is_small(const std::vector<double>& u) {
        return std::all_of(u.begin(), u.end(), [](double x) { return x * x <= largest_change; });
    }
    void begin_anew() {
        std::fill(values_.begin(), values_.end(), 0.0);
        rank_ = 0;
    }

    void scale_into(std::vector<double>& out, double factor, const double* u) const {
        out.assign(pad(size_), 0.0);
        for (int i = 0; i < size_; ++i) out[i] = factor * u[i];
    }

    // the rows of a triangle, -1 if it is none
    static int rows_of(const std::vector<double>& values) {
        const auto rows =
            static_cast<std::size_t>((std::sqrt(8.0 * static_cast<double>(values.size()) + 1) - 1) / 2 + 0.5);
        return rows * (rows + 1) / 2 == values.size() ? static_cast<int>(rows) : -1;
    }

    void reserve(int m) {
        if (m <= stride_) return;
        const std::ptrdiff_t wider = wider_stride(stride_, m);
        std::vector<double> grown(static_cast<std::size_t>(wider) * wider);
        for (int i = 0; i < pad(size_); ++i)
            std::copy_n(values_.begin() + i * stride_, i / block * block + block, grown.begin() + i * wider);
        values_.swap(grown);
        stride_ = wider;
    }
};

}  // namespace gossamer
