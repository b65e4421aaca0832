// A rule that moves all coefficients, against sums over terms written out: scores, coefficients, norm and the rule's weights.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "engine/learner.hpp"

namespace gossamer {

inline int test_moves() {
    constexpr int rows = 120, d = 2;
    constexpr double gamma = 0.5, rate = 0.3, pull = 0.2, reg = 0.1;
    int failures = 0;
    std::mt19937 random(5);
    std::normal_distribution<double> normal;
    std::vector<double> x(rows * d), y(rows);
    for (double& value : x) value = normal(random);
    for (int t = 0; t < rows; ++t) y[t] = std::sin(x[t * d]);
    const auto k = [&](int a, int b) {
        double distance = 0;
        for (int j = 0; j < d; ++j) distance += (x[a * d + j] - x[b * d + j]) * (x[a * d + j] - x[b * d + j]);
        return std::exp(-gamma * distance);
    };
    for (const double limit : {static_cast<double>(INFINITY), 9.0}) {
        const auto near = [&](double value, double expected, const char* what) {
            if (std::abs(value - expected) <= 1e-10 * (1 + std::abs(expected))) return;
            ++failures;
            std::fprintf(stderr, "FAILED: a step that moves all, %s is %g, not %g (limit %g)\n", what, value, expected,
                         limit);
        };
        Loop loop(make_loss("squared", {}), make_rule("everywhere", {rate, 0, 0, pull, reg}),
                  make_budget("oldest", {limit, INFINITY}), Average::none, true, 0.0);
        Learner<double> learner(Kernel({{"gaussian", {gamma}}}, d), std::move(loop), d);
        std::vector<double> scores(rows);
        Block<double> block;
        block.y = y.data();
        block.scores = scores.data();
        learner.learn(x.data(), rows, block);

        struct Term {
            int row;
            double coef, weight;
        };
        std::vector<Term> terms;
        double total = 0;
        for (int t = 0; t < rows; ++t) {
            double f = 0;
            for (const Term& term : terms) f += term.coef * k(term.row, t);
            near(scores[t], f, "a score");
            const double move = -rate * (f - y[t]);
            total += std::abs(move);
            for (Term& term : terms)
                term.coef = (1 - rate * reg) * term.coef - move * pull * std::tanh(term.weight) * k(term.row, t) / 2;
            const auto oldest =
                std::min_element(terms.begin(), terms.end(), [](auto& a, auto& b) { return a.row < b.row; });
            if (static_cast<double>(terms.size()) < limit)
                terms.push_back({t, move, total});
            else
                *oldest = {t, move, total};
        }
        double norm2 = 0;
        for (const Term& a : terms)
            for (const Term& b : terms) norm2 += a.coef * b.coef * k(a.row, b.row);
        const Expansion& e = learner.loop().expansion;
        const Everywhere& rule = std::get<Everywhere>(learner.loop().rule);
        near(e.size(), static_cast<double>(terms.size()), "the number of points");
        near(e.norm2, norm2, "the norm");
        near(rule.state.total, total, "the sum of all steps");
        for (int i = 0; i < std::min(e.size(), static_cast<int>(terms.size())); ++i) {
            near(e.scale * e.raw[0][i], terms[i].coef, "a coefficient");
            near(rule.state.weights[i], terms[i].weight, "a weight");
        }
    }
    return failures;
}

}  // namespace gossamer
