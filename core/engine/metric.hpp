// A symmetric positive semidefinite matrix over the points, for rules that learn the metric of their steps (parts/rules/newton.hpp).
// Its lower triangle is kept; every change is a sum of outer products of a vector with itself.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <vector>

#include "simd/tiles.hpp"

namespace gossamer {

class Metric {
public:
    static constexpr double largest = 1e150;         // in a state from outside
    static constexpr double largest_change = 1e100;  // which only a forged matrix reaches: it then begins anew

    int size() const { return size_; }
    double at(int i, int j) const { return i < j ? values_[j * stride_ + i] : values_[i * stride_ + j]; }

    void clear() { size_ = 0; }

    // out[i] = sum_j A_ij k[j]
    void multiply(const double* k, double* out) const {
        int i = 0;
        for (; i + 4 <= size_; i += 4) {
            tiles<double>().reflect(values_.data() + i * stride_, stride_, k, k + i, i, out, out + i);
            reflect(i, i + 4, i, k, out);
        }
        std::fill(out + i, out + size_, 0.0);
        reflect(i, size_, 0, k, out);
    }

    // the rows as support points in panels (simd/tiles.hpp), which are the columns too
    void to_panels(std::vector<double>& panels) const {
        constexpr int width = panel_width<double>;
        panels.assign(static_cast<std::size_t>((size_ + width - 1) / width * width) * size_, 0.0);
        const auto place = [&](int i, int j) {
            return panels.data() + (i / width * static_cast<std::ptrdiff_t>(size_) + j) * width;
        };
        for (int i = 0; i < size_; ++i) {
            const double* row = values_.data() + i * stride_;
            for (int j = 0; j < i; j += width) std::copy_n(row + j, std::min(width, i - j), place(j, i));
            for (int j = 0; j <= i; ++j) place(i, j)[i % width] = row[j];
        }
    }

    // rows of zeros up to n
    void extend(int n) {
        if (n <= size_) return;
        reserve(n);
        for (int i = size_; i < n; ++i) std::fill_n(values_.begin() + i * stride_, i + 1, 0.0);
        size_ = n;
    }

    // A += w u u', for w >= 0
    void add(double w, const double* u) {
        scale_into(scaled_, std::sqrt(w), u);
        if (!is_small(scaled_)) return begin_anew();
        for (int i = 0; i < size_; ++i)
            tiles<double>().rank_two(values_.data() + i * stride_, scaled_[i], scaled_.data(), 0.0, scaled_.data(),
                                     i + 1);
    }

    // A <- P A P' with P = I + change e_slot', and then A += w u u': one pass over the matrix
    void map(int slot, const double* change, double w, const double* u) {
        const double own = at(slot, slot);
        // change b' + b change' with b = A_slot + A_ss change / 2, as a difference of two squares of balanced vectors
        plus_.resize(size_);
        minus_.resize(size_);
        double first = 0, second = 0;
        for (int i = 0; i < size_; ++i) {
            minus_[i] = at(slot, i) + 0.5 * own * change[i];
            first += change[i] * change[i];
            second += minus_[i] * minus_[i];
        }
        const double balance = first > 0 && second > 0 ? std::sqrt(std::sqrt(second / first)) : 1.0;
        const double half = std::sqrt(0.5);
        for (int i = 0; i < size_; ++i) {
            const double a = half * balance * change[i], b = half / balance * minus_[i];
            plus_[i] = a + b;
            minus_[i] = a - b;
        }
        scale_into(scaled_, std::sqrt(w), u);
        if (!is_small(scaled_) || !is_small(plus_) || !is_small(minus_)) return begin_anew();
        for (int i = 0; i < size_; ++i)
            tiles<double>().rank_three(values_.data() + i * stride_, plus_[i], plus_.data(), minus_[i], minus_.data(),
                                       scaled_[i], scaled_.data(), i + 1);
    }

    // the last slot takes the place of a slot
    void remove(int slot) {
        const int last = --size_;
        if (slot == last) return;
        const double own = at(last, last);
        for (int j = 0; j < slot; ++j) values_[slot * stride_ + j] = values_[last * stride_ + j];
        for (int i = slot + 1; i < last; ++i) values_[i * stride_ + slot] = values_[last * stride_ + i];
        values_[slot * stride_ + slot] = own;
    }

    void scale(double factor) {
        for (int i = 0; i < size_; ++i)
            for (int j = 0; j <= i; ++j) values_[i * stride_ + j] *= factor;
    }

    // as a field of a state (parts/part.hpp): the lower triangle
    std::vector<double> packed() const {
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
        size_ = 0;
        const int rows = rows_of(values);
        reserve(rows);
        size_ = rows;
        const double* from = values.data();
        for (int i = 0; i < rows; from += ++i) std::copy_n(from, i + 1, values_.begin() + i * stride_);
    }

private:
    std::vector<double> values_, scaled_, plus_, minus_;
    std::ptrdiff_t stride_ = 0;
    int size_ = 0;

    static bool is_small(const std::vector<double>& u) {
        return std::all_of(u.begin(), u.end(), [](double x) { return x * x <= largest_change; });
    }
    void begin_anew() {
        for (int i = 0; i < size_; ++i) std::fill_n(values_.begin() + i * stride_, i + 1, 0.0);
    }

    void scale_into(std::vector<double>& out, double factor, const double* u) const {
        out.resize(size_);
        for (int i = 0; i < size_; ++i) out[i] = factor * u[i];
    }

    // the rows from `first` on, and of them the columns from `column` on
    void reflect(int first, int last, int column, const double* k, double* out) const {
        for (int i = first; i < last; ++i) {
            const double* row = values_.data() + i * stride_;
            double sum = row[i] * k[i];
            for (int j = column; j < i; ++j) {
                sum += row[j] * k[j];
                out[j] += row[j] * k[i];
            }
            out[i] += sum;
        }
    }

    // the rows of a triangle, -1 if it is none
    static int rows_of(const std::vector<double>& values) {
        const auto rows =
            static_cast<std::size_t>((std::sqrt(8.0 * static_cast<double>(values.size()) + 1) - 1) / 2 + 0.5);
        return rows * (rows + 1) / 2 == values.size() ? static_cast<int>(rows) : -1;
    }

    void reserve(int m) {
        if (m <= stride_) return;
        // an odd number of cache lines: a power of two would send a whole column to the same few cache sets
        const std::ptrdiff_t wider = ((std::max<std::ptrdiff_t>(2 * stride_, m) + 7) / 8 | 1) * 8;
        std::vector<double> grown(static_cast<std::size_t>(wider) * wider);
        for (int i = 0; i < size_; ++i) std::copy_n(values_.begin() + i * stride_, i + 1, grown.begin() + i * wider);
        values_.swap(grown);
        stride_ = wider;
    }
};

}  // namespace gossamer
