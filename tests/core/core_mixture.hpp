// The mixture of experts without Python: every kind of opinion and both stacks, with weights, gaps and clock time; any split
// into batches gives the same bits, and so does every machine.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

#include "core_hashes.hpp"
#include "mixture/mix.hpp"
#include "mixture/stacking.hpp"

namespace gossamer {

struct MixtureTest {
    static constexpr int experts = 5, rows = 300;
    int failures = 0;

    void expect(bool good, const char* what) {
        if (good) return;
        ++failures;
        std::fprintf(stderr, "FAILED: a mixture, %s\n", what);
    }

    // What a mixture has learned, and what it said of the rows.
    struct Run {
        std::vector<double> opinions, weights, credits, stack, out, together;
    };

    template <class Opinion, class Stack> void run(const char* name, int outputs, bool timed, bool numbers) {
        std::mt19937 random(outputs + 2 * timed);
        std::normal_distribution<double> normal;
        std::vector<double> scores(experts * rows * outputs), variances(experts * rows), y(rows), importance(rows);
        std::vector<double> fades(rows), settled = {1, 0, 1, 1, 0};
        for (int t = 0; t < rows; ++t) {
            const int label = static_cast<int>(random() % std::max(2, outputs));
            y[t] = numbers ? normal(random) : outputs > 1 ? label : 2 * label - 1;
            importance[t] = t % 11 == 0 ? 0.0 : 0.5 + 0.5 * (t % 3);
            fades[t] = t % 13 == 0 ? 0.7 : 1.0;
            for (int e = 0; e < experts; ++e) {
                variances[e * rows + t] = 0.1 + 0.2 * e;
                for (int k = 0; k < outputs; ++k) {
                    const double truth = outputs > 1 ? (k == label ? 1.0 : -1.0) : y[t];
                    double& score = scores[(e * rows + t) * outputs + k];
                    score = (t < 150 ? 1.0 - 0.3 * e : 0.3 * e) * truth + normal(random);
                    if (e == 4 && t % 17 == 0) score = NAN;                            // an expert that has diverged
                    if (outputs > 1 && k == outputs - 1 && t < 40) score = -INFINITY;  // a class that comes later
                }
            }
        }
        const auto learn = [&](int size) {
            Run made;
            Opinion fresh;
            std::vector<double> blank;
            Opinion::each(fresh, [&](const char*, double& x) { blank.push_back(x); });
            for (int e = 0; e < experts; ++e) made.opinions.insert(made.opinions.end(), blank.begin(), blank.end());
            made.weights.assign(experts, 1.0 / experts), made.credits.assign(experts, 0.0);
            constexpr int d = Stack::features;
            made.stack.assign(1 + d + d * d, 0.0);
            made.stack[0] = 0.5;
            for (int i = 0; i < d; ++i) made.stack[1 + d + i * d + i] = 30.0;
            made.out.assign(rows * outputs, 0.0), made.together.assign(rows * outputs, 0.0);
            for (int first = 0; first < rows; first += size) {
                MixedRows part;
                part.experts = experts, part.rows = std::min(size, rows - first), part.outputs = outputs;
                std::vector<double> own, spread;
                for (int e = 0; e < experts; ++e) {
                    const auto from = scores.begin() + (e * rows + first) * outputs;
                    own.insert(own.end(), from, from + part.rows * outputs);
                    spread.insert(spread.end(), variances.begin() + e * rows + first,
                                  variances.begin() + e * rows + first + part.rows);
                }
                part.scores = own.data(), part.variances = spread.data(), part.y = &y[first];
                part.weights = &importance[first], part.fades = timed ? &fades[first] : nullptr;
                part.out = &made.out[first * outputs], part.together = &made.together[first * outputs];
                part.settled = settled.data();
                mix<Opinion>(part, made.opinions.data(), made.weights.data(), made.credits.data(), 1e-3, 0.999);
                if (numbers) continue;
                StackedRows stacked;
                stacked.together = part.together, stacked.y = part.y, stacked.weights = part.weights;
                stacked.fades = part.fades, stacked.rows = part.rows, stacked.outputs = outputs, stacked.out = part.out;
                Stack::run(stacked, made.stack.data(), 1e-3);
            }
            return made;
        };
        const Run whole = learn(rows);
        for (const int size : {1, 7, 64}) {
            const Run split = learn(size);
            expect(whole.out == split.out && whole.weights == split.weights && whole.opinions == split.opinions &&
                       whole.credits == split.credits && whole.stack == split.stack,
                   "in parts");
        }
        double sum = 0;
        for (const double weight : whole.weights) sum += weight;
        expect(std::abs(sum - 1) < 1e-12, "the sum of the weights");
        expect(std::all_of(whole.out.begin(), whole.out.end(), [](double x) { return !std::isnan(x); }), "a score");
        for (const auto* told : {&whole.out, &whole.weights, &whole.opinions, &whole.credits, &whole.stack})
            hashes.tell(name, *told);
    }
};

inline int test_mixture() {
    MixtureTest test;
    for (const bool timed : {false, true}) {
        test.run<SignOpinion, SignStack>("a mixture, two classes", 1, timed, false);
        test.run<ClassOpinion, ClassStack>("a mixture, three classes", 3, timed, false);
        test.run<ValueOpinion, SignStack>("a mixture, numbers", 1, timed, true);
        test.run<QuantileOpinion, SignStack>("a mixture, a quantile", 1, timed, true);
    }
    return test.failures;
}

}  // namespace gossamer
