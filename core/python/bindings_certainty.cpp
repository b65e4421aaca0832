// The border between Python and links, intervals and alarms: batches of scores, states as tuples of numbers.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "certainty/certainty.hpp"
#include "certainty/link.hpp"
#include "certainty/martingale.hpp"
#include "engine/gate.hpp"
#include "python/arrays.hpp"
#include "python/border.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace gossamer;

namespace {

// A state from its fields in order, and the fields of a state.
template <class S> S from_fields(const std::vector<double>& fields) {
    S state;
    std::size_t count = 0;
    S::each(state, [&](const char*, double&) { ++count; });
    expect(fields.size(), count, "state");
    count = 0;
    S::each(state, [&](const char*, double& field) { field = fields[count++]; });
    return state;
}
template <class S> std::vector<double> fields_of(const S& state) {
    std::vector<double> fields;
    S::each(state, [&](const char*, const double& field) { fields.push_back(field); });
    return fields;
}

void bind_links(nb::module_& m) {
    m.def(
        "learn_link",
        [](std::vector<double> fields, Vector<double> scores, Vector<double> y, std::optional<Vector<double>> weights,
           VectorOut<double> p, std::optional<Vector<double>> fades) {
            auto link = from_fields<Link>(fields);
            expect(y.size(), scores.size(), "y");
            expect(p.size(), scores.size(), "p");
            if (weights) expect(weights->size(), scores.size(), "weights");
            if (fades) expect(fades->size(), scores.size(), "fades");
            {
                nb::gil_scoped_release release;
                for (std::size_t t = 0; t < scores.size(); ++t) {
                    const double score = scores.data()[t];
                    const Link before = link;
                    if (fades) link.fade(fades->data()[t]);
                    p.data()[t] = link.learn(score, y.data()[t] > 0, weights ? weights->data()[t] : 1.0);
                    if (fades) p.data()[t] = before.probability(score);
                }
            }
            return fields_of(link);
        },
        "link"_a, "scores"_a, "y"_a, "weights"_a.none(), "p"_a, "fades"_a.none() = nb::none(),
        "Write the probability of the second class before each row to p, and learn the row; returns the link.");
    m.def(
        "link_probability",
        [](std::vector<double> fields, Vector<double> scores, VectorOut<double> p) {
            const auto link = from_fields<Link>(fields);
            expect(p.size(), scores.size(), "p");
            nb::gil_scoped_release release;
            for (std::size_t t = 0; t < scores.size(); ++t) p.data()[t] = link.probability(scores.data()[t]);
        },
        "link"_a, "scores"_a, "p"_a, "Write the probability of the second class of each score to p.");
    m.def(
        "learn_softmax_link",
        [](std::vector<double> fields, Matrix<double> scores, Vector<double> y, std::optional<Vector<double>> weights,
           MatrixOut<double> p, std::optional<Vector<double>> fades) {
            auto link = from_fields<SoftmaxLink>(fields);
            const std::size_t rows = scores.shape(0), classes = scores.shape(1);
            expect(y.size(), rows, "y");
            expect(p.size(), scores.size(), "p");
            if (weights) expect(weights->size(), rows, "weights");
            if (fades) expect(fades->size(), rows, "fades");
            {
                nb::gil_scoped_release release;
                for (std::size_t t = 0; t < rows; ++t) {
                    const double* row = scores.data() + t * classes;
                    double* out = p.data() + t * classes;
                    const int count = static_cast<int>(classes);
                    const SoftmaxLink before = link;
                    if (fades) link.fade(fades->data()[t]);
                    link.learn(row, count, static_cast<int>(y.data()[t]), out, weights ? weights->data()[t] : 1.0);
                    if (fades) before.probability(row, count, out);
                }
            }
            return fields_of(link);
        },
        "link"_a, "scores"_a, "y"_a, "weights"_a.none(), "p"_a, "fades"_a.none() = nb::none(),
        "Write the probabilities of the classes before each row to p, and learn the row; returns the link.");
    m.def(
        "softmax_link_probability",
        [](std::vector<double> fields, Matrix<double> scores, MatrixOut<double> p) {
            const auto link = from_fields<SoftmaxLink>(fields);
            const std::size_t classes = scores.shape(1);
            expect(p.size(), scores.size(), "p");
            nb::gil_scoped_release release;
            for (std::size_t t = 0; t < scores.shape(0); ++t)
                link.probability(scores.data() + t * classes, static_cast<int>(classes), p.data() + t * classes);
        },
        "link"_a, "scores"_a, "p"_a, "Write the probabilities of the classes of each row of scores to p.");
}

// A Certainty that several threads may use.
struct Sure : Certainty {
    mutable Gate gate;

