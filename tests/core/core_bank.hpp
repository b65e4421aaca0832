// A bank in its bytes: any split into calls and any number of threads give the same, and damaged bytes are refused or
// harmless.
#pragma once
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "bank/bank.hpp"
#include "core_hashes.hpp"

namespace gossamer {

template <class T> struct BankTest {
    static constexpr int keys = 7, features = 3, rows = 400;
    std::string name;
    Bank<T> bank;
    int labels;
    bool widths, projects;
    std::mt19937 random{7};
    int failures = 0;
    std::vector<T> x = std::vector<T>(rows * features);
    std::vector<double> y = std::vector<double>(rows);
    std::vector<std::int32_t> ranks = {2, 0, 1};
    std::vector<std::int64_t> winners = std::vector<std::int64_t>(rows);
    std::vector<std::uint8_t> refused = std::vector<std::uint8_t>(rows);

    BankTest(std::string name, Config config, int labels)
        : name(std::move(name)), bank(config), labels(labels), widths(config.own_width),
          projects(std::holds_alternative<Project>(config.two.budget)) {
        std::normal_distribution<double> normal;
        for (T& value : x) value = static_cast<T>(normal(random));
        for (int t = 0; t < rows; ++t)
            y[t] = labels > 0 ? random() % (t < 100 ? 2 : labels) : std::sin(x[t * features]);
    }

    struct Result {
        std::vector<std::string> states;
        std::vector<double> scores;
    };

    // rows [0, rows) in calls that end at the cuts; row t is of key t % keys
    Result learn(const std::vector<int>& cuts, int threads) {
        const int columns = std::max(labels, 1);
        Result result{std::vector<std::string>(keys), std::vector<double>(rows * columns)};
        const std::vector<double> gammas(keys, 0.3);
        for (std::size_t c = 0; c + 1 < cuts.size(); ++c) {
            std::vector<std::int64_t> order, starts = {0};
            for (int k = 0; k < keys; ++k) {
                for (int t = cuts[c]; t < cuts[c + 1]; ++t)
                    if (t % keys == k) order.push_back(t);
                starts.push_back(static_cast<std::int64_t>(order.size()));
            }
            Call<T> call = prepared(order, starts, result.scores);
            call.gammas = widths ? gammas.data() : nullptr;
            std::vector<std::string> after = result.states;
            bank.each(keys, threads, [&](Workspace<T>& workspace, std::int64_t k) {
                const std::string& state = result.states[k];
                const std::string& made =
                    workspace.learn(state.empty() ? nullptr : state.data(), state.size(), k, call);
                if (!made.empty()) after[k] = made;
            });
            result.states = after;
        }
        return result;
    }

    Call<T> prepared(const std::vector<std::int64_t>& order, const std::vector<std::int64_t>& starts,
                     std::vector<double>& scores) {
        Call<T> call;
        call.x = x.data();
        call.rows = order.data();
        call.starts = starts.data();
        call.y = y.data();
        call.ranks = ranks.data();
        call.labels = static_cast<std::size_t>(labels);
        call.out = scores.data();
        call.columns = labels;
        call.refused = refused.data();
        call.winners = winners.data();
        return call;
    }

    void run() {
        const Result whole = learn({0, rows}, 1);
        hashes.tell("bank, " + name, whole.scores);
        for (const std::string& state : whole.states) hashes.tell("bank, " + name + ", a state", state);
        for (int turn = 0; turn < 4; ++turn) {
            const int first = 1 + static_cast<int>(random() % 200),
                      second = first + 1 + static_cast<int>(random() % 100);
            const Result again = learn({0, first, second, rows}, 1 + turn);
            if (again.states != whole.states || again.scores != whole.scores) fail("calls or threads matter");
        }
        damage(whole.states[3]);
    }

    void damage(const std::string& good) {
        std::vector<double> scores(rows * std::max(labels, 1));
        std::vector<std::int64_t> order(20), starts = {0, 20};
        std::iota(order.begin(), order.end(), 0);
        Call<T> call = prepared(order, starts, scores);
        const auto attempt = [&](const std::string& bad) {
            bank.each(1, 1, [&](Workspace<T>& workspace, std::int64_t) {
                try {
                    workspace.check(bad.data(), bad.size());
                    workspace.score(bad.data(), bad.size(), 0, call);
                    workspace.learn(bad.data(), bad.size(), 0, call);
                } catch (const std::invalid_argument&) {}
            });
        };
        for (std::size_t size = 0; size < good.size(); size += 5)
            if (!refuses(good.data(), size)) fail("a part of a state passes");
        if (projects) {  // the last number of a state is one of the diagonal of Q, but for those of certainty
            std::size_t behind = 0;
            if ((good[2] & 16) != 0) {  // a bit for each number of it, at the end
                std::array<std::uint64_t, 2> bits;
                std::memcpy(bits.data(), &good[good.size() - sizeof bits], sizeof bits);
                behind = sizeof bits;
                for (std::uint64_t word : bits)
                    for (; word != 0; word &= word - 1) behind += sizeof(double);
            }
            for (const double wrong : {static_cast<double>(NAN), static_cast<double>(INFINITY), -1.0, 0.0}) {
                std::string bad = good;
                std::memcpy(&bad[bad.size() - behind - sizeof wrong], &wrong, sizeof wrong);
                if (!refuses(bad.data(), bad.size())) fail("a Q that cannot be passes");
            }
        }
        for (std::size_t place = 0; place < good.size(); ++place)
            for (int bit : {0, 7}) {
                std::string bad = good;
                bad[place] = static_cast<char>(bad[place] ^ (1 << bit));
                attempt(bad);
            }
    }

    bool refuses(const char* data, std::size_t size) {
        bool refused_ = false;
        bank.each(1, 1, [&](Workspace<T>& workspace, std::int64_t) {
            try {
                workspace.check(data, size);
            } catch (const std::invalid_argument&) {
                refused_ = true;
            }
        });
        return refused_;
    }

    void fail(const char* what) {
        ++failures;
        std::fprintf(stderr, "FAILED: bank, %s: %s\n", name.c_str(), what);
    }
};

template <class T> int test_bank_of() {
    int failures = 0;
    for (const auto& [budget, size] :
         {std::pair<const char*, Numbers>{"smallest", {6, 1}}, {"merge", {6}}, {"project", {6, 1e-3, 0, 0, 0}}})
        for (bool classes : {false, true})
            for (bool more : {false, true}) {  // a scaler, a width for each model and a tracked norm
                const bool gram = more || size.size() != 2;
                const auto loop = [&, name = budget, &numbers = size](const char* loss, const Numbers& its) {
                    return Loop(make_loss(loss, its), make_rule("gradient", {0.3, 0, 0, 0.1}),
                                make_budget(name, numbers), Average::none, gram, 1e-6);
                };
                Config config{{{"gaussian", {0.5}}}, loop(classes ? "hinge" : "squared", {1.0, NAN}), std::nullopt};
                if (classes) config.many.emplace(loop("structured", {1.0, 0, 0, 0, 0}));
                config.features = BankTest<T>::features;
                config.labels = classes;
                config.scaled = config.own_width = more;
                BankTest<T> test(std::string(budget) + (classes ? ", classes" : ", numbers"), config, classes ? 3 : 0);
                test.run();
                failures += test.failures;
            }
    return failures;
}

inline int test_bank() { return test_bank_of<double>() + test_bank_of<float>(); }

}  // namespace gossamer
