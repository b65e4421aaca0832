// Kernel values of rows against support points: of a packed block of rows, or of one row.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "engine/kernel.hpp"
#include "engine/points.hpp"
#include "parts/rules/base.hpp"
#include "simd/tiles.hpp"

namespace gossamer {

template <class T> void at_least(std::vector<T>& buffer, std::size_t room) {
    if (buffer.size() < room) buffer.resize(room);
}

// A block of rows packed for products, with the buffers its kernel values are made in.
template <class T> struct Rows {
    int count = 0;  // rows
    int panels = 0;
    std::ptrdiff_t ld = 0;  // columns of a strip: count rounded up
    T largest = 0;          // of the norms
    std::vector<T> packed, norms;

    void pack(const T* x, int rows, int d) {
        const Tiles<T>& ops = tiles<T>();
        count = rows;
        single_ = nullptr;
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

    // one row, for the row-wise path; x stays where it is
    void single(const T* x, int d) {
        count = 1;
        single_ = x;
        at_least(norms, 16);
        norms[0] = tiles<T>().norm(x, d);
    }

    // kappas[t] = k(row t, row t), tiny values rounded to zero
    void diagonal(const Kernel& kernel, int d, std::vector<double>& kappas) {
        const std::size_t padded = (static_cast<std::size_t>(count) + 15) / 16 * 16;
        at_least(norms, padded);
        at_least(exact_, padded);
        at_least(stack_, kernel.deepest() * padded);
        const T* additive[most_values];
        for (std::size_t i = 0; i < kernel.additive().size(); ++i) {
            T* to = buffer(additive_from + static_cast<int>(i), padded);
            for (int t = 0; t < count; ++t) {
                double sum = 0;
                for (const Coordinate& c : kernel.additive()[i]) {
                    const double key = static_cast<double>(this->key(c, t, d));
                    sum += c.kernel(key, key);
                }
                to[t] = static_cast<T>(sum);
            }
            additive[i] = to;
        }
        kernel.diagonal(norms.data(), additive, static_cast<int>(padded), stack_.data(), exact_.data());
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
        T* values[most_values] = {};
        const auto room = [&](int i) {
            return values[i] = kernel.in_place() ? out : buffer(i, static_cast<std::size_t>(j1 - j0) * ld);
        };
        for (Pair pair : all_pairs) {
            if (!kernel.needs(pair)) continue;
            T* to = room(static_cast<int>(pair));
            ops.cross(pair, x, panels - p0, d, points.data(), j0, j1, to + first, ld);
        }
        for (std::size_t i = 0; i < kernel.additive().size(); ++i) {
            T* to = room(additive_from + static_cast<int>(i));
            for (int j = j0; j < j1; ++j) std::fill_n(to + (j - j0) * ld + first, columns, T(0));
            at_least(keys_, ld);
            for (const Coordinate& c : kernel.additive()[i]) {
                for (int t = 0; t < columns; ++t) keys_[t] = key(c, first + t, d);
                for (int j = j0; j < j1; ++j)
                    add(c, c.key(points.lane(j), Points<T>::width), keys_.data(), columns, to + (j - j0) * ld + first);
            }
        }
        at_least(stack_, static_cast<std::size_t>(kernel.deepest()) * ld);
        for (int j = j0; j < j1; ++j) {
            const std::ptrdiff_t at = (j - j0) * ld + first;
            const T* strips[most_values];
            for (int i = 0; i < most_values; ++i) strips[i] = values[i] == nullptr ? nullptr : values[i] + at;
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
        T* values[most_values] = {};
        const auto room = [&](int i) { return values[i] = kernel.in_place() ? out : buffer(i, points.padded()); };
        for (Pair pair : all_pairs)
            if (kernel.needs(pair)) ops.row(pair, x, d, points.data(), m, room(static_cast<int>(pair)));
        for (std::size_t i = 0; i < kernel.additive().size(); ++i) {
            T* to = room(additive_from + static_cast<int>(i));
            std::fill_n(to, points.padded(), T(0));
            at_least(keys_, points.padded());
            for (const Coordinate& c : kernel.additive()[i]) {
                for (int j = 0; j < m; ++j) keys_[j] = c.key(points.lane(j), Points<T>::width);
                for (int j = m; j < points.padded(); ++j) keys_[j] = 0;
                add(c, c.key(x), keys_.data(), points.padded(), to);
            }
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
    std::vector<T> pairs_[most_values], stack_, exact_, keys_;
    const T* single_ = nullptr;

    T* buffer(int i, std::size_t room) {
        at_least(pairs_[i], room);
        return pairs_[i].data();
    }

    // the key of row t (0 for the padding)
    T key(const Coordinate& c, int t, int d) const {
        if (single_ != nullptr) return c.key(single_);
        const int lanes = tiles<T>().lanes;
        return c.key(packed.data() + static_cast<std::ptrdiff_t>(t / lanes) * lanes * d + t % lanes, lanes);
    }

    static void add(const Coordinate& c, T x, const T* keys, int n, T* out) {
        const int count = static_cast<int>(c.terms.size());
        if constexpr (sizeof(T) == 4)
            onedim().add32(c.terms.data(), count, x, keys, n, out);
        else
            onedim().add64(c.terms.data(), count, x, keys, n, out);
    }
};

// Whether a row may be learned or scored: finite, in the kernel's domain, and k(x, x) finite, which is computed unless it is
// known to be bounded.
template <class T> bool accepts(const Kernel& kernel, const T* x, int d, bool bounded) {
    if (!tiles<T>().finite(x, d) || !kernel.inside(x)) return false;
    if (bounded) return true;
    static thread_local Rows<T> row;
    static thread_local std::vector<double> kappa;
    row.single(x, d);
    row.diagonal(kernel, d, kappa);
    return std::isfinite(kappa[0]);
}

}  // namespace gossamer
