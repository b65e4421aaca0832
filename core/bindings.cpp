// The border between Python and the core: types are checked here, the GIL is released here, and nothing is decided.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "learner.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace gossamer;

namespace {

using State = nb::typed<nb::dict, nb::str, nb::object>;
using Spec = std::pair<std::string, Numbers>;
template <class T> using Matrix = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T> using Row = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Vector = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Out = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Square = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <class T> auto array(std::vector<T> values, std::vector<std::size_t> shape) {
    auto* kept = new std::vector<T>(std::move(values));
    nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return nb::ndarray<nb::numpy, T>(kept->data(), shape.size(), shape.data(), owner);
}
template <class T> auto array(const std::vector<T>& values) { return array(values, {values.size()}); }
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

State state_of(const Loop& loop) {
    const Expansion& e = loop.expansion;
    State state;
    state["raw"] = array(e.raw);
    state["kappas"] = array(e.kappas);
    state["births"] = array(e.births);
    state["summed"] = array(e.summed);
    state["entered"] = array(e.entered);
    state["dropped"] = array(e.dropped);
    state["scale"] = e.scale;
    state["offset"] = e.offset;
    state["norm2"] = e.norm2;
    state["rounds_scale"] = e.rounds_scale;
    state["offset_sum"] = e.offset_sum;
    state["refresh_in"] = e.refresh_in;
    state["level"] = loop.level();
    state["steps"] = loop.steps;
    state["updates"] = loop.updates;
    state["mistakes"] = loop.mistakes;
    return state;
}

void restore(Loop& loop, const State& state) {
    Expansion& e = loop.expansion;
    e.raw = values<double>(state["raw"]);
    e.kappas = values<double>(state["kappas"]);
    e.births = values<std::int64_t>(state["births"]);
    e.summed = values<double>(state["summed"]);
    e.entered = values<double>(state["entered"]);
    e.dropped = values<double>(state["dropped"]);
    for (const auto* part : {&e.kappas, &e.summed, &e.entered})
        if (part->size() != e.raw.size()) throw std::invalid_argument("the state's arrays differ in length");
    if (e.births.size() != e.raw.size()) throw std::invalid_argument("the state's arrays differ in length");
    e.roots.clear();
    for (double kappa : e.kappas) e.roots.push_back(std::sqrt(kappa));
    e.scale = nb::cast<double>(state["scale"]);
    e.offset = nb::cast<double>(state["offset"]);
    e.norm2 = nb::cast<double>(state["norm2"]);
    e.rounds_scale = nb::cast<double>(state["rounds_scale"]);
    e.offset_sum = nb::cast<double>(state["offset_sum"]);
    e.refresh_in = nb::cast<std::int64_t>(state["refresh_in"]);
    const double level = nb::cast<double>(state["level"]);
    std::visit([&](auto& l) { l.level = level; }, loop.loss);
    loop.steps = nb::cast<std::int64_t>(state["steps"]);
    loop.updates = nb::cast<std::int64_t>(state["updates"]);
    loop.mistakes = nb::cast<std::int64_t>(state["mistakes"]);
}

// The events of a block for a caller who keeps the points: (0, row, slot) placed, (1, slot, last) removed.
struct Recorder {
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
};

void expect(std::size_t got, std::size_t wanted, const char* what) {
    if (got != wanted)
        throw std::invalid_argument(std::string("The '") + what + "' parameter of the core must have " +
                                    std::to_string(wanted) + " entries. Got " + std::to_string(got) + " instead.");
}

const double* pointer(const std::optional<Vector>& v, std::size_t n, const char* what) {
    if (!v) return nullptr;
    expect(v->size(), n, what);
    return v->data();
}

template <class T> bool acceptable(const Learner<T>& learner, const Row<T>& x) {
    return static_cast<int>(x.shape(0)) == learner.features() && tiles<T>().finite(x.data(), x.size());
}

template <class T> void bind_learner(nb::module_& m, const char* name) {
    using L = Learner<T>;
    nb::class_<L>(m, name, "A learner with its kernel, points and loop in compiled code.")
        .def(
            "__init__",
            [](L* self, const std::vector<Spec>& kernel, const Spec& loss, const Spec& rule, const Spec& budget,
               const std::string& average, bool gram, double epsilon, int features) {
                new (self) L(Kernel(kernel), make_loop(loss, rule, budget, average, gram, epsilon), features);
            },
            "kernel"_a, "loss"_a, "rule"_a, "budget"_a, "average"_a, "gram"_a, "epsilon"_a, "features"_a)
        .def(
            "learn",
            [](L& self, Matrix<T> x, std::optional<Vector> y, std::optional<Vector> weights,
               std::optional<Vector> rates, Out scores, std::optional<Out> levels) {
                const std::size_t n = x.shape(0);
                expect(x.shape(1), self.features(), "X");
                expect(scores.size(), n, "scores");
                if (levels) expect(levels->size(), n, "levels");
                const double *py = pointer(y, n, "y"), *pw = pointer(weights, n, "weights");
                const double* pr = pointer(rates, n, "rates");
                nb::gil_scoped_release release;
                self.learn(x.data(), static_cast<std::int64_t>(n), py, pw, pr, scores.data(),
                           levels ? levels->data() : nullptr);
            },
            "x"_a, "y"_a.none(), "weights"_a.none(), "rates"_a.none(), "scores"_a, "levels"_a.none())
        .def(
            "learn_one",
            [](L& self, Row<T> x, std::optional<double> y, double weight) -> std::optional<double> {
                const double target = y.value_or(0.0);
                if (!acceptable(self, x) || !self.loop().accepts(target) || !(weight >= 0 && std::isfinite(weight)))
                    return std::nullopt;
                double score;
                self.learn(x.data(), 1, &target, &weight, nullptr, &score, nullptr);
                return score;
            },
            "x"_a, "y"_a.none(), "weight"_a, "The score before the update; None if something is not acceptable.")
        .def(
            "score_one",
            [](const L& self, Row<T> x) -> std::optional<double> {
                if (!acceptable(self, x)) return std::nullopt;
                double score;
                self.score(x.data(), 1, &score);
                return score;
            },
            "x"_a, "The score; None if x is not acceptable.")
        .def(
            "score",
            [](const L& self, Matrix<T> x, Out scores, bool mean) {
                expect(x.shape(1), self.features(), "X");
                expect(scores.size(), x.shape(0), "scores");
                nb::gil_scoped_release release;
                const auto n = static_cast<std::int64_t>(x.shape(0));
                mean ? self.score_mean(x.data(), n, scores.data()) : self.score(x.data(), n, scores.data());
            },
            "x"_a, "scores"_a, "mean"_a)
        .def("gram",
             [](const L& self) {
                 std::shared_lock lock(self.mutex());
                 const std::size_t size = self.points().size();
                 return array(self.gram(), {size, size});
             })
        .def("points",
             [](const L& self) {
                 std::shared_lock lock(self.mutex());
                 return array(self.points().rows(),
                              {static_cast<std::size_t>(self.points().size()), static_cast<std::size_t>(self.features())});
             })
        .def("dropped_points",
             [](const L& self) {
                 std::shared_lock lock(self.mutex());
                 const std::size_t d = self.features();
                 return array(self.dropped_points(), {self.dropped_points().size() / d, d});
             })
        .def("state",
             [](L& self) {
                 std::shared_lock lock(self.mutex());
                 return state_of(self.loop());
             })
        .def(
            "restore",
            [](L& self, const State& state, Matrix<T> points, Matrix<T> dropped) {
                std::unique_lock lock(self.mutex());
                expect(points.shape(1), self.features(), "points");
                expect(dropped.shape(1), self.features(), "dropped");
                restore(self.loop(), state);
                expect(points.shape(0), self.loop().expansion.raw.size(), "points");
                expect(dropped.shape(0), self.loop().expansion.dropped.size(), "dropped");
                self.restore_points(std::vector<T>(points.data(), points.data() + points.size()),
                                    std::vector<T>(dropped.data(), dropped.data() + dropped.size()));
            },
            "state"_a, "points"_a, "dropped"_a)
        .def_prop_ro("steps", [](L& self) { return self.loop().steps; })
        .def_prop_ro("features", &L::features);
}

}  // namespace