    explicit Sure(const std::string& name) {
        while (task != Task::novelty && name != this->name()) task = static_cast<Task>(static_cast<int>(task) + 1);
        if (name != this->name()) throw std::invalid_argument("The task of a Certainty must be a known one.");
    }
    const char* name() const {
        static constexpr const char* names[] = {"classification", "log_odds", "regression", "novelty"};
        return names[static_cast<int>(task)];
    }
    std::vector<double> fields() const {
        std::vector<double> found;
        each(static_cast<const Certainty&>(*this), [&](const char*, const double& field) { found.push_back(field); });
        return found;
    }
    void restore(const std::vector<double>& values) {
        std::size_t count = 0;
        each(static_cast<Certainty&>(*this), [&](const char*, double&) { ++count; });
        expect(values.size(), count, "state");
        count = 0;
        each(static_cast<Certainty&>(*this), [&](const char*, double& field) { field = values[count++]; });
    }
};

using Weights = std::optional<Vector<double>>;
using Room = std::optional<MatrixOut<double>>;

// Learn rows one after the other; `before` writes what is known before each to its row of `out`, and `columns` of them are
// followed by the thresholds for the shares of misses.
template <class Before, class Learn>
void learn_rows(Sure& self, std::size_t rows, const Weights& weights, const std::vector<double>& missed,
                const Room& out, std::size_t columns, const Weights& fades, Before&& before, Learn&& learn) {
    if (weights) expect(weights->size(), rows, "weights");
    if (fades) expect(fades->size(), rows, "fades");
    if (out) expect(out->size(), rows * (columns + missed.size()), "out");
    change(self, [&] {
        double* to = out ? out->data() : nullptr;
        for (std::size_t t = 0; t < rows; ++t) {
            if (to != nullptr) {
                before(t, to);
                to += columns;
                for (const double share : missed) *to++ = self.threshold(share);
            }
            if (fades) self.fade(fades->data()[t]);
            learn(t, weights ? weights->data()[t] : 1.0);
        }
    });
}

void bind_certainties(nb::module_& m) {
    nb::class_<Sure>(m, "Certainty", "How sure a model is: probabilities, and thresholds that hold a coverage.")
        .def(nb::init<const std::string&>(), "task"_a)
        .def_prop_ro("task", [](const Sure& self) { return std::string(self.name()); })
        .def("state", [](const Sure& self) { return array(look(self, [&] { return self.fields(); })); })
        .def(
            "restore",
            [](Sure& self, Vector<double> state) {
                const std::vector<double> found(state.data(), state.data() + state.size());
                change(self, [&] { self.restore(found); });
            },
            "state"_a)
        .def("__getstate__",
             [](const Sure& self) {
                 return std::pair(std::string(self.name()), look(self, [&] { return self.fields(); }));
             })
        .def("__setstate__",
             [](Sure& self, const std::pair<std::string, std::vector<double>>& state) {
                 new (&self) Sure(state.first);
                 self.restore(state.second);
             })
        .def("__eq__",
             [](const Sure& self, nb::object arg) {
                 if (!nb::isinstance<Sure>(arg)) return false;
                 const Sure& other = nb::cast<const Sure&>(arg);
                 if (&self == &other) return true;
                 const auto mine = look(self, [&] { return self.fields(); });
                 return mine == look(other, [&] { return other.fields(); });
             })
        .def(
            "sound", [](const Sure& self) { return look(self, [&] { return self.sound(); }); },
            "Whether the numbers are ones that learning can make.")
        .def(
            "fade", [](Sure& self, double factor) { change(self, [&] { self.fade(factor); }); }, "factor"_a)
        .def("widen", [](Sure& self) { change(self, [&] { self.calibration.widen(); }); })
        .def(
            "learn_two",
            [](Sure& self, Vector<double> scores, Vector<double> y, Weights weights, std::vector<double> missed,
               Room out, Weights fades) {
                expect(y.size(), scores.size(), "y");
                if (!weights && !out && !fades)
                    return change(self,
                                  [&] { self.learn_two(scores.data(), y.data(), static_cast<int>(scores.size())); });
                learn_rows(
                    self, scores.size(), weights, missed, out, 1, fades,
                    [&](std::size_t t, double* to) {
                        const double f = scores.data()[t];
                        *to = std::isfinite(f) ? self.probability(f) : std::nan("");
                    },
                    [&](std::size_t t, double w) { self.learn_two(scores.data()[t], y.data()[t] > 0, w); });
            },
            "scores"_a, "y"_a, "weights"_a.none(), "missed"_a, "out"_a.none(), "fades"_a.none() = nb::none())
        .def(
            "learn_many",
            [](Sure& self, Matrix<double> scores, Vector<double> y, Weights weights, std::vector<double> missed,
               Room out, Weights fades) {
                const std::size_t rows = scores.shape(0), columns = scores.shape(1);
                const int classes = static_cast<int>(columns);
                expect(y.size(), rows, "y");
                std::vector<double> room(columns);
                learn_rows(
                    self, rows, weights, missed, out, columns, fades,
                    [&](std::size_t t, double* to) { self.probability(scores.data() + t * columns, classes, to); },
                    [&](std::size_t t, double w) {
                        self.learn_many(scores.data() + t * columns, classes, static_cast<int>(y.data()[t]),
                                        room.data(), w);
                    });
            },
            "scores"_a, "y"_a, "weights"_a.none(), "missed"_a, "out"_a.none(), "fades"_a.none() = nb::none())
        .def(
            "learn_real",
            [](Sure& self, Vector<double> residuals, Weights weights, std::vector<double> missed, Room out,
               Weights fades) {
                if (!weights && !out && !fades)
                    return change(self, [&] { self.learn_real(residuals.data(), static_cast<int>(residuals.size())); });
                learn_rows(
                    self, residuals.size(), weights, missed, out, 0, fades, [](std::size_t, double*) {},
                    [&](std::size_t t, double w) { self.learn_real(residuals.data()[t], w); });
            },
            "residuals"_a, "weights"_a.none(), "missed"_a, "out"_a.none(), "fades"_a.none() = nb::none())
        .def(
            "learn_novelty",
            [](Sure& self, Vector<double> scores, Weights weights, std::vector<double> missed, Room out,
               Weights fades) {
                learn_rows(
                    self, scores.size(), weights, missed, out, 1, fades,
                    [&](std::size_t t, double* to) { *to = self.p_value(scores.data()[t]); },
                    [&](std::size_t t, double w) { self.learn_novelty(scores.data()[t], w); });
            },
            "scores"_a, "weights"_a.none(), "missed"_a, "out"_a.none(), "fades"_a.none() = nb::none())
        .def(
            "learn_one",
            [](Sure& self, double score, double y, double weight) {
                change(self, [&] {
                    if (self.task == Certainty::Task::classes || self.task == Certainty::Task::log_odds)
                        self.learn_two(score, y > 0, weight);
                    else if (self.task == Certainty::Task::real)
                        self.learn_real(y - score, weight);
                    else
                        self.learn_novelty(score, weight);
                });
            },
            "score"_a, "y"_a, "weight"_a)
        .def(
            "probabilities_two",
            [](const Sure& self, Vector<double> scores, VectorOut<double> out) {
                expect(out.size(), scores.size(), "out");
                look(self, [&] {
                    for (std::size_t t = 0; t < scores.size(); ++t) {
                        const double f = scores.data()[t];
                        out.data()[t] = std::isfinite(f) ? self.probability(f) : std::nan("");
                    }
                });
            },
            "scores"_a, "out"_a)
        .def(
            "probabilities_many",
            [](const Sure& self, Matrix<double> scores, MatrixOut<double> out) {
                expect(out.size(), scores.size(), "out");
                const std::size_t columns = scores.shape(1);
                look(self, [&] {
                    for (std::size_t t = 0; t < scores.shape(0); ++t)
                        self.probability(scores.data() + t * columns, static_cast<int>(columns),
                                         out.data() + t * columns);
                });
            },
            "scores"_a, "out"_a)
        .def(
            "p_values",
            [](const Sure& self, Vector<double> scores, VectorOut<double> out) {
                expect(out.size(), scores.size(), "out");
                look(self, [&] {
                    for (std::size_t t = 0; t < scores.size(); ++t) out.data()[t] = self.p_value(scores.data()[t]);
                });
            },
            "scores"_a, "out"_a)
        .def(
            "threshold",
            [](const Sure& self, double missed) { return look(self, [&] { return self.threshold(missed); }); },
            "missed"_a);
}

// A Martingale that several threads may use.
struct Watch : Martingale {
    mutable Gate gate;
};

void bind_martingale(nb::module_& m) {
    nb::class_<Watch>(m, "Martingale", "Capital that grows when scores stop being exchangeable.")
        .def(
            "__init__",
            [](Watch* self, bool fed) {
                new (self) Watch();
                self->fed = fed;
            },
            "fed"_a)
        .def(
            "update",
            [](Watch& self, Vector<double> scores, std::uint64_t seed, int memory, VectorOut<double> p,
               VectorOut<double> wealth, double limit) {
                expect(p.size(), scores.size(), "p");
                expect(wealth.size(), scores.size(), "wealth");
                return change(self, [&] {
                    std::size_t t = 0;
                    while (t < scores.size()) {
                        p.data()[t] = self.p_value(scores.data()[t], seed, memory);
                        self.bet(p.data()[t]);
                        wealth.data()[t] = self.wealth();
                        if (wealth.data()[t++] >= limit) break;
                    }
                    return t;
                });
            },
            "scores"_a, "seed"_a, "memory"_a, "p"_a, "wealth"_a, "limit"_a,
            "Bet on scores until the capital reaches the limit; returns how many were taken.")
        .def("state",
             [](const Watch& self) {
                 return look(self, [&] {
                     std::vector<double> values(self.capital.begin(), self.capital.end());
                     values.push_back(self.salt);
                     values.insert(values.end(), self.sorted.begin(), self.sorted.end());
                     return values;
                 });
             })
        .def(
            "restore",
            [](Watch& self, std::vector<double> values) {
                if (values.size() < Martingale::stakes + 1) expect(values.size(), Martingale::stakes + 1, "state");
                change(self, [&] {
                    std::copy_n(values.begin(), Martingale::stakes, self.capital.begin());
                    self.salt = values[Martingale::stakes];
                    self.sorted.assign(values.begin() + Martingale::stakes + 1, values.end());
                });
            },
            "state"_a);
}

}  // namespace

void bind_certainty(nb::module_& m) {
    bind_links(m);
    bind_certainties(m);
    bind_martingale(m);
}
