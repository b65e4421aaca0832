// The border of the bank: states are Python's bytes, and the GIL is released while the rows are learned. Locks: border.hpp.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <tuple>

#include "bank/bank.hpp"
#include "python/arrays.hpp"
#include "python/border.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace gossamer;

namespace {

using States = nb::typed<nb::list, nb::object>;  // of bytes, or None for a new model

void expect(bool right, const char* what) {
    if (!right) throw std::invalid_argument(std::string("The arguments of a bank must fit together: ") + what + ".");
}

// pointers into the bytes of a list, which lives as long as the call
template <class T> std::vector<typename Bank<T>::State> pointers(const States& states) {
    std::vector<typename Bank<T>::State> found;
    found.reserve(states.size());
    for (nb::handle state : states) {
        expect(state.is_none() || nb::isinstance<nb::bytes>(state), "states are bytes or None");
        if (state.is_none())
            found.push_back({nullptr, 0});
        else
            found.push_back({PyBytes_AsString(state.ptr()), static_cast<std::size_t>(PyBytes_Size(state.ptr()))});
    }
    return found;
}

template <class T>
Call<T> make_call(const Bank<T>& bank, std::size_t models, const Matrix<T>& x, const Vector<std::int64_t>& rows,
                  const Vector<std::int64_t>& starts, const Vector<std::int32_t>& ranks, const MatrixOut<double>& out,
                  const VectorOut<std::uint8_t>& refused, bool columns) {
    const std::size_t n = x.shape(0);
    expect(x.shape(1) == static_cast<std::size_t>(bank.features()), "the features of x");
    expect(starts.size() == models + 1 && starts.data()[0] == 0, "a start for each state");
    for (std::size_t k = 0; k < models; ++k) expect(starts.data()[k] <= starts.data()[k + 1], "starts that rise");
    expect(static_cast<std::size_t>(starts.data()[models]) == rows.size(), "the last start");
    for (std::size_t i = 0; i < rows.size(); ++i)
        expect(rows.data()[i] >= 0 && static_cast<std::size_t>(rows.data()[i]) < n, "rows of x");
    expect(out.shape(0) == n && refused.size() == n, "a place for each row");
    expect(out.shape(1) == (columns ? ranks.size() : 1), "a column for each label");
    Call<T> call;
    call.x = x.data();
    call.rows = rows.data();
    call.starts = starts.data();
    call.ranks = ranks.data();
    call.labels = ranks.size();
    call.out = out.data();
    call.columns = columns ? static_cast<int>(out.shape(1)) : 0;
    call.refused = refused.data();
    return call;
}

template <class T> void bind(nb::module_& m, const char* name) {
    using B = Bank<T>;
    nb::class_<B>(m, name, "Many models with the same configuration, each a string of bytes between calls.")
        .def(
            "__init__",
            [](B* self, const std::vector<Spec>& kernel, const Spec& loss, const std::optional<Spec>& many,
               const Spec& rule, const Spec& budget, bool gram, double epsilon, int features, bool own_width,
               const std::optional<std::tuple<double, bool, bool>>& scaler, const std::string& kind, int given,
               bool targets) {
                const auto loop = [&](const Spec& l) {
                    return Loop(make_loss(l.first, l.second), make_rule(rule.first, rule.second),
                                make_budget(budget.first, budget.second), Average::none, gram, epsilon);
                };
                Config config{kernel, loop(loss), std::nullopt};
                if (many) config.many.emplace(loop(*many));
                config.features = features;
                config.own_width = own_width;
                if (scaler) std::tie(config.keep, config.centre, config.divide) = *scaler;
                config.scaled = scaler.has_value();
                config.labels = kind == "label";
                config.detects = kind == "none";
                config.given = given;
                config.targets = targets;
                new (self) B(std::move(config));
            },
            "kernel"_a, "loss"_a, "many"_a.none(), "rule"_a, "budget"_a, "gram"_a, "epsilon"_a, "features"_a,
            "own_width"_a, "scaler"_a.none(), "kind"_a, "given"_a, "targets"_a = false)
        .def(
            "learn",
            [](B& self, const States& states, Matrix<T> x, std::optional<Vector<double>> y,
               std::optional<Vector<double>> weights, Vector<std::int64_t> rows, Vector<std::int64_t> starts,
               Vector<std::int32_t> ranks, std::optional<Vector<double>> gammas, MatrixOut<double> out,
               VectorOut<std::uint8_t> refused, bool columns, int threads) {
                const auto found = pointers<T>(states);
                Call<T> call = make_call<T>(self, found.size(), x, rows, starts, ranks, out, refused, columns);
                if (y) expect(y->size() == x.shape(0), "a target for each row");
                if (weights) expect(weights->size() == x.shape(0), "a weight for each row");
                if (gammas) expect(gammas->size() == found.size(), "a gamma for each state");
                call.y = y ? y->data() : nullptr;
                call.weights = weights ? weights->data() : nullptr;
                call.gammas = gammas ? gammas->data() : nullptr;
                std::vector<std::string> made(found.size());
                change_long(self, [&] {
                    self.each(static_cast<std::int64_t>(found.size()), threads,
                              [&](Workspace<T>& workspace, std::int64_t k) {
                                  made[k] = workspace.learn(found[k].data, found[k].size, k, call);
                              });
                });
                States after;
                for (std::size_t k = 0; k < made.size(); ++k) {
                    if (made[k].empty()) {  // nothing was learned
                        after.append(states[k]);
                        continue;
                    }
                    after.append(nb::bytes(made[k].data(), made[k].size()));
                    std::string().swap(made[k]);
                }
                return after;
            },
            "states"_a, "x"_a, "y"_a.none(), "weights"_a.none(), "rows"_a, "starts"_a, "ranks"_a, "gammas"_a.none(),
            "out"_a, "refused"_a, "columns"_a, "threads"_a)
        .def(
            "score",
            [](B& self, const States& states, Matrix<T> x, Vector<std::int64_t> rows, Vector<std::int64_t> starts,
               Vector<std::int32_t> ranks, MatrixOut<double> out, VectorOut<std::uint8_t> refused,
               VectorOut<std::int64_t> winners, bool columns, int threads) {
                const auto found = pointers<T>(states);
                Call<T> call = make_call<T>(self, found.size(), x, rows, starts, ranks, out, refused, columns);
                expect(winners.size() == x.shape(0), "a winner for each row");
                call.winners = winners.data();
                change_long(self, [&] {  // exclusive: the workspaces are used, though no model changes
                    self.each(static_cast<std::int64_t>(found.size()), threads,
                              [&](Workspace<T>& workspace, std::int64_t k) {
                                  workspace.score(found[k].data, found[k].size, k, call);
                              });
                });
            },
            "states"_a, "x"_a, "rows"_a, "starts"_a, "ranks"_a, "out"_a, "refused"_a, "winners"_a, "columns"_a,
            "threads"_a)
        .def(
            "check",
            [](B& self, const nb::bytes& state) {
                const char* data = state.c_str();
                const std::size_t size = state.size();
                change_long(self, [&] {
                    self.each(1, 1, [&](Workspace<T>& workspace, std::int64_t) { workspace.check(data, size); });
                });
            },
            "state"_a, "Raise unless these are the bytes of a model.");
}

}  // namespace

void bind_bank(nb::module_& m) {
    bind<float>(m, "Bank32");
    bind<double>(m, "Bank64");
}