NB_MODULE(_core, m) {
    m.doc() = "The compiled core of gossamer.";
    m.def("isa", [] { return std::string(tiles<double>().name); }, "The instruction set in use.");
    m.def(
        "all_finite", [](Matrix<double> x) {
            nb::gil_scoped_release release;
            return tiles<double>().finite(x.data(), x.size());
        },
        "x"_a, "Whether no entry is NaN or infinite.");
    m.def(
        "all_finite", [](Matrix<float> x) {
            nb::gil_scoped_release release;
            return tiles<float>().finite(x.data(), x.size());
        },
        "x"_a);

    bind_learner<float>(m, "Learner32");
    bind_learner<double>(m, "Learner64");

    nb::class_<Loop>(m, "Loop", "The loop over blocks of kernel values that the caller has made.")
        .def(
            "__init__",
            [](Loop* self, const Spec& loss, const Spec& rule, const Spec& budget, const std::string& average,
               bool gram, double epsilon) { new (self) Loop(make_loop(loss, rule, budget, average, gram, epsilon)); },
            "loss"_a, "rule"_a, "budget"_a, "average"_a, "gram"_a, "epsilon"_a)
        .def(
            "run",
            [](Loop& self, Square block, Square cross, Vector kappas, Vector y, Vector weights, Vector rates,
               Out scores, Out levels) {
                const std::size_t n = kappas.size();
                const std::size_t ld = block.shape(1);
                expect(cross.shape(0), n, "cross");
                expect(cross.shape(1), n, "cross");
                if (block.shape(0) < self.expansion.size() + n || ld < n || ld % 16 != 0)
                    throw std::invalid_argument("The block must have a row for every slot and newcomer, padded to 16.");
                expect(y.size(), n, "y");
                expect(weights.size(), n, "weights");
                expect(rates.size(), n, "rates");
                expect(scores.size(), n, "scores");
                expect(levels.size(), n, "levels");
                Block<double> b{block.data(), static_cast<std::ptrdiff_t>(ld), static_cast<int>(n), kappas.data(),
                                y.data(),     weights.data(),                  rates.data(),        scores.data(),
                                levels.data()};
                Recorder recorder{cross.data(), block.data(), b.ld, b.rows, {}};
                {
                    nb::gil_scoped_release release;
                    self.run(b, recorder);
                }
                const std::size_t count = recorder.events.size() / 3;
                return array(std::move(recorder.events), {count, 3});
            },
            "block"_a, "cross"_a, "kappas"_a, "y"_a, "weights"_a, "rates"_a, "scores"_a, "levels"_a)
        .def("state", [](const Loop& self) { return state_of(self); })
        .def(
            "restore",
            [](Loop& self, const State& state, std::optional<Square> gram) {
                restore(self, state);
                if (gram) self.expansion.set_gram(std::vector<double>(gram->data(), gram->data() + gram->size()));
            },
            "state"_a, "gram"_a.none())
        .def_prop_ro("steps", [](const Loop& self) { return self.steps; });
}
