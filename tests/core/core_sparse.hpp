// Sparse rows against dense ones: a learner, its points, and the scaler. The non-zeros of a row give the bits of the whole row.
#pragma once
#include <cmath>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "core_hashes.hpp"
#include "engine/learner.hpp"
#include "engine/scaler.hpp"
#include "engine/sparse_scaler.hpp"

namespace gossamer {

struct SparseTest {
    int failures = 0;

    void expect(bool good, const std::string& what) {
        if (good) return;
        ++failures;
        std::fprintf(stderr, "FAILED: sparse rows, %s\n", what.c_str());
    }

    // Some rows are empty, some have no column in common, some entries are stored zeros.
    template <class T> struct Data {
        int rows, d;
        std::vector<T> dense;
        SparseMatrix<T> sparse;
        std::vector<double> y;
        Data(int rows, int d, double share, unsigned seed)
            : rows(rows), d(d), dense(static_cast<std::size_t>(rows) * d) {
            std::mt19937 random(seed);
            std::normal_distribution<double> normal;
            for (int t = 0; t < rows; ++t) {
                double sum = 0;
                for (int j = 0; j < d; ++j) {
                    if (t % 17 == 5 || random() % 1000 >= share * 1000) continue;
                    const T value = random() % 20 == 0 ? T(0) : static_cast<T>(normal(random));
                    dense[static_cast<std::size_t>(t) * d + j] = value;
                    sparse.add(j, value);
                    sum += j % 3 == 0 ? value : -value;
                }
                sparse.end_row();
                y.push_back(sum + 0.1 * normal(random) > 0 ? 1.0 : -1.0);
            }
        }
        SparseBatch<T> from(std::int64_t t) const { return SparseLayout<T>::from(sparse.batch(), t, d); }
        const T* dense_from(std::int64_t t) const { return dense.data() + t * d; }
    };

    template <class L, class From>
    std::vector<double> learn(L& learner, From&& from, const std::vector<double>& y, int length) {
        std::vector<double> scores(y.size(), NAN);
        for (std::size_t start = 0; start < y.size(); start += length) {
            const std::size_t n = std::min(y.size() - start, static_cast<std::size_t>(length));
            Block<typename L::Value> block;
            block.y = y.data() + start;
            block.scores = scores.data() + start;
            learner.learner.learn(from(start), static_cast<std::int64_t>(n), block);
        }
        return scores;
    }

    template <class T, class Layout> struct Made {
        using Value = T;
        Learner<T, Layout> learner;
    };

    template <class T> void learners() {
        using Program = std::vector<std::pair<std::string, Numbers>>;
        const std::vector<Program> kernels = {
            {{"linear", {}}},      {{"polynomial", {0.5, 1.0, 3}}}, {{"gaussian", {0.1}}},
            {{"gaussian", {1e6}}},  // distances by differences
            {{"laplace", {0.1}}},  {{"matern", {1.7, 1.0, 1.0}}},   {{"gaussian", {0.1}}, {"linear", {}}, {"sum", {}}}};
        const std::vector<std::pair<std::string, Numbers>> rules = {{"implicit", {0.5, 0, 0, 2.0, 0.1, 0}},
                                                                    {"svmd", {0.3, 0, 0, 0.1, 0.2, 0.9, 0}},
                                                                    {"newton", {0.05, 0, 0, 0.1, 1.0, 0.0}}};
        const std::vector<std::pair<std::string, Numbers>> budgets = {
            {"unlimited", {}}, {"smallest", {13, 1}}, {"merge", {11}}, {"project", {9, 1e-3, 0, 0, 0}}};
        for (const double share : {0.02, 0.3})
            for (const Program& kernel : kernels)
                for (const auto& rule : rules)
                    for (const auto& budget : budgets) {
                        if (budget.first == "merge" && (kernel.size() > 1 || kernel[0].first != "gaussian")) continue;
                        const Data<T> data(150, share < 0.1 ? 300 : 37, share, 7);
                        compare(data, kernel, rule, budget);
                    }
    }

