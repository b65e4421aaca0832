// The border between Python and the encoders of rows: numbers with gaps, categories, timestamps.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <optional>
#include <tuple>

#include "python/arrays.hpp"
#include "rows/categories.hpp"
#include "rows/clock.hpp"
#include "rows/numbers.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace gossamer;

namespace {

void expect_place(std::int64_t place, std::int64_t size, std::int64_t width, const char* what) {
    if (place < 0 || place + size > width) throw std::invalid_argument(std::string(what) + " must lie in the output.");
}

std::int64_t size(std::size_t n) { return static_cast<std::int64_t>(n); }

}  // namespace

void bind_encoder(nb::module_& m) {
    m.def(
        "encode_numbers",
        [](Matrix<double> x, MatrixOut<double> out, Vector<double> clips, Vector<double> units,
           Vector<std::int64_t> places, Vector<std::int64_t> marks, VectorOut<double> weight, VectorOut<double> mean,
           VectorOut<double> squares, bool learn, double keep, std::optional<Vector<double>> keeps) {
            const std::size_t columns = x.shape(1);
            for (const std::size_t n :
                 {clips.size(), units.size(), places.size(), marks.size(), weight.size(), mean.size()})
                expect(n, columns, "columns");
            expect(squares.size(), columns, "squares");
            expect(out.shape(0), x.shape(0), "out");
            if (keeps) expect(keeps->size(), x.shape(0), "keeps");
            const std::int64_t width = size(out.shape(1));
            for (std::size_t j = 0; j < columns; ++j) {
                expect_place(places.data()[j], 1, width, "places");
                if (marks.data()[j] != -1) expect_place(marks.data()[j], 1, width, "marks");
            }
            const NumberColumns c{static_cast<int>(columns),
                                  clips.data(),
                                  units.data(),
                                  places.data(),
                                  marks.data(),
                                  weight.data(),
                                  mean.data(),
                                  squares.data()};
            nb::gil_scoped_release release;
            encode_numbers(c, x.data(), out.data(), size(x.shape(0)), width, learn, keep,
                           keeps ? keeps->data() : nullptr);
        },
        "x"_a, "out"_a, "clips"_a, "units"_a, "places"_a, "marks"_a, "weight"_a, "mean"_a, "squares"_a, "learn"_a,
        "keep"_a, "keeps"_a.none() = nb::none(),
        "Write columns of numbers, scaled, and learn their statistics in place.");
    m.def(
        "encode_categories",
        [](Vector<std::int32_t> codes, Vector<std::int64_t> buckets, MatrixOut<double> out, std::int64_t first,
           std::int64_t places, std::int64_t hashed, VectorOut<double> counts, VectorOut<double> errors,
           VectorOut<std::int64_t> owners, VectorOut<std::int64_t> found, std::tuple<double, double> weight,
           std::tuple<std::int64_t, std::int64_t> row, bool learn) {
            const std::int64_t entries = size(counts.size()), width = size(out.shape(1)), known = size(found.size());
            expect(out.shape(0), codes.size(), "out");
            expect(errors.size(), counts.size(), "errors");
            expect(owners.size(), counts.size(), "owners");
            expect(buckets.size(), found.size(), "buckets");
            if (places < 1 || places >= entries || hashed < 1) throw std::invalid_argument("places must fit.");
            expect_place(first, places + hashed, width, "first");
            for (std::size_t i = 0; i < codes.size(); ++i)
                if (codes.data()[i] < -1 || codes.data()[i] >= known) throw std::invalid_argument("codes must fit.");
            for (std::int64_t i = 0; i < known; ++i)
                if (buckets.data()[i] < 0 || buckets.data()[i] >= hashed || found.data()[i] < -1 ||
                    found.data()[i] >= entries)
                    throw std::invalid_argument("buckets and found must fit.");
            for (std::int64_t i = 0; i < entries; ++i)
                if (owners.data()[i] < -1 || owners.data()[i] >= known) throw std::invalid_argument("owners must fit.");
            Categories c;
            c.places = places, c.entries = entries;
            c.counts = counts.data(), c.errors = errors.data(), c.owners = owners.data(), c.found = found.data();
            c.weight = std::get<0>(weight), c.growth = std::get<1>(weight);
            c.row = std::get<0>(row), c.period = std::get<1>(row);
            {
                nb::gil_scoped_release release;
                encode_categories(c, codes.data(), buckets.data(), out.data(), size(codes.size()), width, first, learn);
            }
            return std::tuple(c.weight, c.row);
        },
        "codes"_a, "buckets"_a, "out"_a, "first"_a, "places"_a, "hashed"_a, "counts"_a, "errors"_a, "owners"_a,
        "found"_a, "weight"_a, "row"_a, "learn"_a,
        "Write a column of categories and learn its places in place; returns the weight and the row that come next.");
    m.def(
        "encode_clock",
        [](Vector<double> seconds, MatrixOut<double> out, std::int64_t day, std::int64_t week, std::int64_t year) {
            expect(out.shape(0), seconds.size(), "out");
            for (const std::int64_t place : {day, week, year})
                if (place != -1) expect_place(place, 2, size(out.shape(1)), "day, week and year");
            nb::gil_scoped_release release;
            encode_clock(seconds.data(), out.data(), size(seconds.size()), size(out.shape(1)), {day, week, year});
        },
        "seconds"_a, "out"_a, "day"_a, "week"_a, "year"_a, "Write timestamps as points on circles.");
    m.def(
        "encode_gaps",
        [](Vector<double> seconds, VectorOut<double> out, double last, bool together) {
            expect(out.size(), seconds.size(), "out");
            nb::gil_scoped_release release;
            return encode_gaps(seconds.data(), out.data(), size(seconds.size()), last, together);
        },
        "seconds"_a, "out"_a, "last"_a, "together"_a, "Write the time since the row before; returns the last time.");
    m.def(
        "encode_cycle",
        [](Vector<double> values, MatrixOut<double> out, std::int64_t first, double period) {
            expect(out.shape(0), values.size(), "out");
            expect_place(first, 2, size(out.shape(1)), "first");
            nb::gil_scoped_release release;
            encode_cycle(values.data(), out.data(), size(values.size()), size(out.shape(1)), first, period);
        },
        "values"_a, "out"_a, "first"_a, "period"_a, "Write numbers as points on a circle.");
}
