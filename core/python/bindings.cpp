// The border between Python and the core: types are checked here, the GIL is released here, and nothing is decided. How
// the locks of the core are taken, in this and the other bindings, and in which order: border.hpp. Its rules hold
// everywhere: no Python object is made, and no callback can run, while one is held; none is awaited with the GIL in hand.
//
// The file is long because the three learners share their bindings, one template over all of them.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "trees/additive.hpp"
#include "python/border.hpp"
#include "features/finite.hpp"
#include "engine/learner.hpp"
#include "engine/saved.hpp"
#include "engine/scaler.hpp"
#include "engine/targets.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace gossamer;

namespace {

using State = nb::typed<nb::dict, nb::str, nb::object>;
using Spec = std::pair<std::string, Numbers>;
template <class T> using Matrix = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T> using Row = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Vector = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Ids = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Out = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Square = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <class T> auto array(std::vector<T> values, std::vector<std::size_t> shape) {
    auto* kept = new std::vector<T>(std::move(values));
    nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return nb::ndarray<nb::numpy, T>(kept->data(), shape.size(), shape.data(), owner);
}
template <class T> auto array(std::vector<T> values) {
    const std::size_t n = values.size();
    return array(std::move(values), {n});
}
template <class T> std::vector<T> values(nb::handle h) {
    const auto a = nb::cast<nb::ndarray<const T, nb::c_contig, nb::device::cpu>>(h);
    return std::vector<T>(a.data(), a.data() + a.size());
}

Average average_named(const std::string& name) {
    if (name == "none") return Average::none;
    if (name == "sparse") return Average::sparse;
    if (name == "all") return Average::all;
    throw std::invalid_argument("The 'average' parameter of the core must be none, sparse or all. Got " + name + ".");
}

Loop make_loop(const Spec& loss, const Spec& rule, const Spec& budget, const std::string& average, bool gram,
               double epsilon) {
    return Loop(make_loss(loss.first, loss.second), make_rule(rule.first, rule.second),
                make_budget(budget.first, budget.second), average_named(average), gram, epsilon);
}

auto array(const Rows2& rows) {
    Values flat;
    for (const Values& row : rows) flat.insert(flat.end(), row.begin(), row.end());
    return array(std::move(flat), {rows.size(), rows.empty() ? 0 : rows[0].size()});
}

Rows2 rows_of(nb::handle h) {
    const auto a = nb::cast<nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>>(h);
    Rows2 rows;
    for (std::size_t i = 0; i < a.shape(0); ++i)
        rows.emplace_back(a.data() + i * a.shape(1), a.data() + (i + 1) * a.shape(1));
    return rows;
}

// the state of a part; an empty array is left out
State made_of(Fields&& fields) {
    State state;
    for (auto& [name, field] : fields) {
        const char* key = name.c_str();
        if (Values* values = std::get_if<Values>(&field)) {
            if (!values->empty()) state[key] = array(std::move(*values));
        } else if (const double* number = std::get_if<double>(&field)) {
            state[key] = *number;
        } else {
            state[key] = std::get<std::int64_t>(field);
        }
    }
    return state;
}

State made_of(Saved&& saved, const Loop& loop) {
    State state;
    state["raw"] = array(saved.raw);
    state["trace"] = array(saved.trace);
    state["summed"] = array(saved.summed);
    state["dropped"] = array(saved.dropped);
    state["kappas"] = array(std::move(saved.kappas));
    state["entered"] = array(std::move(saved.entered));
    state["births"] = array(std::move(saved.births));
    state["ids"] = array(std::move(saved.ids));
    state["level"] = saved.level;
    std::size_t i = 0;  // only the names and types of the loop's numbers are looked at
    each_number([&](const char* name, const auto&) { std::visit([&](auto v) { state[name] = v; }, saved.numbers[i++]); }, loop);
    state["rule"] = made_of(std::move(saved.rule));
    state["budget"] = made_of(std::move(saved.budget));
    return state;
}

void expect(std::size_t got, std::size_t wanted, const char* what) {
    if (got != wanted)
        throw std::invalid_argument(std::string("The '") + what + "' parameter of the core must have " +
                                    std::to_string(wanted) + " entries. Got " + std::to_string(got) + " instead.");
}

// the fields that a part has, as a dict has them
template <class Part> Fields fields_from(nb::handle h, const Part& part) {
    const auto state = nb::cast<State>(h);
    Fields fields;
    const auto read = [&](const char* name, const auto& field) {  // of the part's only the types
        using F = std::decay_t<decltype(field)>;
        if (!state.contains(name)) return;
        if constexpr (is_number<F>)
            fields.emplace_back(name, nb::cast<F>(state[name]));
        else
            fields.emplace_back(name, values<double>(state[name]));
    };
    std::visit([&](const auto& p) { std::decay_t<decltype(p.state)>::each(p.state, read); }, part);
    return fields;
}

Saved saved_from(const State& state, const Loop& loop) {
    Saved saved{rows_of(state["raw"]), rows_of(state["trace"]), rows_of(state["summed"]), rows_of(state["dropped"]),
                values<double>(state["kappas"]), values<double>(state["entered"]), values<std::int64_t>(state["births"]),
                values<std::int64_t>(state["ids"]), nb::cast<double>(state["level"]), {}, fields_from(state["rule"], loop.rule),
                fields_from(state["budget"], loop.budget)};
    each_number(
        [&](const char* name, const auto& number) {  // of the loop's only the type
            saved.numbers.emplace_back(nb::cast<std::decay_t<decltype(number)>>(state[name]));
        },
        loop);
    return saved;
}

// The events of a block for a caller who keeps the points: (0, row, slot) placed, (1, slot, last) removed, (2, slot and
// other, h) the point of a slot has become h of itself and 1 - h of another.
struct Recorder {
    static constexpr bool direct = false, spreads = false, blends = false;
    const double* cross;
    double* g;
    std::ptrdiff_t ld;
    int rows;
    std::vector<std::int64_t> events;
    void place(int row, int slot) {
        for (int t = row + 1; t < rows; ++t) g[slot * ld + t] = cross[static_cast<std::ptrdiff_t>(row) * rows + t];
        events.insert(events.end(), {0, row, slot});
    }
    void remove(int slot, int last) { events.insert(events.end(), {1, slot, last}); }
    void blend(int slot, int other, double h) {
        std::int64_t bits;
        std::memcpy(&bits, &h, sizeof bits);
        events.insert(events.end(), {2, (static_cast<std::int64_t>(slot) << 32) + other, bits});
    }
};

template <class A> auto pointer(const std::optional<A>& values, std::size_t n, const char* what) {
    if (values) expect(values->size(), n, what);
    return values ? values->data() : nullptr;
}

template <class T>
void fill(Block<T>& block, std::size_t n, const std::optional<Vector>& y, const std::optional<Vector>& weights,
          const std::optional<Vector>& rates, const std::optional<Ids>& ids, const Square& scores,
          const std::optional<Out>& levels) {
    expect(scores.shape(0), n, "scores");
    block.rows = static_cast<int>(n);
    block.y = pointer(y, n, "y");
    block.weights = pointer(weights, n, "weights");
    block.rates = pointer(rates, n, "rates");
    block.ids = pointer(ids, n, "ids");
    block.scores = scores.data();
    block.columns = static_cast<int>(scores.shape(1));
    block.levels = pointer(levels, n, "levels");
}

template <class L, class T> bool acceptable(const L& learner, const Row<T>& x) {
    return static_cast<int>(x.shape(0)) == learner.features() && learner.accepts(x.data());
}

// a learner's state as it is while its gate is held
template <class T> struct Whole {
    Saved saved;
    std::vector<T> points, dropped;
    std::vector<std::int64_t> shape;  // of trees
    bool with_shape = false;

    template <class L> static Whole of(const L& self, bool with_points) {
        Whole whole{Saved::of(self.loop()), {}, {}, {}, false};
        if (with_points) whole.points = self.points().rows(), whole.dropped = self.dropped_points();
        if constexpr (std::is_same_v<L, Additive<T>>) whole.shape = self.shape(), whole.with_shape = true;
        return whole;
    }
};

template <class T> auto matrix(std::vector<T>&& rows, int features) {
    const std::size_t d = static_cast<std::size_t>(features), n = rows.size() / d;
    return array(std::move(rows), {n, d});
}

template <class T, class L> void restore_all(L& self, const State& state, const Matrix<T>& points, const Matrix<T>& dropped) {
    expect(points.shape(1), self.features(), "points");
    expect(dropped.shape(1), self.features(), "dropped");
    Whole<T> whole{saved_from(state, self.loop()), {}, {}, {}, state.contains("shape")};
    whole.points.assign(points.data(), points.data() + points.size());
    whole.dropped.assign(dropped.data(), dropped.data() + dropped.size());
    if (whole.with_shape) whole.shape = values<std::int64_t>(state["shape"]);
    change_long(self, [&] {
        whole.saved.put(self.loop());
        expect(points.shape(0), self.loop().expansion.size(), "points");
        expect(dropped.shape(0), self.loop().expansion.dropped[0].size(), "dropped");
        if constexpr (std::is_same_v<L, Additive<T>>)
            self.restore_points(whole.points, std::move(whole.dropped), whole.with_shape ? &whole.shape : nullptr);
        else
            self.restore_points(whole.points, std::move(whole.dropped));
    });
}

// what Learner<T>, Additive<T> and Finite<T> have in common
template <class T, class L> nb::class_<L> bind_common(nb::module_& m, const char* name, const char* doc) {
    return nb::class_<L>(m, name, doc)
        .def(
            "learn",
            [](L& self, Matrix<T> x, std::optional<Vector> y, std::optional<Vector> weights,
               std::optional<Vector> rates, std::optional<Ids> ids, Square scores, std::optional<Out> levels) {
                const std::size_t n = x.shape(0);
                expect(x.shape(1), self.features(), "X");
                Block<T> block;
                fill(block, n, y, weights, rates, ids, scores, levels);
                change_long(self, [&] { self.learn(x.data(), static_cast<std::int64_t>(n), block); });
            },
            "x"_a, "y"_a.none(), "weights"_a.none(), "rates"_a.none(), "ids"_a.none(), "scores"_a, "levels"_a.none())
        .def(
            "learn_one",
            [](L& self, Row<T> x, std::optional<double> y, double weight) -> std::optional<double> {
                const double target = y.value_or(NAN);
                if (!acceptable(self, x) || !self.loop().accepts(target) || !(weight >= 0 && std::isfinite(weight)))
                    return std::nullopt;
                double score;
                Block<T> block;
                block.y = &target;
                block.weights = &weight;
                block.scores = &score;
                const bool learned = change(self, [&] {
                    if (!self.retired) self.learn(x.data(), 1, block);
                    return !self.retired;
                });
                return learned ? std::optional<double>(score) : std::nullopt;
            },
            "x"_a, "y"_a.none(), "weight"_a, "The score before the update; None if something is not acceptable, or the learner is retired.")
        .def("retire", [](L& self) { change_long(self, [&] { self.retired = true; }); }, "Refuse single rows from now on.")
        .def(
            "score_one",
            [](const L& self, Row<T> x) -> std::optional<double> {
                if (!acceptable(self, x)) return std::nullopt;
                double score;
                look(self, [&] { self.score(x.data(), 1, &score, 1); });
                return score;
            },
            "x"_a, "The score; None if x is not acceptable.")
        .def(
            "score",
            [](const L& self, Matrix<T> x, Square scores, bool mean) {
                expect(x.shape(1), self.features(), "X");
                expect(scores.shape(0), x.shape(0), "scores");
                const auto n = static_cast<std::int64_t>(x.shape(0));
                const int columns = static_cast<int>(scores.shape(1));
                return look_long(self, [&] {
                    mean ? self.score_mean(x.data(), n, scores.data(), columns)
                         : self.score(x.data(), n, scores.data(), columns);
                    return self.loop().level();
                });
            },
            "x"_a, "scores"_a, "mean"_a, "Writes the scores; returns the level of the same moment.")
        .def("points",
             [](const L& self) {
                 std::vector<T> rows = look_long(self, [&] { return std::vector<T>(self.points().rows()); });
                 return matrix(std::move(rows), self.features());
             })
        .def("state",
             [](const L& self, bool points) {
                 Whole<T> whole = look_long(self, [&] { return Whole<T>::of(self, points); });
                 State state = made_of(std::move(whole.saved), self.loop());
                 if (whole.with_shape) state["shape"] = array(std::move(whole.shape));
                 if (!points) return state;
                 state["points"] = matrix(std::move(whole.points), self.features());
                 state["dropped_points"] = matrix(std::move(whole.dropped), self.features());
                 return state;
             },
             "points"_a, "What was learned, all of one moment; with or without the points.")
        .def(
            "number",
            [](const L& self, const std::string& name) {
                return look(self, [&] {
                    Number found = self.loop().level();
                    each_number([&](const char* own, auto number) { if (name == own) found = number; }, self.loop());
                    return found;
                });
            },
            "name"_a, "One number of the state.")
        .def("restore", &restore_all<T, L>, "state"_a, "points"_a, "dropped"_a)
        .def_prop_ro("steps", [](const L& self) { return look(self, [&] { return self.loop().steps; }); })
        .def_prop_ro(
            "known", [](const L& self) { return look(self, [&] { return self.loop().known; }); }, "classes seen so far")
        .def_prop_ro("outputs", [](const L& self) { return look(self, [&] { return self.outputs(); }); })
        .def_prop_ro("features", &L::features);
}

template <class T> void bind_learner(nb::module_& m, const char* name) {
    using L = Learner<T>;
    bind_common<T, L>(m, name, "A learner with its kernel, points and loop in compiled code.")
        .def(
            "__init__",
            [](L* self, const std::vector<Spec>& kernel, const Spec& loss, const Spec& rule, const Spec& budget,
               const std::string& average, bool gram, double epsilon, int features) {
                new (self) L(Kernel(kernel, features), make_loop(loss, rule, budget, average, gram, epsilon), features);
            },
            "kernel"_a, "loss"_a, "rule"_a, "budget"_a, "average"_a, "gram"_a, "epsilon"_a, "features"_a)
        .def("gram", [](const L& self) {
            std::vector<double> gram = look_long(self, [&] { return self.gram(); });
            const auto size = static_cast<std::size_t>(std::lround(std::sqrt(static_cast<double>(gram.size()))));
            return array(std::move(gram), {size, size});
        });
}

template <class T> void bind_additive(nb::module_& m, const char* name) {
    using L = Additive<T>;
    bind_common<T, L>(m, name, "A learner with an additive kernel, its expansion in a search tree per coordinate.")
        .def(
            "__init__",
            [](L* self, const Numbers& coordinates, const Spec& loss, const Spec& rule, const Spec& budget,
               const std::string& average, bool gram, double epsilon, int features) {
                new (self) L(read_coordinates(coordinates, features),
                             make_loop(loss, rule, budget, average, gram, epsilon), features);
            },
            "coordinates"_a, "loss"_a, "rule"_a, "budget"_a, "average"_a, "gram"_a, "epsilon"_a, "features"_a)
        .def(
            "effects",
            [](const L& self, Matrix<T> x, nb::ndarray<double, nb::ndim<3>, nb::c_contig, nb::device::cpu> out) {
                expect(x.shape(1), self.features(), "X");
                expect(out.shape(0), x.shape(0), "out");
                expect(out.shape(1), self.effects(), "out");
                look_long(self, [&] {
                    self.score_effects(x.data(), static_cast<std::int64_t>(x.shape(0)), out.data(),
                                       static_cast<int>(out.shape(2)));
                });
            },
            "x"_a, "out"_a, "What each coordinate adds to each score.")
        .def_prop_ro("coordinates", &L::effects);
}

template <class T> void bind_finite(nb::module_& m, const char* name) {
    using L = Finite<T>;
    bind_common<T, L>(m, name, "A learner in a space of finite dimension: one weight for each feature of a row.")
        .def(
            "__init__",
            [](L* self, const std::vector<Spec>& kernel, const Spec& loss, const Spec& rule, const Spec& budget,
               const std::string& average, bool gram, double epsilon, int features, int limit, double tolerance,
               Matrix<T> frequencies) {
                new (self) L(Kernel(kernel, features), make_loop(loss, rule, budget, average, gram, epsilon), features,
                             limit, tolerance, {frequencies.data(), frequencies.data() + frequencies.size()});
            },
            "kernel"_a, "loss"_a, "rule"_a, "budget"_a, "average"_a, "gram"_a, "epsilon"_a, "features"_a, "limit"_a,
            "tolerance"_a, "frequencies"_a)
        .def("coefs", [](const L& self) { return array(look_long(self, [&] { return self.coefs(); })); });
}

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

template <class T> void bind_scaler(nb::module_& m) {
    using Scaled = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
    m.def(
        "scale_rows",
        [](Matrix<T> x, std::optional<Scaled> z, Out mean, Out squares, double weight, double keep, bool centre,
           bool divide) {
            expect(mean.size(), x.shape(1), "mean");
            expect(squares.size(), x.shape(1), "squares");
            if (z) expect(z->size(), x.size(), "z");
            nb::gil_scoped_release release;
            return scale_rows<T>(x.data(), z ? z->data() : nullptr, static_cast<std::int64_t>(x.shape(0)),
                                 static_cast<int>(x.shape(1)), mean.data(), squares.data(), weight, keep, centre, divide);
        },
        "x"_a, "z"_a.none(), "mean"_a, "squares"_a, "weight"_a, "keep"_a, "centre"_a, "divide"_a,
        "Learn the rows of x in place and write them, scaled, to z; returns the sum of weights.");
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
        [](Moments moments, Vector y, std::optional<Vector> weights, Out z, Out means, Out deviations) {
            for (const std::size_t size : {z.size(), means.size(), deviations.size()}) expect(size, y.size(), "z");
            if (weights) expect(weights->size(), y.size(), "weights");
            const auto [total, first, sums, squares] = moments;
            Targets targets{total, first, sums, squares};
            {
                nb::gil_scoped_release release;
                targets.follow(y.data(), weights ? weights->data() : nullptr, y.size(), z.data(), means.data(),
                               deviations.data());
            }
            return Moments(targets.total, targets.first, targets.sums, targets.squares);
        },
        "moments"_a, "y"_a, "weights"_a.none(), "z"_a, "means"_a, "deviations"_a,
        "Write targets in units of their own to z, with the mean and deviation known before each; returns the moments.");
    using Columns = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
    m.def(
        "follow_columns",
        [](Columns moments, Columns x) {
            expect(moments.size(), 4 * x.shape(0), "moments");
            const std::size_t columns = x.shape(0), rows = x.shape(1);
            double *known = moments.data(), *value = x.data();
            nb::gil_scoped_release release;
            for (std::size_t j = 0; j < columns; ++j) {
                Targets column{known[j], known[columns + j], known[2 * columns + j], known[3 * columns + j]};
                for (std::size_t t = 0; t < rows; ++t, ++value) *value = column.follow(*value);
                known[j] = column.total, known[columns + j] = column.first;
                known[2 * columns + j] = column.sums, known[3 * columns + j] = column.squares;
            }
        },
        "moments"_a, "x"_a,
        "The same for the columns of features, here the rows of x, in place; moments: (4, columns), in place.");
}

}  // namespace