    template <class T>
    void compare(const Data<T>& data, const std::vector<std::pair<std::string, Numbers>>& kernel,
                 const std::pair<std::string, Numbers>& rule, const std::pair<std::string, Numbers>& budget) {
        const std::string name = "sparse, " + kernel[0].first + ", " + rule.first + ", " + budget.first;
        const auto loop = [&] {
            return Loop(make_loss("squared_hinge", {1.0}), make_rule(rule.first, rule.second),
                        make_budget(budget.first, budget.second), Average::all, budget.first != "unlimited",
                        sizeof(T) == 4 ? 4 * 1.2e-7 : 4 * 2.2e-16);
        };
        const auto make = [&] {
            return Made<T, SparseLayout<T>>{Learner<T, SparseLayout<T>>(Kernel(kernel, data.d), loop(), data.d)};
        };
        const auto from = [&](std::int64_t t) { return data.from(t); };
        auto whole = make(), single = make(), split = make();
        Made<T, DenseLayout<T>> dense{Learner<T>(Kernel(kernel, data.d), loop(), data.d)};
        const std::vector<double> scores = learn(whole, from, data.y, data.rows);
        hashes.tell(name, scores);
        expect(learn(single, from, data.y, 1) == scores, name + ": row by row");
        expect(learn(split, from, data.y, 29) == scores, name + ": a split");
        expect(learn(
                   dense, [&](std::int64_t t) { return data.dense_from(t); }, data.y, data.rows) == scores,
               name + ": dense rows");
        const Expansion &a = whole.learner.loop().expansion, &b = single.learner.loop().expansion,
                        &c = dense.learner.loop().expansion;
        expect(a.raw == b.raw && a.raw == c.raw && a.norm2 == b.norm2 && a.norm2 == c.norm2, name + ": coefficients");
        expect(whole.learner.points().rows() == single.learner.points().rows(), name + ": points");
        expect(whole.learner.dropped_points() == split.learner.dropped_points(), name + ": dropped points");
        expect(whole.learner.gram() == dense.learner.gram(), name + ": the Gram matrix");

        std::vector<double> means(data.rows), of_dense(data.rows), one(1);
        whole.learner.score_mean(data.from(0), data.rows, means.data(), 1);
        dense.learner.score_mean(data.dense_from(0), data.rows, of_dense.data(), 1);
        hashes.tell(name, means);
        expect(means == of_dense, name + ": mean scores of dense rows");
        for (int t = 0; t < data.rows; t += 11) {
            split.learner.score_mean(data.from(t), 1, one.data(), 1);
            expect(one[0] == means[t], name + ": the mean score of one row");
        }
        if (rule.first == "newton") {
            whole.learner.variance(data.from(0), data.rows, means.data());
            dense.learner.variance(data.dense_from(0), data.rows, of_dense.data());
            hashes.tell(name, means);
            expect(means == of_dense, name + ": variances");
        }
        split.learner.restore_points(split.learner.points().rows(), split.learner.dropped_points());
        expect(learn(split, from, data.y, 29) == learn(single, from, data.y, 1), name + ": after restore");
    }

    // in any split, and with the deviations that the recurrences of dense rows give
    template <class T> void scaler() {
        const Data<T> data(200, 23, 0.2, 3);
        for (const double keep : {1.0, 0.97})
            for (const bool divide : {false, true}) {
                struct State {
                    std::vector<double> mean, squares;
                    std::vector<std::int64_t> touched;
                };
                const auto run = [&](int length, State& s, std::vector<T>& z) {
                    s = {std::vector<double>(data.d), std::vector<double>(data.d), std::vector<std::int64_t>(data.d)};
                    z.assign(data.sparse.values.size(), T(0));
                    for (int t = 0; t < data.rows; t += length)  // z has the places of the values from row 0 on
                        scale_sparse_rows<T>(data.from(t), std::min(length, data.rows - t), z.data(), {keep, 0.0}, t,
                                             divide, s.mean.data(), s.squares.data(), s.touched.data());
                    const FadingWeight weight{keep, 0.0};
                    for (int j = 0; j < data.d; ++j)
                        rest_until(weight, data.rows, s.mean[j], s.squares[j], s.touched[j]);
                };
                State whole, single;
                std::vector<T> z, by_rows;
                run(data.rows, whole, z);
                run(1, single, by_rows);
                hashes.tell("a scaler of sparse rows", z);
                hashes.tell("a scaler of sparse rows", whole.squares);
                expect(z == by_rows && whole.mean == single.mean && whole.squares == single.squares, "a scaler");
                std::vector<double> mean(data.d), squares(data.d);
                scale_rows<T>(data.dense.data(), nullptr, data.rows, data.d, mean.data(), squares.data(), 0.0, keep,
                              nullptr, false, divide);
                for (int j = 0; j < data.d; ++j)
                    expect(std::abs(mean[j] - whole.mean[j]) < 1e-12 * (1 + std::abs(mean[j])) &&
                               std::abs(squares[j] - whole.squares[j]) < 1e-10 * (1 + squares[j]),
                           "a scaler of dense rows");
            }
    }
};

inline int test_sparse() {
    SparseTest test;
    test.learners<double>();
    test.learners<float>();
    test.scaler<double>();
    test.scaler<float>();
    return test.failures;
}

}  // namespace gossamer
