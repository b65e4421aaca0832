// What is learned beside a model, in any split and on every machine: clock time, class weights, targets, certainty, alarms.
#pragma once
#include <cmath>
#include <cstdio>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "certainty/certainty.hpp"
#include "certainty/martingale.hpp"
#include "core_hashes.hpp"
#include "engine/class_weights.hpp"
#include "engine/clock.hpp"
#include "engine/learner.hpp"
#include "engine/targets.hpp"

namespace gossamer {

struct StreamTest {
    static constexpr int rows = 300, d = 3;
    int failures = 0;
    std::vector<double> x = std::vector<double>(rows * d), y, times, fades = std::vector<double>(rows), weights;

    StreamTest() {
        std::mt19937 random(11);
        std::normal_distribution<double> normal;
        for (double& value : x) value = normal(random);
        for (int t = 0; t < rows; ++t) {
            y.push_back(x[t * d] + 0.2 * normal(random) > 0 ? 1.0 : -1.0);
            times.push_back((t == 0 ? 0.0 : times.back()) + (t == 200 ? 1e6 : (t % 4) * 0.3));  // row 200 begins anew
            weights.push_back(t % 9 == 4 ? 0.0 : 1.0 + t % 3);
        }
        fade_rows(times.data(), rows, NAN, 30.0, fades.data());
    }

    void expect(bool good, const std::string& what) {
        if (good) return;
        ++failures;
        std::fprintf(stderr, "FAILED: a stream, %s\n", what.c_str());
    }

    template <class L>
    std::vector<double> learn(L& learner, const std::vector<float>& single, int length, int first = 0) {
        std::vector<double> scores(rows);
        for (int start = first; start < rows; start += length) {
            const auto with = [&](auto block, const auto* at) {
                block.y = y.data() + start;
                block.weights = weights.data() + start;
                block.fades = fades.data() + start;
                block.scores = scores.data() + start;
                learner.learn(at, std::min(length, rows - start), block);
            };
            if constexpr (std::is_same_v<typename L::Matrix, std::vector<float>>)
                with(Block<float>(), single.data() + start * d);
            else
                with(Block<double>(), x.data() + start * d);
        }
        return scores;
    }

    template <class T> void clocks() {
        const std::vector<float> single(x.begin(), x.end());
        const std::vector<std::pair<std::string, Numbers>> rules = {{"gradient", {0.3, 1, 1, 0.05}},
                                                                    {"implicit", {0.5, 0, 0, 2.0, 0.1, 0}},
                                                                    {"svmd", {0.3, 0, 0, 0.1, 0.2, 0.9, 0}},
                                                                    {"newton", {0.05, 0, 0, 0.1, 1.0, 0.0}}};
        const std::vector<std::pair<std::string, Numbers>> budgets = {{"unlimited", {}},
                                                                      {"oldest", {17, 90}},
                                                                      {"smallest", {13, 1}},
                                                                      {"merge", {11}},
                                                                      {"project", {9, 1e-3, 0, 0, 0}}};
        for (const auto& rule : rules)
            for (const auto& budget : budgets) {
                const std::string name = "a clock, " + rule.first + ", " + budget.first;
                const auto make = [&] {
                    return Learner<T>(Kernel({{"gaussian", {0.5}}}, d),
                                      Loop(make_loss("logistic", {}), make_rule(rule.first, rule.second),
                                           make_budget(budget.first, budget.second), Average::none,
                                           budget.first != "unlimited", 1e-15),
                                      d);
                };
                Learner<T> whole = make(), by_rows = make(), split = make();
                const std::vector<double> scores = learn(whole, single, rows);
                hashes.tell(name, scores);
                expect(learn(by_rows, single, 1) == scores && learn(split, single, 37) == scores, name + ": a split");
                if (rule.first == "implicit" || rule.first == "newton") {  // the others have rates of their own
                    Learner<T> anew = make();
                    const std::vector<double> later = learn(anew, single, rows, 200);
                    expect(std::equal(scores.begin() + 201, scores.end(), later.begin() + 201),
                           name + ": nothing is left after 128 half-lives");
                }
                const Expansion &a = whole.loop().expansion, &b = by_rows.loop().expansion;
                expect(a.raw == b.raw && a.scale == b.scale && a.norm2 == b.norm2, name + ": coefficients");
            }
    }

