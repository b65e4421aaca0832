// The border between Python and functions of rows, targets and scores, without a learner.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <stdexcept>
#include <tuple>
#include <vector>

#include "engine/class_weights.hpp"
#include "engine/clock.hpp"
#include "engine/scaler.hpp"
#include "engine/sparse_scaler.hpp"
#include "engine/targets.hpp"
#include "python/arrays.hpp"
#include "python/rows_border.hpp"
#include "simd/tiles.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace gossamer;

namespace {

template <class T> void bind_checks(nb::module_& m) {
    m.def(
        "all_finite",
        [](Matrix<T> x) {
            nb::gil_scoped_release release;
            return tiles<T>().finite(x.data(), x.size());
        },
        "x"_a, "Whether no entry is NaN or infinite.");
    m.def(
        "longest_row",
        [](Matrix<T> x) {
            nb::gil_scoped_release release;
            T norm;
            const std::size_t row = tiles<T>().longest(x.data(), x.shape(0), static_cast<int>(x.shape(1)), &norm);
            return std::pair<std::size_t, double>(row, static_cast<double>(norm));
        },
        "x"_a, "The row of the largest squared norm, or the first whose norm is not finite; and that norm.");
}

template <class T> void bind_sparse(nb::module_& m) {
    m.def(
        "squared_norms",
        [](Vector<std::int64_t> starts, Vector<T> values, VectorOut<T> out) {
            expect(starts.size(), out.size() + 1, "starts");
            nb::gil_scoped_release release;
            for (std::size_t i = 0; i < out.size(); ++i) {
                const std::int64_t from = starts.data()[i], to = starts.data()[i + 1];
                if (from < 0 || to < from || to > static_cast<std::int64_t>(values.size()))
                    throw std::invalid_argument("The 'starts' parameter of the core must be those of its values.");
                out.data()[i] = tiles<T>().norm(values.data() + from, static_cast<int>(to - from));
            }
        },
        "starts"_a, "values"_a, "out"_a, "Write the squared norm of each sparse row.");
    m.def(
        "scale_sparse_rows",
        [](SparseArrays<T> x, std::optional<VectorOut<T>> z, VectorOut<double> mean, VectorOut<double> squares,
           VectorOut<std::int64_t> touched, double origin, std::int64_t round, double keep, bool divide) {
            const SparseBatch<T> batch = batch_of(x, 0, "x");
            const std::size_t rows = count_rows(x), features = mean.size();
            expect(squares.size(), features, "squares");
            expect(touched.size(), features, "touched");
            if (z) expect(z->size(), std::get<2>(x).size(), "z");
            const Column* columns = std::get<1>(x).data();
            for (std::size_t i = 0; i < std::get<1>(x).size(); ++i)
                if (columns[i] < 0 || static_cast<std::size_t>(columns[i]) >= features)
                    throw std::invalid_argument("The 'x' parameter of the core must have columns of its features.");
            nb::gil_scoped_release release;
            scale_sparse_rows<T>(batch, static_cast<std::int64_t>(rows), z ? z->data() : nullptr, {keep, origin}, round,
                                 divide, mean.data(), squares.data(), touched.data());
        },
        "x"_a, "z"_a.none(), "mean"_a, "squares"_a, "touched"_a, "origin"_a, "round"_a, "keep"_a, "divide"_a,
        "Learn sparse rows in place, and write their values, scaled, to z.");
}

template <class T> void bind_scaler(nb::module_& m) {
    m.def(
        "scale_rows",
        [](Matrix<T> x, std::optional<MatrixOut<T>> z, VectorOut<double> mean, VectorOut<double> squares, double weight,
           double keep, bool centre, bool divide, std::optional<Vector<double>> fades) {
            expect(mean.size(), x.shape(1), "mean");
            expect(squares.size(), x.shape(1), "squares");
            if (z) expect(z->size(), x.size(), "z");
            if (fades) expect(fades->size(), x.shape(0), "fades");
            nb::gil_scoped_release release;
            return scale_rows<T>(x.data(), z ? z->data() : nullptr, static_cast<std::int64_t>(x.shape(0)),
                                 static_cast<int>(x.shape(1)), mean.data(), squares.data(), weight, keep,
                                 fades ? fades->data() : nullptr, centre, divide);
        },
        "x"_a, "z"_a.none(), "mean"_a, "squares"_a, "weight"_a, "keep"_a, "centre"_a, "divide"_a,
        "fades"_a.none() = nb::none(),
        "Learn the rows of x in place and write them, scaled, to z; returns the sum of weights.");
}

void bind_class_weights(nb::module_& m) {
    m.def(
        "balance",
        [](Vector<double> codes, std::optional<Vector<double>> weights, std::optional<Vector<double>> fades,
           VectorOut<double> counts, VectorOut<double> out) {
            expect(out.size(), codes.size(), "out");
            if (weights) expect(weights->size(), codes.size(), "weights");
            if (fades) expect(fades->size(), codes.size(), "fades");
            for (std::size_t t = 0; t < codes.size(); ++t)
                if (!(codes.data()[t] >= 0 && codes.data()[t] < static_cast<double>(counts.size())))
                    throw std::invalid_argument(
                        "The 'codes' parameter of the core must be below the number of counts.");
            nb::gil_scoped_release release;
            balance(codes.data(), weights ? weights->data() : nullptr, fades ? fades->data() : nullptr, codes.size(),
                    counts.data(), counts.size(), out.data());
        },
        "codes"_a, "weights"_a.none(), "fades"_a.none(), "counts"_a, "out"_a,
        "Write weights by which all classes count alike so far to out; the counts of the classes go on.");
}

void bind_clock(nb::module_& m) {
    m.def(
        "fade_rows",
        [](Vector<double> times, double last, double half_life, VectorOut<double> out) {
            expect(out.size(), times.size(), "out");
            fade_rows(times.data(), times.size(), last, half_life, out.data());
        },
        "times"_a, "last"_a, "half_life"_a, "out"_a,
        "Write what the time since the row before leaves of a model; last: the time before the first, or NaN.");
}

void bind_scores(nb::module_& m) {
    m.def(
        "extent",
        [](nb::ndarray<const double, nb::c_contig, nb::device::cpu> scores) {
            double low = std::numeric_limits<double>::infinity(), high = -low;
            const double* values = scores.data();
            for (std::size_t i = 0; i < scores.size(); ++i) {
                if (std::isnan(values[i])) return std::pair(values[i], values[i]);
                low = std::min(low, values[i]);
                high = std::max(high, values[i]);
            }
            return std::pair(low, high);
        },
        "scores"_a, "The least and the largest score; (nan, nan) if one of them is not a number.");
}

void bind_targets(nb::module_& m) {
    using Moments = std::tuple<double, double, double, double>;
    m.def(
        "follow_targets",
        [](Moments moments, Vector<double> y, std::optional<Vector<double>> weights, MatrixOut<double> out,
           std::optional<Vector<double>> fades) {
            expect(out.size(), 3 * y.size(), "out");
            if (weights) expect(weights->size(), y.size(), "weights");
            if (fades) expect(fades->size(), y.size(), "fades");
            const auto [total, first, sums, squares] = moments;
            Targets targets{total, first, sums, squares};
            {
                nb::gil_scoped_release release;
                double* z = out.data();
                targets.follow(y.data(), weights ? weights->data() : nullptr, fades ? fades->data() : nullptr, y.size(),
                               z, z + y.size(), z + 2 * y.size());
            }
            return Moments(targets.total, targets.first, targets.sums, targets.squares);
        },
        "moments"_a, "y"_a, "weights"_a.none(), "out"_a, "fades"_a.none() = nb::none(),
        "Write targets in units of their own, the mean and the deviation known before each to the rows of out; returns "
        "the moments.");
    m.def(
        "follow_columns",
        [](MatrixOut<double> moments, MatrixOut<double> x, std::optional<Vector<double>> fades) {
            expect(moments.size(), 4 * x.shape(0), "moments");
            if (fades) expect(fades->size(), x.shape(1), "fades");
            const double* fade = fades ? fades->data() : nullptr;
            const std::size_t columns = x.shape(0), rows = x.shape(1);
            double *known = moments.data(), *value = x.data();
            nb::gil_scoped_release release;
            for (std::size_t j = 0; j < columns; ++j) {
                Targets column{known[j], known[columns + j], known[2 * columns + j], known[3 * columns + j]};
                for (std::size_t t = 0; t < rows; ++t, ++value) {
                    if (fade != nullptr) column.fade(fade[t]);
                    *value = column.follow(*value);
                }
                known[j] = column.total, known[columns + j] = column.first;
                known[2 * columns + j] = column.sums, known[3 * columns + j] = column.squares;
            }
        },
        "moments"_a, "x"_a, "fades"_a.none() = nb::none(),
        "The same for the columns of features, here the rows of x, in place; moments: (4, columns), in place.");
}

// numbers of features after rounds in which some were 0
void rest(VectorOut<double> mean, VectorOut<double> squares, VectorOut<std::int64_t> touched, double origin,
          std::int64_t round, double keep) {
    expect(squares.size(), mean.size(), "squares");
    expect(touched.size(), mean.size(), "touched");
    nb::gil_scoped_release release;
    for (std::size_t j = 0; j < mean.size(); ++j)
        rest_until({keep, origin}, round, mean.data()[j], squares.data()[j], touched.data()[j]);
}

}  // namespace

void bind_rows(nb::module_& m) {
    bind_class_weights(m);
    bind_clock(m);
    m.def("rest_features", &rest, "mean"_a, "squares"_a, "touched"_a, "origin"_a, "round"_a, "keep"_a,
          "Bring the numbers of sparse features to a round, in place.");
    bind_scores(m);
    bind_targets(m);
    bind_checks<float>(m);
    bind_checks<double>(m);
    bind_sparse<float>(m);
    bind_sparse<double>(m);
    bind_scaler<float>(m);
    bind_scaler<double>(m);
}
