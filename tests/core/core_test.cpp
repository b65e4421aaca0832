// The core without Python: every kernel x loss x rule x budget over random rows, in blocks and row by row, in both
// float types, with several classes, examples that return, averages, norms and traces. Rows must equal blocks bit for
// bit. Built with the sanitizers, for other machines and by other compilers. The file is long because it is one program with its
// lists of parts, and what goes together.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "trees/additive.hpp"
#include "core_bank.hpp"
#include "core_hashes.hpp"
#include "core_mixture.hpp"
#include "core_moves.hpp"
#include "core_sparse.hpp"
#include "core_stream.hpp"
#include "core_trees.hpp"
#include "core_video.hpp"
#include "features/finite.hpp"
#include "engine/clock.hpp"
#include "engine/learner.hpp"
#include "engine/saved.hpp"
#include "engine/scaler.hpp"

using namespace gossamer;
using Spec = std::pair<std::string, Numbers>;
using Program = std::vector<Spec>;

namespace {

const double inf = INFINITY;
int failures = 0, runs = 0;

void expect(bool good, const std::string& what) {
    if (good) return;
    ++failures;
    std::fprintf(stderr, "FAILED: %s\n", what.c_str());
}

// the same bits, so that NaN would be told from NaN and 0 from -0 too
template <class T> bool same(const std::vector<T>& a, const std::vector<T>& b) {
    return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

bool same(const Rows2& a, const Rows2& b) {
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i)
        if (!same(a[i], b[i])) return false;
    return true;
}

// -inf stands for a class not yet seen
bool finite(const std::vector<double>& values) {
    return std::all_of(values.begin(), values.end(), [](double x) { return std::isfinite(x) || x == -inf; });
}

// x_0 by a decay and a power, x_0^2 by a ramp, x_0 - x_0 by a power: for rows of any width
const Numbers additive = {0, 0, 0, 2, 0, 1,   0.5, 2.0, 1.0, 1.0, 2, 1, 0.3, 1.0, 1,
                          0, 0, 1, 1, 1, 0.7, 1.0, 2,   0,   0,   1, 2, 0,   0.2, 1.0};
const std::vector<Program> kernels = {
    {{"linear", {}}},
    {{"polynomial", {0.5, 1.0, 3}}},
    {{"gaussian", {0.5}}},
    {{"gaussian", {1e6}}},  // distances by differences
    {{"laplace", {0.5}}},
    {{"matern", {1.0, 1.0}}},
    {{"matern", {1.7, 1.0, 1.0}}},
    {{"matern", {2.2, 1.0, 1.0, 1.0 / 3}}},
    {{"gaussian", {0.5}}, {"linear", {}}, {"laplace", {1.0}}, {"product", {}}, {"scale", {0.5}}, {"sum", {}}},
    {{"additive", additive}, {"gaussian", {0.5}}, {"sum", {}}},
};
const std::vector<Spec> losses = {
    {"hinge", {1.0, NAN}},
    {"hinge", {0.0, 0.3}},
    {"squared_hinge", {1.0}},
    {"logistic", {}},
    {"squared", {}},
    {"epsilon_insensitive", {0.1, NAN}},
    {"epsilon_insensitive", {0.1, 0.3}},
    {"huber", {0.5, NAN, 0, 0}},
    {"huber", {0.5, 0.3, 1, 1}},
    {"pinball", {0.3}},
    {"novelty", {1.0, NAN}},
    {"novelty", {0.0, 0.3}},
    {"structured", {1.0, 0, 0, 0, 0}},                                                    // classes come
    {"structured", {0.0, 0, 4, 0, 0}},                                                    // the multiclass perceptron's
    {"structured", {1.0, 1, 4, 1, 0, 0, 1, 2, 2, 1, 0, 2, 2, 2, 2, 0, .5, 2, 2, .5, 0}},  // costs, runner-up
    {"structured", {1.0, 0, 4, 0, 1, 2, 1, 0, 0, 1, 2, 0, 0, 0, 0, 1.5, 1, 0, 0, 1, 1.5}},  // a label kernel
    {"structured", {1.0, 1, 4, 0, 1, 2, 1, 0, 0, 1, 2, 0, 0, 0, 0, 1.5, 1, 0, 0, 1, 1.5}},
    {"softmax", {0}},
    {"softmax", {4}},
    {"one_vs_rest", {0, 1.0}},
};
const std::vector<Spec> rules = {
    {"gradient", {0.3, 0, 0, 0.1}},
    {"gradient", {0.3, 1, 1, 0.0}},
    {"gradient", {1, 0, 0, 0.0}},  // the perceptron's
    {"implicit", {0.5, 0, 0, 2.0, 0.1, 0}},
    {"implicit", {0.5, 1, 1, 2.0, 3.0, 0}},
    {"implicit", {0.5, 0, 0, 2.0, 0.1, 1}},  // joint: for losses with nu that have it
    {"projection", {1, 0, 0, 0, inf, inf}},
    {"projection", {1, 0, 0, 0, inf, 0.8}},  // onto a ball
    {"projection", {1, 0, 0, 1, 0.3, inf}},  // PA-I
    {"projection", {1, 0, 0, 2, 0.3, inf}},  // PA-II
    {"alma", {1, 0, 0, 0.9, 3.1, 1.4}},
    {"romma", {1, 0, 0, 0}},
    {"romma", {1, 0, 0, 1}},
    {"adatron", {0.8, 0, 0, 0.5}},
    {"svmd", {0.3, 0, 0, 0.1, 0.2, 0.9, 0}},
    {"svmd", {0.3, 0, 0, 0.0, 0.5, 0.0, 0.7}},  // no memory: the trace is cleared in every round
    {"svmd", {0.5, 0, 0, 0.1, 2.0, 1.0, 0.7}},
    {"newton", {0.05, 0, 0, 0.1, 1.0, 0.0}},
    {"newton", {0.05, 0, 0, 0.5, 0.9, 1.0}},
    {"everywhere", {0.3, 0, 0, 0.2, 0.1}},  // of the tests: it moves all coefficients
};
const std::vector<Spec> budgets = {
    {"unlimited", {}},
    {"oldest", {5, inf}},
    {"oldest", {inf, 9}},
    {"oldest", {17, 20}},
    {"sublinear", {11, 0.85}},
    {"smallest", {1, 1}},
    {"smallest", {21, 1}},
    {"smallest", {16, 0}},
    {"random", {7, 3}},
    {"forgetron", {6}},
    {"merge", {8}},
    {"project", {9, 1e-3, 0, 0, 0}},
    {"project", {12, 0.2, 1, 0, 0}},  // from the start
    {"auto", {20, 1e-3, 3, 0.1}},
    {"marked", {7}},  // of the tests: its state is an array
};

bool is_reshaping(const Spec& budget) {
    return budget.first == "forgetron" || budget.first == "merge" || budget.first == "project" ||
           budget.first == "auto";
}
bool is_binary(const Spec& loss) {
    return loss.first == "hinge" || loss.first == "squared_hinge" || loss.first == "logistic";
}
bool is_label(const Spec& loss) {
    return loss.first == "structured" || loss.first == "softmax" || loss.first == "one_vs_rest";
}

bool moves_all(const Spec& rule) { return rule.first == "everywhere" || rule.first == "newton"; }
bool keeps_gram(const Spec& rule, const Spec& budget) {
    return rule.first == "everywhere" || (budget.first != "unlimited" && budget.first != "sublinear");
}

bool goes_together(const Spec& loss, const Spec& rule) {
    const std::string &l = loss.first, &r = rule.first;
    const bool adapts = !is_label(loss) && loss.second.size() > 1 && !std::isnan(loss.second[1]);
    const bool with_labels = l == "structured" && loss.second[4] != 0;
    if (r == "implicit" && rule.second.at(5) != 0) return adapts && (l == "novelty" || l == "epsilon_insensitive");
    if (r == "projection") return !adapts && (l == "novelty" || l == "epsilon_insensitive" || l == "hinge");
    if (r == "alma" || r == "romma" || r == "adatron") return !adapts && l == "hinge";
    if (is_label(loss) && rule.second.at(2) != 0) return false;                   // no offset
    if (r == "newton" && l == "structured" && loss.second[0] == 0) return false;  // f = 0 would never be left
    return !((r == "svmd" || r == "newton") && with_labels);
}

bool takes(const Spec& budget, const Program& kernel, const Spec& loss, const Spec& rule) {
    if (budget.first == "merge") return kernel.size() == 1 && kernel[0].first == "gaussian" && rule.first != "adatron";
    if (budget.first != "forgetron") return true;
    return is_binary(loss) && rule == Spec{"gradient", {1, 0, 0, 0.0}};
}

Loop make_loop(const Spec& loss, const Spec& rule, const Spec& budget, Average average, bool gram, double epsilon) {
    return Loop(make_loss(loss.first, loss.second), make_rule(rule.first, rule.second),
                make_budget(budget.first, budget.second), average, gram, epsilon);
}

enum class Targets { real, binary, labels };

template <class T> struct Data {
    int rows, d, columns;
    std::vector<T> x;
    std::vector<double> y, weights;
    std::vector<std::int64_t> ids;  // examples come back after 40 rows
    Data(int rows, int d, Targets targets, unsigned seed)
        : rows(rows), d(d), columns(targets == Targets::labels ? 4 : 1), x(static_cast<std::size_t>(rows) * d) {
        std::mt19937 random(seed);
        std::normal_distribution<double> normal;
        for (T& value : x) value = static_cast<T>(normal(random) / std::sqrt(static_cast<double>(d)));
        for (int k = 0; k < d; ++k) {
            x[static_cast<std::size_t>(rows / 3) * d + k] = 0;  // a zero row
            x[static_cast<std::size_t>(rows / 2) * d + k] = x[static_cast<std::size_t>(rows / 4) * d + k];  // a repeat
        }
        for (int t = 0; t < rows; ++t) {
            const double smooth = std::sin(2.0 * x[static_cast<std::size_t>(t) * d]) + 0.3 * normal(random);
            const int label = (smooth > -0.6) + (smooth > 0) + (smooth > 0.6);
            y.push_back(targets == Targets::real     ? smooth
                        : targets == Targets::binary ? (smooth > 0 ? 1.0 : -1.0)
                                                     : label % std::min(4, 1 + t / 6));  // classes come one by one
            weights.push_back(t % 7 == 3 ? 0.0 : t % 5 == 1 ? 2.0 : 1.0);
            ids.push_back(t % 40);
            if (t < 40) continue;
            std::copy_n(row(t - 40), d, x.begin() + static_cast<std::size_t>(t) * d);
            y[t] = y[t - 40];
        }
    }
    const T* row(int t) const { return x.data() + static_cast<std::size_t>(t) * d; }
};

Targets targets_of(const Spec& loss) {
    return is_label(loss) ? Targets::labels : is_binary(loss) ? Targets::binary : Targets::real;
}

// Learn in batches whose lengths repeat.
template <class L, class T>
void learn(L& learner, const Data<T>& data, const std::vector<int>& lengths, std::vector<double>& scores,
           std::vector<double>& levels) {
    scores.assign(static_cast<std::size_t>(data.rows) * data.columns, NAN);
    levels.assign(data.rows, NAN);
    const bool with_ids = learner.loop().expansion.with_ids;
    for (int start = 0, i = 0; start < data.rows; ++i) {
        const int n = std::min(lengths[i % lengths.size()], data.rows - start);
        Block<T> block;
        block.y = data.y.data() + start;
        block.weights = data.weights.data() + start;
        block.ids = with_ids ? data.ids.data() + start : nullptr;
        block.columns = data.columns;
        block.scores = scores.data() + static_cast<std::size_t>(start) * data.columns;
        block.levels = levels.data() + start;
        learner.learn(data.row(start), n, block);
        start += n;
    }
}

// A sum over pairs of terms, and the same sum without signs, to measure its rounding by.
struct Product {
    double value = 0, size = 0;
    bool near(double other, double slack) const { return std::abs(value - other) <= slack * (1 + size); }
};

// <f, f>, or <f, v>
template <class T> Product product(const Learner<T>& learner, const Expansion& e, bool with_trace) {
    const std::vector<double> gram = learner.gram();
    const int m = e.size(), n = e.outputs();
    Product p;
    for (int a = 0; a < n; ++a)
        for (int b = 0; b < n; ++b) {
            const double label = e.labels.empty() ? (a == b ? 1.0 : 0.0) : e.labels[a * n + b];
            if (label == 0) continue;
            for (int i = 0; i < m; ++i)
                for (int j = 0; j < m; ++j) {
                    const double other = with_trace ? e.trace_coef(b, j) : e.scale * e.raw[b][j];
                    const double k = gram[static_cast<std::size_t>(i) * m + j];
                    const double term = label * e.scale * e.raw[a][i] * other * k;
                    p.value += term;
                    p.size += std::abs(term);
                }
        }
    return p;
}

template <class T>
void compare(const Program& kernel, const Spec& loss, const Spec& rule, const Spec& budget, Average average,
             const Data<T>& data) {
    ++runs;
    const std::string name = (sizeof(T) == 4 ? "float " : "double ") + kernel.front().first + ", " + loss.first + ", " +
                             rule.first + ", " + budget.first + ", d = " + std::to_string(data.d);
    const double epsilon = sizeof(T) == 4 ? 4 * 1.2e-7 : 4 * 2.2e-16;
    const bool gram = keeps_gram(rule, budget);
    const bool tracks = gram || budget.first == "unlimited";
    const auto make = [&] {
        return Learner<T>(Kernel(kernel, data.d), make_loop(loss, rule, budget, average, gram, epsilon), data.d);
    };
    Learner<T> whole = make();
    std::vector<double> scores, levels;
    learn(whole, data, {data.rows}, scores, levels);
    hashes.tell(name, scores);
    expect(finite(scores) && finite(levels), name + ": not finite");

    const int n = whole.outputs();
    std::vector<double> seen(static_cast<std::size_t>(data.rows) * n), mean(seen.size());
    whole.score(data.x.data(), data.rows, seen.data(), n);
    whole.score_mean(data.x.data(), data.rows, mean.data(), n);
    const std::vector<std::vector<int>> splits = {{1}, {13, 1, 24}};
    for (const std::vector<int>& lengths : splits) {
        Learner<T> other = make();
        std::vector<double> its_scores, its_levels;
        learn(other, data, lengths, its_scores, its_levels);
        Expansion &a = whole.loop().expansion, &b = other.loop().expansion;
        expect(same(scores, its_scores), name + ": scores of a split");
        expect(same(levels, its_levels), name + ": levels of a split");
        expect(same(a.raw, b.raw) && same(a.kappas, b.kappas) && same(a.births, b.births) && same(a.ids, b.ids) &&
                   same(a.sizes, b.sizes),
               name + ": terms");
        expect(same(a.trace, b.trace) && a.trace_scale == b.trace_scale && a.mix == b.mix && a.inner == b.inner &&
                   a.rate == b.rate,
               name + ": trace");
        expect(fields_of(whole.loop().budget) == fields_of(other.loop().budget) &&
                   fields_of(whole.loop().rule) == fields_of(other.loop().rule) && a.discarded == b.discarded,
               name + ": the state of its parts");
        expect(same(a.summed, b.summed) && same(a.entered, b.entered) && same(a.dropped, b.dropped), name + ": sums");
        expect(same(whole.points().rows(), other.points().rows()), name + ": points");
        expect(same(whole.dropped_points(), other.dropped_points()), name + ": dropped points");
        expect(a.scale == b.scale && a.offset == b.offset && a.norm2 == b.norm2, name + ": scale, offset, norm");
        expect(whole.loop().updates == other.loop().updates && whole.loop().mistakes == other.loop().mistakes &&
                   whole.loop().known == other.loop().known,
               name + ": counts");
        std::vector<double> one(n);
        for (int t = 0; t < data.rows; t += 11) {
            other.score(data.row(t), 1, one.data(), n);
            expect(std::equal(one.begin(), one.end(), seen.begin() + t * n), name + ": score of one row");
            other.score_mean(data.row(t), 1, one.data(), n);
            expect(std::equal(one.begin(), one.end(), mean.begin() + t * n), name + ": mean score of one row");
        }
        const double slack = sizeof(T) == 4 ? 1e-3 : 1e-9;
        if (tracks && b.keeps_norm) expect(product(other, b, false).near(b.norm2, slack), name + ": tracked norm");
        if (tracks && !b.trace.empty())
            expect(product(other, b, true).near(b.inner, slack), name + ": tracked product");
        other.restore_points(other.points().rows(), other.dropped_points());  // also makes its Gram matrix again
        learn(other, data, {7}, its_scores, its_levels);
        expect(finite(its_scores), name + ": not finite after restore");
    }
}

// Trees against kernel values, and a tree restored in the middle against one that was not.
template <class T>
void compare_trees(const Spec& loss, const Spec& rule, const Spec& budget, Average average, const Data<T>& data) {
    ++runs;
    const std::string name = "trees, " + loss.first + ", " + rule.first + ", " + budget.first;
    const double epsilon = sizeof(T) == 4 ? 4 * 1.2e-7 : 4 * 2.2e-16;
    const bool gram = keeps_gram(rule, budget);
    const auto make = [&] { return make_loop(loss, rule, budget, average, gram, epsilon); };
    Learner<T> dense(Kernel({{"additive", additive}}, data.d), make(), data.d);
    Additive<T> whole(read_coordinates(additive, data.d), make(), data.d);
    Additive<T> split(read_coordinates(additive, data.d), make(), data.d);
    std::vector<double> expected, scores, its_scores, levels;
    for (int pass = 0; pass < 2; ++pass) {
        learn(dense, data, {data.rows}, expected, levels);
        learn(whole, data, {data.rows}, scores, levels);
        learn(split, data, {7, 1}, its_scores, levels);
        hashes.tell(name, scores);
        expect(finite(scores), name + ": not finite");
        expect(same(scores, its_scores), name + ": scores of a split");
        const Expansion &a = whole.loop().expansion, &b = split.loop().expansion;
        expect(same(a.raw, b.raw) && same(a.trace, b.trace) && same(a.dropped, b.dropped), name + ": terms");
        expect(a.norm2 == b.norm2 && a.inner == b.inner && whole.shape() == split.shape(), name + ": norm, shape");
        for (std::size_t i = 0; sizeof(T) == 8 && pass == 0 && i < scores.size(); ++i)
            expect(scores[i] == expected[i] || std::abs(scores[i] - expected[i]) < 1e-7 * (1 + std::abs(expected[i])),
                   name + ": score " + std::to_string(scores[i]) + " is not " + std::to_string(expected[i]));
        const auto shape = split.shape();
        split.restore_points(split.points().rows(), split.dropped_points(), &shape);
    }
    const int n = whole.outputs();
    std::vector<double> f(n), g(n), parts(static_cast<std::size_t>(whole.effects()) * n);
    for (int t = 0; t < data.rows; t += 11) {
        whole.score(data.row(t), 1, f.data(), n);
        whole.score_effects(data.row(t), 1, parts.data(), n);
        for (int c = 0; c < n; ++c) {
            double sum = whole.loop().expansion.offset;
            for (int k = 0; k < whole.effects(); ++k) sum += parts[static_cast<std::size_t>(k) * n + c];
            expect(std::abs(sum - f[c]) < 1e-9 * (1 + std::abs(sum)), name + ": effects");
        }
        whole.score_mean(data.row(t), 1, f.data(), n);
        split.score_mean(data.row(t), 1, g.data(), n);
        expect(same(f, g), name + ": mean score");
    }
}

// A dictionary that grows through several strips, or waves: in one batch, in others, and restored in the middle.
template <class T>
void compare_finite(const Program& kernel, const Spec& loss, const Spec& rule, int limit, Average average,
                    const Data<T>& data) {
    ++runs;
    const std::string name = "finite, " + kernel.front().first + ", " + loss.first + ", " + rule.first;
    std::vector<T> frequencies(limit == 0 ? 21 * data.d : 0);
    for (std::size_t i = 0; i < frequencies.size(); ++i) frequencies[i] = static_cast<T>(std::sin(1e3 * i));
    const Program plain = {{"linear", {}}};
    const auto make = [&] {
        return Finite<T>(Kernel(limit == 0 ? plain : kernel, data.d),
                         make_loop(loss, rule, {"unlimited", {}}, average, false, 4 * 1.2e-7), data.d, limit, 1e-3,
                         frequencies);
    };
    Finite<T> whole = make(), rows = make(), split = make();
    std::vector<double> scores, by_rows, by_split, levels;
    for (int pass = 0; pass < 2; ++pass) {
        learn(whole, data, {data.rows}, scores, levels);
        learn(rows, data, {1}, by_rows, levels);
        learn(split, data, {13, 1, 24, 30}, by_split, levels);
        hashes.tell(name, scores);
        expect(finite(scores), name + ": not finite");
        expect(same(scores, by_rows) && same(scores, by_split), name + ": scores of a split");
        const Expansion &a = whole.loop().expansion, &b = split.loop().expansion;
        expect(same(a.raw, b.raw) && same(a.trace, b.trace) && same(a.summed, b.summed), name + ": weights");
        expect(a.norm2 == b.norm2 && a.inner == b.inner && same(a.births, b.births), name + ": norm, births");
        expect(same(whole.points().rows(), split.points().rows()), name + ": points");
        std::vector<T> points = split.points().rows();
        if (limit == 0) points.insert(points.end(), frequencies.begin(), frequencies.end());
        split.restore_points(points, {});
        expect(same(whole.coefs(), split.coefs()), name + ": coefficients after restore");
    }
    const int n = whole.outputs();
    std::vector<double> seen(static_cast<std::size_t>(data.rows) * n), one(n);
    whole.score_mean(data.x.data(), data.rows, seen.data(), n);
    for (int t = 0; t < data.rows; t += 11) {
        split.score_mean(data.row(t), 1, one.data(), n);
        expect(std::equal(one.begin(), one.end(), seen.begin() + t * n), name + ": mean score of one row");
    }
}

template <class T> void everything() {
    unsigned seed = 0;
    for (const Spec& loss : losses)
        for (const Spec& rule : rules) {
            if (!goes_together(loss, rule) || rule.first == "adatron" || rule.first == "everywhere") continue;
            const Data<T> data(75, seed % 5 + 2, targets_of(loss), seed);
            const Program& kernel = kernels[seed % kernels.size()];
            compare_finite<T>(kernel, loss, rule, seed % 3 ? 50 : 0, seed % 2 ? Average::all : Average::none, data);
            ++seed;
        }
    seed = 0;
    for (const Spec& loss : losses) {
        for (const Spec& rule : rules) {
            if (!goes_together(loss, rule)) continue;
            for (const Spec& budget : budgets)
                for (std::size_t k = seed % 2; k < kernels.size(); k += 2) {
                    if (!takes(budget, kernels[k], loss, rule)) continue;
                    const Average average = k % 3 == 0 ? Average::all : k % 3 == 1 ? Average::sparse : Average::none;
                    const Data<T> data(61, 1 + static_cast<int>(seed % 6), targets_of(loss), seed);
                    compare(kernels[k], loss, rule, budget, average, data);
                    if (k < 2 && !is_reshaping(budget) && !moves_all(rule))
                        compare_trees(loss, rule, budget, average, data);
                    ++seed;
                }
        }
    }
    for (int d : {1, 2, 15, 16, 17, 127, 128, 129, 300})
        for (int rows : {1, 2, 11, 12, 13, 23, 24, 25, 47, 48, 49, 95, 96, 97, 200})
            for (const auto& kernel : kernels) {
                const Spec& budget = budgets[rows % budgets.size()];
                if (takes(budget, kernel, losses[4], rules[3]))
                    compare(kernel, losses[4], rules[3], budget, Average::all, Data<T>(rows, d, Targets::real, 1));
            }
    // many support points: several strips, several panels, a Gram matrix that grows
    for (const auto& kernel : kernels)
        for (const Spec& budget : {Spec{"smallest", {150, 1}}, Spec{"project", {50, 1e-3, 0, 0, 0}}})
            compare(kernel, losses[4], rules[3], budget, Average::all, Data<T>(400, 3, Targets::real, 2));
}

void errors() {
    const auto throws = [](auto&& make) {
        try {
            make();
        } catch (const std::invalid_argument&) {
            return true;
        }
        return false;
    };
    expect(throws([] { Kernel(Program{{"unknown", {}}}, 1); }), "an unknown kernel");
    expect(throws([] { Kernel(Program{{"linear", {}}, {"linear", {}}}, 1); }), "a program that leaves two values");
    expect(throws([] { Kernel(Program{}, 1); }), "an empty program");
    expect(throws([] { make_loss("unknown", {}); }), "an unknown loss");
    expect(throws([] { make_loss("structured", {1.0, 0, 3, 1, 0, 0.0}); }), "a cost matrix of the wrong size");
    expect(throws([] { make_rule("unknown", {}); }), "an unknown rule");
    expect(throws([] { make_budget("unknown", {}); }), "an unknown budget");
    const Spec& everywhere = rules.back();
    expect(throws([&] { make_loop(losses[4], everywhere, budgets[0], Average::none, false, 0); }),
           "no kernel values to move by");
    for (const double bad : {static_cast<double>(NAN), inf, -inf})
        for (std::size_t n : {1, 3, 16, 31, 64, 65}) {
            std::vector<double> values(n, 1.0);
            expect(tiles<double>().finite(values.data(), n), "finite values");
            values[n - 1] = bad;
            expect(!tiles<double>().finite(values.data(), n), "a value that is not finite");
        }
}

// all flags and odd widths: row by row equals one call, with and without a place for the scaled rows
template <class T> void scaler() {
    for (const int features : {1, 3, 16, 17})
        for (const int flags : {0, 1, 2, 3}) {
            const int rows = 50;
            std::mt19937 random(flags);
            std::normal_distribution<double> normal;
            std::vector<T> x(rows * features), whole(x.size()), single(x.size());
            for (T& value : x) value = static_cast<T>(5 + normal(random));
            std::vector<std::vector<double>> mean(3, std::vector<double>(features)), squares = mean;
            std::vector<double> weight(3);
            const auto run = [&](int which, const T* from, T* to, int count) {
                weight[which] = scale_rows<T>(from, to, count, features, mean[which].data(), squares[which].data(),
                                              weight[which], 0.9, nullptr, flags & 1, flags & 2);
            };
            run(0, x.data(), whole.data(), rows);
            for (int t = 0; t < rows; ++t) run(1, &x[t * features], &single[t * features], 1);
            run(2, x.data(), nullptr, rows);
            hashes.tell("a scaler", whole);
            expect(same(whole, single) && same(mean[0], mean[1]) && same(mean[0], mean[2]) &&
                       same(squares[0], squares[1]) && same(squares[0], squares[2]) && weight[0] == weight[1] &&
                       weight[0] == weight[2],
                   "a scaler row by row");
        }
}

// halves are exact, nothing is left after 128 of them, and the bits are those of every machine
void clock_time() {
    std::vector<double> times, fades(2000);
    for (int t = 0; t < 2000; ++t) times.push_back(t == 0 ? 0.0 : times.back() + (t % 7) * 0.37 * t);
    fade_rows(times.data(), times.size(), NAN, 1000.0, fades.data());
    hashes.tell("a clock", fades);
    expect(fades[0] == 1 && fades[7] == 1, "equal times");
    for (int n = 0; n < 200; ++n) expect(halve(n) == (n < 128 ? std::ldexp(1.0, -n) : 0.0), "a half-life");
    for (double x = 0; x < 100; x += 0.37)
        expect(std::abs(halve(x) / std::exp2(-x) - 1) < 4e-16, "a part of a half-life");
}

}  // namespace

int main(int count, char** words) {
    const std::string word = count > 1 ? words[1] : "";
    if (word == "--name") return std::puts(tiles<double>().name) < 0;  // of the instruction set
    hashes.on = word == "--hashes";
    everything<double>();
    everything<float>();
    scaler<double>();
    scaler<float>();
    clock_time();
    errors();
    failures +=
        test_trees() + test_ranking() + test_moves() + test_video() + test_bank() + test_sparse() + test_stream();
    failures += test_mixture();
    std::fprintf(stderr, "%d learners on %s, %d failures\n", runs, tiles<double>().name, failures);
    return failures == 0 ? 0 : 1;
}
