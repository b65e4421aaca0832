// The border between Python and the mixture of experts: a function of arrays, without an object of its own.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <optional>
#include <string>
#include <vector>

#include "mixture/mix.hpp"
#include "mixture/stacking.hpp"
#include "python/arrays.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace gossamer;

namespace {

template <class Opinion> struct Kind { using Type = Opinion; };

// calls work(Kind<Opinion>) for the opinion of this name
template <class Work> void with_kind(const std::string& name, Work&& work) {
    if (name == "sign") return work(Kind<SignOpinion>{});
    if (name == "class") return work(Kind<ClassOpinion>{});
    if (name == "value") return work(Kind<ValueOpinion>{});
    if (name == "quantile") return work(Kind<QuantileOpinion>{});
    throw std::invalid_argument("The 'kind' parameter of the core must be sign, class, value or quantile. Got " + name +
                                ".");
}

}  // namespace

void bind_mixture(nb::module_& m) {
    m.def(
        "new_opinion",
        [](const std::string& kind) {
            std::vector<double> numbers;
            with_kind(kind, [&](auto found) {
                using Opinion = typename decltype(found)::Type;
                Opinion fresh;
                Opinion::each(fresh, [&](const char*, double& x) { numbers.push_back(x); });
            });
            return array(std::move(numbers));
        },
        "kind"_a, "The numbers of an opinion that has seen nothing.");
    m.def(
        "mix",
        [](const std::string& kind, Dense<const double, 3> scores, std::optional<Matrix<double>> variances,
           std::optional<Vector<double>> y, std::optional<Vector<double>> importance, MatrixOut<double> opinions,
           VectorOut<double> weights, VectorOut<double> credits, double share, double keep, MatrixOut<double> out,
           std::optional<Vector<double>> fades, std::optional<Vector<double>> settled,
           std::optional<MatrixOut<double>> together) {
            MixedRows rows;
            rows.experts = static_cast<int>(scores.shape(0));
            rows.rows = static_cast<int>(scores.shape(1));
            rows.outputs = static_cast<int>(scores.shape(2));
            rows.scores = scores.data();
            if (variances) expect(variances->size(), scores.shape(0) * scores.shape(1), "variances");
            if (y) expect(y->size(), scores.shape(1), "y");
            if (importance) expect(importance->size(), scores.shape(1), "importance");
            if (fades) expect(fades->size(), scores.shape(1), "fades");
            expect(weights.size(), scores.shape(0), "weights");
            expect(credits.size(), scores.shape(0), "credits");
            expect(out.size(), scores.shape(1) * scores.shape(2), "out");
            rows.variances = variances ? variances->data() : nullptr;
            rows.y = y ? y->data() : nullptr;
            rows.weights = importance ? importance->data() : nullptr;
            rows.fades = fades ? fades->data() : nullptr;
            rows.out = out.data();
            if (settled && together) {
                expect(settled->size(), scores.shape(0), "settled");
                expect(together->size(), out.size(), "together");
                rows.settled = settled->data(), rows.together = together->data();
            }
            with_kind(kind, [&](auto found) {
                using Opinion = typename decltype(found)::Type;
                expect(opinions.size(), scores.shape(0) * Opinion::numbers, "opinions");
                nb::gil_scoped_release release;
                mix<Opinion>(rows, opinions.data(), weights.data(), credits.data(), share, keep);
            });
        },
        "kind"_a, "scores"_a, "variances"_a.none(), "y"_a.none(), "importance"_a.none(), "opinions"_a, "weights"_a,
        "credits"_a, "share"_a, "keep"_a, "out"_a, "fades"_a.none() = nb::none(),
        "settled"_a.none() = nb::none(), "together"_a.none() = nb::none(),
        "Mix the scores of experts (experts, rows, outputs) into out; with y, learn the weights, opinions and "
        "credits. What the settled ones say together is written beside it.");
    m.def(
        "stack",
        [](const std::string& kind, MatrixOut<double> out, Matrix<double> together, std::optional<Vector<double>> y,
           std::optional<Vector<double>> importance, VectorOut<double> numbers, double share,
           std::optional<Vector<double>> fades) {
            StackedRows rows;
            rows.rows = static_cast<int>(out.shape(0));
            rows.outputs = static_cast<int>(out.shape(1));
            expect(together.size(), out.size(), "together");
            if (y) expect(y->size(), out.shape(0), "y");
            if (importance) expect(importance->size(), out.shape(0), "importance");
            if (fades) expect(fades->size(), out.shape(0), "fades");
            const int features = kind == "sign" ? SignStack::features : ClassStack::features;
            expect(numbers.size(), static_cast<std::size_t>(1 + features + features * features), "numbers");
            rows.together = together.data(), rows.out = out.data();
            rows.y = y ? y->data() : nullptr;
            rows.weights = importance ? importance->data() : nullptr;
            rows.fades = fades ? fades->data() : nullptr;
            nb::gil_scoped_release release;
            (kind == "sign" ? SignStack::run : ClassStack::run)(rows, numbers.data(), share);
        },
        "kind"_a, "out"_a, "together"_a, "y"_a.none(), "importance"_a.none(), "numbers"_a, "share"_a,
        "fades"_a.none() = nb::none(),
        "Replace the scores of a mixture by those of the mixture and the stack; with y, learn the stack.");
}
