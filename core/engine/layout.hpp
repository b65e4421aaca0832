// How the rows and points of a learner stand in memory: all their features, or the non-zeros only. A learner is written once
// for both; a layout has the types, and the few functions, in which they differ.
//
//   Batch    rows that the caller keeps; from(x, i, d): those from row i on
//   Rows     the rows of a block, and their kernel values
//   Points   support points
//   Matrix   rows of the learner's own; batch(matrix): as a batch
//   strip    support points whose kernel values are made together; a multiple of 16
//   values   what a row takes of the cache, in numbers
#pragma once
#include <cstdint>
#include <limits>
#include <vector>

#include "engine/points.hpp"
#include "engine/rows.hpp"
#include "engine/sparse_points.hpp"
#include "engine/sparse_rows.hpp"

namespace gossamer {

template <class T> struct DenseLayout {
    using Batch = const T*;
    using Rows = gossamer::Rows<T>;
    using Points = gossamer::Points<T>;
    using Matrix = std::vector<T>;
    static constexpr int strip = 128;
    static Batch from(Batch x, std::int64_t i, int d) { return x + i * d; }
    static Batch batch(const Matrix& rows) { return rows.data(); }
    static int values(int d) { return d; }
};

template <class T> struct SparseLayout {
    using Batch = SparseBatch<T>;
    using Rows = SparseRows<T>;
    using Points = SparsePoints<T>;
    using Matrix = SparseMatrix<T>;
    static constexpr int strip = std::numeric_limits<int>::max() / 16 * 16;  // the index of the points is passed once
    static Batch from(const Batch& x, std::int64_t i, int) { return {x.starts + i, x.columns, x.values}; }
    static Batch batch(const Matrix& rows) { return rows.batch(); }
    static int values(int) { return 64; }
};

}  // namespace gossamer