    void beside() {
        std::vector<double> codes, once(rows), split(rows), counts(3), its_counts(3);
        for (int t = 0; t < rows; ++t) codes.push_back(t % 11 == 3 ? 2 : t % 4 == 0 ? 1 : 0);
        for (const double* fading : {static_cast<const double*>(nullptr), static_cast<const double*>(fades.data())})
            for (const double* weighed :
                 {static_cast<const double*>(nullptr), static_cast<const double*>(weights.data())}) {
                const auto from = [](const double* p, int t) { return p == nullptr ? p : p + t; };
                counts.assign(3, 0.0), its_counts.assign(3, 0.0);
                balance(codes.data(), weighed, fading, rows, counts.data(), 3, once.data());
                for (int t = 0; t < rows; t += 7)
                    balance(codes.data() + t, from(weighed, t), from(fading, t), std::min(7, rows - t),
                            its_counts.data(), 3, split.data() + t);
                hashes.tell("class weights", once);
                expect(once == split && counts == its_counts, "class weights in a split");

                Targets whole, parts;
                std::vector<double> z(rows), means(rows), deviations(rows), of_parts(rows), more(rows), others(rows);
                whole.follow(x.data(), weighed, fading, rows, z.data(), means.data(), deviations.data());
                for (int t = 0; t < rows; t += 71)
                    parts.follow(x.data() + t, from(weighed, t), from(fading, t), std::min(71, rows - t),
                                 of_parts.data() + t, more.data() + t, others.data() + t);
                for (const auto* values : {&z, &means, &deviations}) hashes.tell("targets", *values);
                expect(z == of_parts && means == more && deviations == others, "targets in a split");
            }
    }

    // every number that a certainty has learned, after its answers
    void certainty() {
        for (const Certainty::Task task :
             {Certainty::Task::classes, Certainty::Task::log_odds, Certainty::Task::real, Certainty::Task::novelty}) {
            Certainty sure;
            sure.task = task;
            std::vector<double> told;
            double q[6], p[3];
            for (int t = 0; t < rows; ++t) {
                const double f = x[t * d] + 0.3 * x[t * d + 1];
                sure.fade(fades[t]);
                if (task == Certainty::Task::real) {
                    sure.learn_real(f, weights[t]);
                } else if (task == Certainty::Task::novelty) {
                    sure.learn_novelty(f, weights[t]);
                    told.push_back(sure.p_value(x[t * d + 2]));
                } else if (t < rows / 2) {
                    told.push_back(sure.probability(f));
                    sure.learn_two(f, y[t] > 0, weights[t]);
                } else {
                    if (t == rows / 2) sure.calibration.widen();
                    const double* scores = x.data() + t * d;
                    sure.probability(scores, 3, p);
                    told.insert(told.end(), p, p + 3);
                    sure.learn_many(scores, 3, t % 3, q, weights[t]);
                }
                for (const double missed : {0.3, 0.1, 0.02}) told.push_back(sure.threshold(missed));
            }
            Certainty::each(sure, [&](const char*, const double& field) { told.push_back(field); });
            hashes.tell("certainty", told);
            expect(sure.sound(), "certainty is sound");
        }
        for (const bool fed : {false, true}) {
            Martingale alarm;
            alarm.fed = fed;
            std::vector<double> told;
            for (int t = 0; t < rows; ++t) {
                alarm.bet(alarm.p_value(std::round(4 * x[t * d]) + (t > 200 ? 3 : 0), 5, 250));
                told.push_back(alarm.wealth());
            }
            hashes.tell("a martingale", told);
            expect(told.back() > told[200], "capital grows after a change");
        }
    }
};

inline int test_stream() {
    StreamTest test;
    test.clocks<double>();
    test.clocks<float>();
    test.beside();
    test.certainty();
    return test.failures;
}

}  // namespace gossamer
