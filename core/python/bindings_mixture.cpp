// The border between Python and the mixture of experts: a function of arrays, without an object of its own.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <optional>
#include <string>
#include <vector>

#include "mixture/mix.hpp"
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
           std::optional<Vector<double>> fades) {
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
            with_kind(kind, [&](auto found) {
                using Opinion = typename decltype(found)::Type;
                expect(opinions.size(), scores.shape(0) * Opinion::numbers, "opinions");
                nb::gil_scoped_release release;
                mix<Opinion>(rows, opinions.data(), weights.data(), credits.data(), share, keep);
            });
        },
        "kind"_a, "scores"_a, "variances"_a.none(), "y"_a.none(), "importance"_a.none(), "opinions"_a, "weights"_a,
        "credits"_a, "share"_a, "keep"_a, "out"_a, "fades"_a.none() = nb::none(),
        "Mix the scores of experts (experts, rows, outputs) into out; with y, learn the weights, opinions and "
        "credits.");
}
