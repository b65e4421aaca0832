// The border between Python and the core: types are checked here, the GIL is released here, and nothing is decided. How
// the locks of the core are taken, in this and the other bindings, and in which order: border.hpp. Its rules hold
// everywhere: no Python object is made, and no callback can run, while one is held; none is awaited with the GIL in hand.
//
// The file is long because the three learners share their bindings, one template over all of them.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <cstring>
#include <optional>

#include "trees/additive.hpp"
#include "python/border.hpp"
#include "python/rows_border.hpp"
#include "python/states.hpp"
#include "features/finite.hpp"
#include "engine/learner.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace gossamer;

namespace {

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

// y: a number for each row, or one for each row and target
using Aims = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;

template <class A> auto pointer(const std::optional<A>& values, std::size_t n, const char* what) {
    if (values) expect(values->size(), n, what);
    return values ? values->data() : nullptr;
}

template <class T>
void fill(Block<T>& block, std::size_t n, int targets, const std::optional<Aims>& y,
          const std::optional<Vector<double>>& weights, const std::optional<Vector<double>>& rates,
          const std::optional<Vector<std::int64_t>>& ids, const MatrixOut<double>& scores,
          const std::optional<VectorOut<double>>& levels, const std::optional<VectorOut<double>>& variances,
          const std::optional<Vector<double>>& fades) {
    expect(scores.shape(0), n, "scores");
    block.rows = static_cast<int>(n);
    block.y = pointer(y, n * targets, "y");
    block.targets = targets;
    block.weights = pointer(weights, n, "weights");
    block.rates = pointer(rates, n, "rates");
    block.ids = pointer(ids, n, "ids");
    block.scores = scores.data();
    block.columns = static_cast<int>(scores.shape(1));
    block.levels = pointer(levels, n, "levels");
    block.variances = pointer(variances, n, "variances");
    block.fades = pointer(fades, n, "fades");
}

template <class L, class T> bool acceptable(const L& learner, const Vector<T>& x) {
    return static_cast<int>(x.shape(0)) == learner.features() && learner.accepts(x.data());
}

// a learner's state as it is while its gate is held
template <class T, class L> struct Whole {
    Saved saved;
    typename Border<T, L>::Rows points, dropped;
    std::vector<std::int64_t> shape;  // of trees
    bool with_shape = false;

    static Whole of(const L& self, bool with_points) {
        Whole whole{Saved::of(self.loop()), {}, {}, {}, false};
        if (with_points) whole.points = self.points().rows(), whole.dropped = self.dropped_points();
        if constexpr (std::is_same_v<L, Additive<T>>) whole.shape = self.shape(), whole.with_shape = true;
        return whole;
    }
};

template <class T, class L>
void restore_all(L& self, const State& state, const typename Border<T, L>::Argument& points,
                 const typename Border<T, L>::Argument& dropped) {
    batch_of<T>(points, self.features(), "points");
    batch_of<T>(dropped, self.features(), "dropped");
    Whole<T, L> whole{
        saved_from(state, self.loop()), matrix_of<T>(points), matrix_of<T>(dropped), {}, state.contains("shape")};
    if (whole.with_shape) whole.shape = values<std::int64_t>(state["shape"]);
    change_long(self, [&] {
        whole.saved.put(self.loop());
        expect(count_rows<T>(points), self.loop().expansion.size(), "points");
        expect(count_rows<T>(dropped), self.loop().expansion.dropped[0].size(), "dropped");
        if constexpr (std::is_same_v<L, Additive<T>>)
            self.restore_points(whole.points, std::move(whole.dropped), whole.with_shape ? &whole.shape : nullptr);
        else
            self.restore_points(whole.points, std::move(whole.dropped));
    });
}

template <class T, class L> void variance_of(const L& self, typename Border<T, L>::Argument x, VectorOut<double> out) {
    const auto rows = batch_of<T>(x, self.features(), "X");
    const std::size_t n = count_rows<T>(x);
    expect(out.shape(0), n, "out");
    look_long(self, [&] { self.variance(rows, static_cast<std::int64_t>(n), out.data()); });
}

// what Learner<T>, Additive<T> and Finite<T> have in common
template <class T, class L> nb::class_<L> bind_common(nb::module_& m, const char* name, const char* doc) {
    return nb::class_<L>(m, name, doc)
        .def(
            "learn",
            [](L& self, typename Border<T, L>::Argument x, std::optional<Aims> y, std::optional<Vector<double>> weights,
               std::optional<Vector<double>> rates, std::optional<Vector<std::int64_t>> ids, MatrixOut<double> scores,
               std::optional<VectorOut<double>> levels, std::optional<VectorOut<double>> variances,
               std::optional<Vector<double>> fades) {
                const std::size_t n = count_rows<T>(x);
                const auto rows = batch_of<T>(x, self.features(), "X");
                Block<T> block;
                fill(block, n, self.loop().targets(), y, weights, rates, ids, scores, levels, variances, fades);
                change_long(self, [&] { self.learn(rows, static_cast<std::int64_t>(n), block); });
            },
            "x"_a, "y"_a.none(), "weights"_a.none(), "rates"_a.none(), "ids"_a.none(), "scores"_a, "levels"_a.none(),
            "variances"_a.none(), "fades"_a.none() = nb::none())
        .def(
            "retire", [](L& self) { change_long(self, [&] { self.retired = true; }); },
            "Refuse single rows from now on.")
        .def(
            "score",
            [](const L& self, typename Border<T, L>::Argument x, MatrixOut<double> scores, bool mean) {
                const auto rows = batch_of<T>(x, self.features(), "X");
                const auto n = static_cast<std::int64_t>(count_rows<T>(x));
                expect(scores.shape(0), count_rows<T>(x), "scores");
                const int columns = static_cast<int>(scores.shape(1));
                return look_long(self, [&] {
                    mean ? self.score_mean(rows, n, scores.data(), columns)
                         : self.score(rows, n, scores.data(), columns);
                    return self.loop().level();
                });
            },
            "x"_a, "scores"_a, "mean"_a, "Writes the scores; returns the level of the same moment.")
        .def("points",
             [](const L& self) {
                 auto rows = look_long(self, [&] { return self.points().rows(); });
                 return to_python(std::move(rows), self.features());
             })
        .def(
            "state",
            [](const L& self, bool points) {
                auto whole = look_long(self, [&] { return Whole<T, L>::of(self, points); });
                State state = made_of(std::move(whole.saved), self.loop());
                if (whole.with_shape) state["shape"] = array(std::move(whole.shape));
                if (!points) return state;
                state["points"] = to_python(std::move(whole.points), self.features());
                state["dropped_points"] = to_python(std::move(whole.dropped), self.features());
                return state;
            },
            "points"_a, "What was learned, all of one moment; with or without the points.")
        .def(
            "number",
            [](const L& self, const std::string& name) {
                return look(self, [&] {
                    Number found = self.loop().level();
                    each_number(
                        [&](const char* own, auto number) {
                            if (name == own) found = number;
                        },
                        self.loop());
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

// single rows, where all their features are given
template <class T, class L> nb::class_<L> bind_single(nb::class_<L> bound) {
    return bound
        .def(
            "learn_one",
            [](L& self, Vector<T> x, std::optional<double> y, double weight) -> std::optional<double> {
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
            "x"_a, "y"_a.none(), "weight"_a,
            "The score before the update; None if something is not acceptable, or the learner is retired.")
        .def(
            "score_one",
            [](const L& self, Vector<T> x) -> std::optional<double> {
                if (!acceptable(self, x)) return std::nullopt;
                double score;
                look(self, [&] { self.score(x.data(), 1, &score, 1); });
                return score;
            },
            "x"_a, "The score; None if x is not acceptable.");
}

template <class T, class L> void bind_learner(nb::class_<L> bound) {
    bound
        .def(
            "__init__",
            [](L* self, const std::vector<Spec>& kernel, const Spec& loss, const Spec& rule, const Spec& budget,
               const std::string& average, bool gram, double epsilon, int features) {
                new (self) L(Kernel(kernel, features), make_loop(loss, rule, budget, average, gram, epsilon), features);
            },
            "kernel"_a, "loss"_a, "rule"_a, "budget"_a, "average"_a, "gram"_a, "epsilon"_a, "features"_a)
        .def("variance", &variance_of<T, L>, "x"_a, "out"_a, "The variance that is left at each row.")
        .def("gram", [](const L& self) {
            std::vector<double> gram = look_long(self, [&] { return self.gram(); });
            const auto size = static_cast<std::size_t>(std::lround(std::sqrt(static_cast<double>(gram.size()))));
            return array(std::move(gram), {size, size});
        });
}

template <class T> void bind_learners(nb::module_& m, const char* name, const char* sparse) {
    const char* doc = "A learner with its kernel, points and loop in compiled code.";
    bind_learner<T>(bind_single<T>(bind_common<T, Learner<T>>(m, name, doc)));
    bind_learner<T>(bind_common<T, Learner<T, SparseLayout<T>>>(m, sparse, doc));
}

template <class T> void bind_additive(nb::module_& m, const char* name) {
    using L = Additive<T>;
    bind_single<T>(
        bind_common<T, L>(m, name, "A learner with an additive kernel, its expansion in a search tree per coordinate."))
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
            [](const L& self, Matrix<T> x, Dense<double, 3> out) {
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
    bind_single<T>(
        bind_common<T, L>(m, name, "A learner in a space of finite dimension: one weight for each feature of a row."))
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
        .def("variance", &variance_of<T, L>, "x"_a, "out"_a, "The variance that is left at each row.")
        .def("coefs", [](const L& self) { return array(look_long(self, [&] { return self.coefs(); })); });
}

}  // namespace

void bind_bank(nb::module_& m);       // bindings_bank.cpp
void bind_certainty(nb::module_& m);  // bindings_certainty.cpp
void bind_csv(nb::module_& m);        // bindings_csv.cpp
void bind_encoder(nb::module_& m);    // bindings_encoder.cpp
void bind_mixture(nb::module_& m);    // bindings_mixture.cpp
void bind_rows(nb::module_& m);       // bindings_rows.cpp
void bind_video(nb::module_& m);      // bindings_video.cpp

NB_MODULE(_core, m) {
    m.doc() = "The compiled core of gossamer.";
    m.def(
        "isa", [] { return std::string(tiles<double>().name); }, "The instruction set in use.");
    bind_csv(m);
    bind_encoder(m);
    bind_mixture(m);
    bind_rows(m);
    bind_certainty(m);
    bind_learners<float>(m, "Learner32", "Sparse32");
    bind_learners<double>(m, "Learner64", "Sparse64");
    bind_additive<float>(m, "Additive32");
    bind_additive<double>(m, "Additive64");
    bind_finite<float>(m, "Finite32");
    bind_finite<double>(m, "Finite64");
    bind_bank(m);
    bind_video(m);

    nb::class_<Loop>(m, "Loop",
                     "The loop over blocks of kernel values that the caller has made; for one thread at a time.")
        .def(
            "__init__",
            [](Loop* self, const Spec& loss, const Spec& rule, const Spec& budget, const std::string& average,
               bool gram, double epsilon) { new (self) Loop(make_loop(loss, rule, budget, average, gram, epsilon)); },
            "loss"_a, "rule"_a, "budget"_a, "average"_a, "gram"_a, "epsilon"_a)
        .def(
            "run",
            [](Loop& self, MatrixOut<double> block, MatrixOut<double> cross, Vector<double> kappas,
               std::optional<Aims> y, std::optional<Vector<double>> weights, std::optional<Vector<double>> rates,
               std::optional<Vector<std::int64_t>> ids, MatrixOut<double> scores,
               std::optional<VectorOut<double>> levels, std::optional<VectorOut<double>> variances,
               std::optional<Vector<double>> fades) {
                const std::size_t n = kappas.size(), ld = block.shape(1);
                expect(cross.shape(0), n, "cross");
                expect(cross.shape(1), n, "cross");
                if (block.shape(0) < self.expansion.size() + n || ld < n || ld % 16 != 0)
                    throw std::invalid_argument("The block must have a row for every slot and newcomer, padded to 16.");
                Block<double> b;
                fill(b, n, self.targets(), y, weights, rates, ids, scores, levels, variances, fades);
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
            "scores"_a, "levels"_a.none(), "variances"_a.none(), "fades"_a.none() = nb::none())
        .def("copy", [](const Loop& self) { return Loop(self); })
        .def(
            "gram",
            [](const Loop& self) -> nb::object {
                const auto size = static_cast<std::size_t>(self.expansion.size());
                if (!self.expansion.with_gram) return nb::none();
                return nb::cast(array(self.expansion.get_gram(), {size, size}));
            },
            "k(points, points), if it is kept.")
        .def("state", [](const Loop& self) { return made_of(Saved::of(self), self); })
        .def(
            "restore",
            [](Loop& self, const State& state, std::optional<MatrixOut<double>> gram) {
                saved_from(state, self).put(self);
                const std::size_t size = self.expansion.size();
                if (gram) expect(gram->size(), size * size, "gram");
                if (gram) self.expansion.set_gram(std::vector<double>(gram->data(), gram->data() + gram->size()));
            },
            "state"_a, "gram"_a.none())
        .def_prop_ro(
            "known", [](const Loop& self) { return self.known; }, "classes seen so far")
        .def_prop_ro("steps", [](const Loop& self) { return self.steps; });
}
