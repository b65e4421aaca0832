// The twin of Rows (rows.hpp) for sparse rows: their kernel values against support points. The methods have the same names
// and leave the same numbers, so that a learner is written once for both (layout.hpp).
#pragma once
#include <algorithm>
#include <vector>

#include "engine/kernel.hpp"
#include "engine/rows.hpp"
#include "engine/sparse_points.hpp"
#include "parts/rules/base.hpp"
#include "simd/tiles.hpp"

namespace gossamer {

template <class T> struct SparseRows {
    int count = 0;  // rows
    int panels = 0;
    std::ptrdiff_t ld = 0;  // columns of a strip: count rounded up
    T largest = 0;          // of the norms
    std::vector<T> norms;

    void pack(const SparseBatch<T>& x, int rows, int) {
        const Tiles<T>& ops = tiles<T>();
        x_ = x;
        count = rows;
        panels = (rows + ops.lanes - 1) / ops.lanes;
        const std::size_t used = static_cast<std::size_t>(panels) * ops.lanes;
        ld = static_cast<std::ptrdiff_t>((used + 15) / 16 * 16);
        norms.assign(ld, T(0));
        for (int t = 0; t < rows; ++t) norms[t] = norm(x.row(t));
        largest = ops.largest(norms.data(), rows);
    }

    void single(const SparseBatch<T>& x, int) {
        x_ = x;
        count = 1;
        norms.assign(16, T(0));
        norms[0] = norm(x.row(0));
    }

    // kappas[t] = k(row t, row t), tiny values rounded to zero
    void diagonal(const Kernel& kernel, int, std::vector<double>& kappas) {
        const std::size_t padded = (static_cast<std::size_t>(count) + 15) / 16 * 16;
        at_least(exact_, padded);
        at_least(stack_, kernel.deepest() * padded);
        kernel.diagonal(norms.data(), static_cast<const T* const*>(nullptr), static_cast<int>(padded), stack_.data(),
                        exact_.data());
        at_least(kappas, count);
        for (int t = 0; t < count; ++t) {
            const double kappa = static_cast<double>(exact_[t]);
            kappas[t] = kappa > tiny_kappa ? kappa : 0.0;
        }
    }

    // out[(j - j0) * ld + row] = k(point j, row), for the rows from panel p0 on
    void against(const Kernel& kernel, const SparsePoints<T>& points, int, int j0, int j1, int p0, T* out) {
        const int lanes = tiles<T>().lanes, first = p0 * lanes, columns = (panels - p0) * lanes;
        T* values[most_values] = {};
        for (Pair pair : all_pairs) {
            if (!kernel.needs(pair)) continue;
            T* to = values[static_cast<int>(pair)] =
                kernel.in_place() ? out : buffer(pair, static_cast<std::size_t>(j1 - j0) * ld);
            for (int j = j0; j < j1; ++j) std::fill_n(to + (j - j0) * ld + first, columns, T(0));
            if (pair == Pair::product && j1 - j0 > 1)
                for (int t = first; t < count; ++t) multiply(points, x_.row(t), j0, j1, to + t, ld);
            else
                for (int j = j0; j < j1; ++j) compare(pair, points.row(j), first, to + (j - j0) * ld);
        }
        at_least(stack_, static_cast<std::size_t>(kernel.deepest()) * ld);
        for (int j = j0; j < j1; ++j) {
            const std::ptrdiff_t at = (j - j0) * ld + first;
            const T* strips[most_values];
            for (int i = 0; i < most_values; ++i) strips[i] = values[i] == nullptr ? nullptr : values[i] + at;
            const auto exact = [&] {
                exact_.assign(ld, T(0));
                compare(Pair::distance2, points.row(j), first, exact_.data());
                return static_cast<const T*>(exact_.data()) + first;
            };
            kernel.apply(strips, norms.data() + first, points.norms()[j], largest, columns, stack_.data(), out + at,
                         exact);
        }
    }

    // out[j] = k(point j, x) for the row given to single(); out has room for points.padded()
    void against_single(const Kernel& kernel, const SparsePoints<T>& points, const SparseBatch<T>& x, int, T* out) {
        const Tiles<T>& ops = tiles<T>();
        const int m = points.size(), padded = points.padded();
        if (m == 0) return;
        const SparseRow<T> row = x.row(0);
        const auto measure = [&](Pair pair, T* to) {
            for (int j = 0; j < m; ++j) to[j] = between(pair, row, points.row(j));
        };
        T* values[most_values] = {};
        for (Pair pair : all_pairs) {
            if (!kernel.needs(pair)) continue;
            T* to = values[static_cast<int>(pair)] = kernel.in_place() ? out : buffer(pair, padded);
            std::fill_n(to, padded, T(0));
            pair == Pair::product ? multiply(points, row, 0, m, to, 1) : measure(pair, to);
        }
        at_least(stack_, static_cast<std::size_t>(kernel.deepest()) * padded);
        const auto exact = [&] {
            exact_.assign(padded, T(0));
            measure(Pair::distance2, exact_.data());
            return static_cast<const T*>(exact_.data());
        };
        kernel.apply(values, points.norms(), norms[0], ops.largest(points.norms(), m), padded, stack_.data(), out,
                     exact);
    }

private:
    static T norm(const SparseRow<T>& x) { return tiles<T>().norm(x.values, x.count); }
    static T between(Pair pair, const SparseRow<T>& a, const SparseRow<T>& b) {
        return tiles<T>().merge(pair, a.columns, a.values, a.count, b.columns, b.values, b.count);
    }

    // to[(j - j0) * apart] = <x, point j>, for points that share a column with x; 0 stays 0 of the others
    static void multiply(const SparsePoints<T>& points, const SparseRow<T>& x, int j0, int j1, T* to,
                         std::ptrdiff_t apart) {
        for (int k = 0; k < x.count; ++k)
            if (const std::vector<Posting<T>>* found = points.find(x.columns[k]))
                tiles<T>().scatter(found->data(), static_cast<int>(found->size()), x.values[k], j0, j1, to, apart);
    }

    // to[t] of one point and the rows from `first` on
    void compare(Pair pair, const SparseRow<T>& point, int first, T* to) const {
        for (int t = first; t < count; ++t) to[t] = between(pair, x_.row(t), point);
    }

    T* buffer(Pair pair, std::size_t room) {
        std::vector<T>& values = pairs_[static_cast<int>(pair)];
        at_least(values, room);
        return values.data();
    }

    SparseBatch<T> x_{};
    std::vector<T> pairs_[additive_from], stack_, exact_;
};

}  // namespace gossamer
