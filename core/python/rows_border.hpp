// Rows at the border: a matrix of all features, or the three arrays of sparse rows (starts, columns, values).
#pragma once
#include <nanobind/stl/tuple.h>

#include <cstdint>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/learner.hpp"
#include "python/arrays.hpp"

namespace gossamer {

template <class T> using SparseArrays = std::tuple<Vector<std::int64_t>, Vector<Column>, Vector<T>>;

template <class T> std::size_t count_rows(const Matrix<T>& x) { return x.shape(0); }
template <class T> const T* batch_of(const Matrix<T>& x, int features, const char* what) {
    expect(x.shape(1), features, what);
    return x.data();
}
template <class T> std::vector<T> matrix_of(const Matrix<T>& x) { return {x.data(), x.data() + x.size()}; }

template <class T> std::size_t count_rows(const SparseArrays<T>& x) {
    const std::size_t starts = std::get<0>(x).size();
    return starts == 0 ? 0 : starts - 1;
}
// The caller has checked the columns; here only what memory depends on.
template <class T> SparseBatch<T> batch_of(const SparseArrays<T>& x, int, const char* what) {
    const auto& [starts, columns, values] = x;
    const std::int64_t* at = starts.data();
    bool fits = starts.size() > 0 && at[0] >= 0 && at[starts.size() - 1] <= static_cast<std::int64_t>(values.size());
    for (std::size_t i = 1; fits && i < starts.size(); ++i) fits = at[i] >= at[i - 1];
    if (!fits || columns.size() != values.size())
        throw std::invalid_argument(std::string("The '") + what + "' parameter of the core must be sparse rows.");
    return {at, columns.data(), values.data()};
}
template <class T> SparseMatrix<T> matrix_of(const SparseArrays<T>& x) {
    const SparseBatch<T> batch = batch_of(x, 0, "points");
    SparseMatrix<T> rows;
    for (std::size_t i = 0; i < count_rows(x); ++i) {
        const SparseRow<T> row = batch.row(static_cast<std::int64_t>(i));
        for (int k = 0; k < row.count; ++k) rows.add(row.columns[k], row.values[k]);
        rows.end_row();
    }
    return rows;
}

template <class T> nanobind::object to_python(std::vector<T>&& rows, int features) {
    return nanobind::cast(matrix(std::move(rows), features));
}
template <class T> nanobind::object to_python(SparseMatrix<T>&& rows, int) {
    return nanobind::make_tuple(array(std::move(rows.starts)), array(std::move(rows.columns)),
                                array(std::move(rows.values)));
}

// The argument that a learner takes rows in, and its rows inside.
template <class T, class L> struct Border {
    using Argument = Matrix<T>;
    using Rows = std::vector<T>;
};
template <class T> struct Border<T, Learner<T, SparseLayout<T>>> {
    using Argument = SparseArrays<T>;
    using Rows = SparseMatrix<T>;
};

}  // namespace gossamer
