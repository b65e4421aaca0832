// Kernel values of rows against support points: of a packed block of rows, or of one row.
#pragma once
#include <algorithm>
#include <vector>

#include "kernels.hpp"
#include "points.hpp"
#include "rules.hpp"
#include "tiles.hpp"

namespace gossamer {

template <class T> void at_least(std::vector<T>& buffer, std::size_t room) {
    if (buffer.size() < room) buffer.resize(room);
}

// A block of rows packed for products, with the buffers its kernel values are made in.
template <class T> struct Rows {
    int count = 0;          // rows
    int panels = 0;
    std::ptrdiff_t ld = 0;  // columns of a strip: count rounded up
    T largest = 0;          // of the norms
    std::vector<T> packed, norms;

    void pack(const T* x, int rows, int d) {
        const Tiles<T>& ops = tiles<T>();
        count = rows;
        panels = (rows + ops.lanes - 1) / ops.lanes;
        const std::size_t used = static_cast<std::size_t>(panels) * ops.lanes;
        ld = static_cast<std::ptrdiff_t>((used + 15) / 16 * 16);
        at_least(packed, used * d);
        at_least(norms, ld);
        for (int p = 0; p < panels; ++p) {
            const int first = p * ops.lanes;
            T* panel = packed.data() + static_cast<std::ptrdiff_t>(first) * d;
            ops.pack(x + static_cast<std::ptrdiff_t>(first) * d, d, std::min(ops.lanes, rows - first), d, panel);
            ops.norms(panel, d, norms.data() + first);
        }
        largest = ops.largest(norms.data(), rows);
    }

    // one row, for the row-wise path
    void single(const T* x, int d) {
        count = 1;
        at_least(norms, 16);
        norms[0] = tiles<T>().norm(x, d);
    }

    // kappas[t] = k(row t, row t), what counts as zero made zero
    void diagonal(const Kernel& kernel, std::vector<double>& kappas) {
        const std::size_t padded = (static_cast<std::size_t>(count) + 15) / 16 * 16;
        at_least(norms, padded);
        at_least(exact_, padded);
        at_least(stack_, kernel.deepest() * padded);
        kernel.diagonal(norms.data(), static_cast<int>(padded), stack_.data(), exact_.data());
        at_least(kappas, count);
        for (int t = 0; t < count; ++t) {
            const double kappa = static_cast<double>(exact_[t]);
            kappas[t] = kappa > tiny_kappa ? kappa : 0.0;
        }
    }

    // out[(j - j0) * ld + row] = k(point j, row), for the rows from panel p0 on
    void against(const Kernel& kernel, const Points<T>& points, int d, int j0, int j1, int p0, T* out) {
        const Tiles<T>& ops = tiles<T>();
        const int first = p0 * ops.lanes, columns = (panels - p0) * ops.lanes;
        const T* x = packed.data() + static_cast<std::ptrdiff_t>(first) * d;
        T* values[3] = {};
        for (Pair pair : all_pairs) {
            if (!kernel.needs(pair)) continue;
            T*& to = values[static_cast<int>(pair)];
            to = kernel.in_place() ? out : buffer(pair, static_cast<std::size_t>(j1 - j0) * ld);
            ops.cross(pair, x, panels - p0, d, points.data(), j0, j1, to + first, ld);
        }
        at_least(stack_, static_cast<std::size_t>(kernel.deepest()) * ld);
        for (int j = j0; j < j1; ++j) {
            const std::ptrdiff_t at = (j - j0) * ld + first;
            const T* strips[3];
            for (int i = 0; i < 3; ++i) strips[i] = values[i] == nullptr ? nullptr : values[i] + at;
            const auto exact = [&] {
                at_least(exact_, ld);
                ops.cross(Pair::distance2, x, panels - p0, d, points.data(), j, j + 1, exact_.data(), ld);
                return static_cast<const T*>(exact_.data());
            };
            kernel.apply(strips, norms.data() + first, points.norms()[j], largest, columns, stack_.data(), out + at,
                         exact);
        }
    }

    // out[j] = k(point j, x) for the row given to single(); out has room for points.padded()
    void against_single(const Kernel& kernel, const Points<T>& points, const T* x, int d, T* out) {
        const Tiles<T>& ops = tiles<T>();
        const int m = points.size();
        if (m == 0) return;
        const T* values[3] = {};
        for (Pair pair : all_pairs) {
            if (!kernel.needs(pair)) continue;
            T* to = kernel.in_place() ? out : buffer(pair, points.padded());
            ops.row(pair, x, d, points.data(), m, to);
            values[static_cast<int>(pair)] = to;
        }
        at_least(stack_, static_cast<std::size_t>(kernel.deepest()) * points.padded());
        const auto exact = [&] {
            at_least(exact_, points.padded());
            ops.row(Pair::distance2, x, d, points.data(), m, exact_.data());
            return static_cast<const T*>(exact_.data());
        };
        kernel.apply(values, points.norms(), norms[0], ops.largest(points.norms(), m), points.padded(), stack_.data(),
                     out, exact);
    }

private:
    std::vector<T> pairs_[3], stack_, exact_;

    T* buffer(Pair pair, std::size_t room) {
        std::vector<T>& values = pairs_[static_cast<int>(pair)];
        at_least(values, room);
        return values.data();
    }
};

}  // namespace gossamer
