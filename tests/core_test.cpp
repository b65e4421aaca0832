// The core without Python: every kernel x loss x rule x budget over random rows, in blocks and row by row, in both
// float types, with averages and norms. Rows must equal blocks bit for bit. Built with the sanitizers.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "learner.hpp"

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

template <class T> bool finite(const std::vector<T>& values) {
    for (T value : values)
        if (!std::isfinite(value)) return false;
    return true;
}

const std::vector<Program> kernels = {
    {{"linear", {}}},
    {{"polynomial", {0.5, 1.0, 3}}},
    {{"gaussian", {0.5}}},
    {{"gaussian", {1e6}}},  // distances by differences
    {{"laplace", {0.5}}},
    {{"matern", {0.5, 1.0}}},
    {{"matern", {1.5, 1.7}}},
    {{"matern", {2.5, 2.2}}},
    {{"gaussian", {0.5}}, {"linear", {}}, {"laplace", {1.0}}, {"product", {}}, {"scale", {0.5}}, {"sum", {}}},
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
};
const std::vector<Spec> rules = {
    {"gradient", {0.3, 0, 0, 0.1}},
    {"gradient", {0.3, 1, 1, 0.0}},
    {"implicit", {0.5, 0, 0, 2.0, 0.1, 0}},
    {"implicit", {0.5, 1, 1, 2.0, 3.0, 0}},
    {"implicit", {0.5, 0, 0, 2.0, 0.1, 1}},  // joint: for losses with nu that have it
};
const std::vector<Spec> budgets = {
    {"unlimited", {}},
    {"oldest", {5, inf}},
    {"oldest", {inf, 9}},
    {"oldest", {17, 20}},
    {"smallest", {1, 1}},
    {"smallest", {21, 1}},
    {"smallest", {16, 0}},
};

bool goes_together(const Spec& loss, const Spec& rule) {
    const bool joint = rule.first == "implicit" && rule.second.at(5) != 0;
    const bool adapts = loss.second.size() > 1 && !std::isnan(loss.second[1]);
    return !joint || (adapts && (loss.first == "novelty" || loss.first == "epsilon_insensitive"));
}

Loop make_loop(const Spec& loss, const Spec& rule, const Spec& budget, Average average, bool gram, double epsilon) {
    return Loop(make_loss(loss.first, loss.second), make_rule(rule.first, rule.second),
                make_budget(budget.first, budget.second), average, gram, epsilon);
}

template <class T> struct Data {
    int rows, d;
    std::vector<T> x;
    std::vector<double> y, weights;
    Data(int rows, int d, bool binary, unsigned seed) : rows(rows), d(d), x(static_cast<std::size_t>(rows) * d) {
        std::mt19937 random(seed);
        std::normal_distribution<double> normal;
        for (T& value : x) value = static_cast<T>(normal(random) / std::sqrt(static_cast<double>(d)));
        for (int k = 0; k < d; ++k) {
            x[static_cast<std::size_t>(rows / 3) * d + k] = 0;                                     // a zero row
            x[static_cast<std::size_t>(rows / 2) * d + k] = x[static_cast<std::size_t>(rows / 4) * d + k];  // a repeat
        }
        for (int t = 0; t < rows; ++t) {
            const double smooth = std::sin(2.0 * x[static_cast<std::size_t>(t) * d]) + 0.3 * normal(random);
            y.push_back(binary ? (smooth > 0 ? 1.0 : -1.0) : smooth);
            weights.push_back(t % 7 == 3 ? 0.0 : t % 5 == 1 ? 2.0 : 1.0);
        }
    }
};

// Learn in batches whose lengths repeat.
template <class T>
void learn(Learner<T>& learner, const Data<T>& data, const std::vector<int>& lengths, std::vector<double>& scores,
           std::vector<double>& levels) {
    scores.assign(data.rows, NAN);
    levels.assign(data.rows, NAN);
    for (int start = 0, i = 0; start < data.rows; ++i) {
        const int n = std::min(lengths[i % lengths.size()], data.rows - start);
        learner.learn(data.x.data() + static_cast<std::size_t>(start) * data.d, n, data.y.data() + start,
                      data.weights.data() + start, nullptr, scores.data() + start, levels.data() + start);
        start += n;
    }
}

template <class T> double norm2_of(const Learner<T>& learner, Expansion& e) {
    const std::vector<double> gram = learner.gram();
    double total = 0;
    for (int i = 0; i < e.size(); ++i)
        for (int j = 0; j < e.size(); ++j) total += e.coef(i) * e.coef(j) * gram[static_cast<std::size_t>(i) * e.size() + j];
    return total;
}