void bind_bank(nb::module_& m);  // bindings_bank.cpp
void bind_csv(nb::module_& m);  // bindings_csv.cpp
void bind_video(nb::module_& m);  // bindings_video.cpp

NB_MODULE(_core, m) {
    m.doc() = "The compiled core of gossamer.";
    m.def("isa", [] { return std::string(tiles<double>().name); }, "The instruction set in use.");
    bind_csv(m);
    bind_scores(m);
    bind_targets(m);
    bind_checks<float>(m);
    bind_checks<double>(m);

    bind_scaler<float>(m);
    bind_scaler<double>(m);

    bind_learner<float>(m, "Learner32");
    bind_learner<double>(m, "Learner64");
    bind_additive<float>(m, "Additive32");
    bind_additive<double>(m, "Additive64");
    bind_finite<float>(m, "Finite32");
    bind_finite<double>(m, "Finite64");
    bind_bank(m);
    bind_video(m);

    nb::class_<Loop>(m, "Loop", "The loop over blocks of kernel values that the caller has made; for one thread at a time.")
        .def(
            "__init__",
            [](Loop* self, const Spec& loss, const Spec& rule, const Spec& budget, const std::string& average,
               bool gram, double epsilon) { new (self) Loop(make_loop(loss, rule, budget, average, gram, epsilon)); },
            "loss"_a, "rule"_a, "budget"_a, "average"_a, "gram"_a, "epsilon"_a)
        .def(
            "run",
            [](Loop& self, Square block, Square cross, Vector kappas, std::optional<Vector> y,
               std::optional<Vector> weights, std::optional<Vector> rates, std::optional<Ids> ids, Square scores,
               std::optional<Out> levels) {
                const std::size_t n = kappas.size(), ld = block.shape(1);
                expect(cross.shape(0), n, "cross");
                expect(cross.shape(1), n, "cross");
                if (block.shape(0) < self.expansion.size() + n || ld < n || ld % 16 != 0)
                    throw std::invalid_argument("The block must have a row for every slot and newcomer, padded to 16.");
                Block<double> b;
                fill(b, n, y, weights, rates, ids, scores, levels);
                b.g = block.data();
                b.ld = static_cast<std::ptrdiff_t>(ld);
                b.kappas = kappas.data();
                Recorder recorder{cross.data(), block.data(), b.ld, b.rows, {}};
                {
                    nb::gil_scoped_release release;
                    self.run(b, recorder);
                }
                const std::size_t count = recorder.events.size() / 3;
                return array(std::move(recorder.events), {count, 3});
            },
            "block"_a, "cross"_a, "kappas"_a, "y"_a.none(), "weights"_a.none(), "rates"_a.none(), "ids"_a.none(),
            "scores"_a, "levels"_a.none())
        .def("copy", [](const Loop& self) { return Loop(self); })
        .def("gram",
             [](const Loop& self) -> nb::object {
                 const auto size = static_cast<std::size_t>(self.expansion.size());
                 if (!self.expansion.with_gram) return nb::none();
                 return nb::cast(array(self.expansion.get_gram(), {size, size}));
             },
             "k(points, points), if it is kept.")
        .def("state", [](const Loop& self) { return made_of(Saved::of(self), self); })
        .def(
            "restore",
            [](Loop& self, const State& state, std::optional<Square> gram) {
                saved_from(state, self).put(self);
                const std::size_t size = self.expansion.size();
                if (gram) expect(gram->size(), size * size, "gram");
                if (gram) self.expansion.set_gram(std::vector<double>(gram->data(), gram->data() + gram->size()));
            },
            "state"_a, "gram"_a.none())
        .def_prop_ro("known", [](const Loop& self) { return self.known; }, "classes seen so far")
        .def_prop_ro("steps", [](const Loop& self) { return self.steps; });
}
