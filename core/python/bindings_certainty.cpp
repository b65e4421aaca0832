// The border between Python and links, intervals and alarms: batches of scores, states as tuples of numbers.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <vector>

#include "certainty/link.hpp"
#include "python/arrays.hpp"

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

}  // namespace

void bind_certainty(nb::module_& m) { bind_links(m); }