template <class T>
void compare(const Program& kernel, const Spec& loss, const Spec& rule, const Spec& budget, Average average,
             const Data<T>& data) {
    ++runs;
    const std::string name = (sizeof(T) == 4 ? "float " : "double ") + kernel.front().first + ", " + loss.first + ", " +
                             rule.first + ", " + budget.first + ", d = " + std::to_string(data.d);
    const double epsilon = sizeof(T) == 4 ? 4 * 1.2e-7 : 4 * 2.2e-16;
    const bool gram = budget.first != "unlimited";
    const auto make = [&] {
        return Learner<T>(Kernel(kernel), make_loop(loss, rule, budget, average, gram, epsilon), data.d);
    };
    Learner<T> whole = make();
    std::vector<double> scores, levels;
    learn(whole, data, {data.rows}, scores, levels);
    expect(finite(scores) && finite(levels), name + ": not finite");

    std::vector<double> seen(data.rows), mean(data.rows);
    whole.score(data.x.data(), data.rows, seen.data());
    whole.score_mean(data.x.data(), data.rows, mean.data());
    const std::vector<std::vector<int>> splits = {{1}, {13, 1, 24}};
    for (const std::vector<int>& lengths : splits) {
        Learner<T> other = make();
        std::vector<double> its_scores, its_levels;
        learn(other, data, lengths, its_scores, its_levels);
        Expansion &a = whole.loop().expansion, &b = other.loop().expansion;
        expect(same(scores, its_scores), name + ": scores of a split");
        expect(same(levels, its_levels), name + ": levels of a split");
        expect(same(a.raw, b.raw) && same(a.kappas, b.kappas) && same(a.births, b.births), name + ": terms");
        expect(same(a.summed, b.summed) && same(a.entered, b.entered) && same(a.dropped, b.dropped), name + ": sums");
        expect(same(whole.points().rows(), other.points().rows()), name + ": points");
        expect(same(whole.dropped_points(), other.dropped_points()), name + ": dropped points");
        expect(a.scale == b.scale && a.offset == b.offset && a.norm2 == b.norm2, name + ": scale, offset, norm");
        expect(whole.loop().updates == other.loop().updates && whole.loop().mistakes == other.loop().mistakes,
               name + ": counts");
        std::vector<double> one(1);
        for (int t = 0; t < data.rows; t += 11) {
            other.score(data.x.data() + static_cast<std::size_t>(t) * data.d, 1, one.data());
            expect(one[0] == seen[t], name + ": score of one row");
            other.score_mean(data.x.data() + static_cast<std::size_t>(t) * data.d, 1, one.data());
            expect(one[0] == mean[t], name + ": mean score of one row");
        }
        const double norm2 = norm2_of(other, b), slack = sizeof(T) == 4 ? 1e-3 : 1e-9;
        expect(std::abs(norm2 - b.norm2) <= slack * (1 + std::abs(norm2)), name + ": tracked norm");
        other.restore_points(other.points().rows(), other.dropped_points());  // also makes its Gram matrix again
        learn(other, data, {7}, its_scores, its_levels);
        expect(finite(its_scores), name + ": not finite after restore");
    }
}

template <class T> void everything() {
    unsigned seed = 0;
    for (const Spec& loss : losses) {
        const bool binary = loss.first.find("hinge") != std::string::npos || loss.first == "logistic";
        for (const Spec& rule : rules) {
            if (!goes_together(loss, rule)) continue;
            for (const Spec& budget : budgets)
                for (std::size_t k = 0; k < kernels.size(); ++k) {
                    const Average average = k % 3 == 0 ? Average::all : k % 3 == 1 ? Average::sparse : Average::none;
                    const Data<T> data(61, 1 + static_cast<int>(seed % 6), binary, seed);
                    compare(kernels[k], loss, rule, budget, average, data);
                    ++seed;
                }
        }
    }
    for (int d : {1, 2, 15, 16, 17, 127, 128, 129, 300})
        for (int rows : {1, 2, 11, 12, 13, 23, 24, 25, 47, 48, 49, 95, 96, 97, 200})
            for (const auto& kernel : kernels)
                compare(kernel, losses[4], rules[2], budgets[rows % budgets.size()], Average::all, Data<T>(rows, d, false, 1));
    // many support points: several strips, several panels, a Gram matrix that grows
    for (const auto& kernel : kernels)
        compare(kernel, losses[4], rules[2], Spec{"smallest", {150, 1}}, Average::all, Data<T>(400, 3, false, 2));
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
    expect(throws([] { Kernel(Program{{"unknown", {}}}); }), "an unknown kernel");
    expect(throws([] { Kernel(Program{{"linear", {}}, {"linear", {}}}); }), "a program that leaves two values");
    expect(throws([] { Kernel(Program{}); }), "an empty program");
    expect(throws([] { make_loss("unknown", {}); }), "an unknown loss");
    expect(throws([] { make_rule("unknown", {}); }), "an unknown rule");
    expect(throws([] { make_budget("unknown", {}); }), "an unknown budget");
    for (const double bad : {static_cast<double>(NAN), inf, -inf})
        for (std::size_t n : {1, 3, 16, 31, 64, 65}) {
            std::vector<double> values(n, 1.0);
            expect(tiles<double>().finite(values.data(), n), "finite values");
            values[n - 1] = bad;
            expect(!tiles<double>().finite(values.data(), n), "a value that is not finite");
        }
}

}  // namespace

int main() {
    everything<double>();
    everything<float>();
    errors();
    std::printf("%d learners on %s, %d failures\n", runs, tiles<double>().name, failures);
    return failures == 0 ? 0 : 1;
}
