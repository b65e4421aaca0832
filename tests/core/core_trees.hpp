// Search trees against plain sums: random inserts, removals, changes, scalings, new rows and rebuilds.
#pragma once
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "trees/coordinates.hpp"
#include "engine/ranking.hpp"
#include "trees/tree.hpp"

namespace gossamer {

// The terms of one coordinate as a list.
struct Plain {
    std::vector<Term> terms;
    std::vector<Key> keys;
    std::vector<std::vector<double>> coefs;  // [term][row]

    // f_r(x), and the sum of what was added without signs
    std::pair<double, double> value_at(double x, int row) const {
        double sum = 0, size = 0;
        for (std::size_t i = 0; i < keys.size(); ++i) {
            double k = 0;
            for (const Term& term : terms) k += value(term, x, keys[i].x);
            sum += coefs[i][row] * k;
            size += std::abs(coefs[i][row] * k);
        }
        return {sum, size};
    }
};

struct TreeTest {
    std::string name;
    std::vector<Term> terms;
    int kind;  // of the keys: any, few, in order, of huge range
    std::mt19937 random;
    int failures = 0;

    double uniform() { return std::uniform_real_distribution<double>()(random); }
    double some_key(std::int64_t birth) {
        if (kind == 0) return 2 * uniform();
        if (kind == 1) return static_cast<double>(random() % 7) / 4;
        if (kind == 2) return 0.001 * static_cast<double>(birth);
        if (kind == 3) return 5 - 0.001 * static_cast<double>(birth);
        return std::pow(10.0, 40 * uniform() - 20);
    }
    std::vector<double> some_coefs(int rows) {
        std::vector<double> coefs;
        for (int r = 0; r < rows; ++r) coefs.push_back(std::normal_distribution<double>()(random));
        return coefs;
    }

    void check(const Tree& tree, const Plain& plain, const char* when) {
        std::vector<double> scratch(tree.scratch_size()), f(tree.rows());
        for (int i = 0; i < 6; ++i) {
            double x = some_key(static_cast<std::int64_t>(5000 * uniform()));
            if (i % 2 == 0 && !plain.keys.empty()) x = plain.keys[random() % plain.keys.size()].x;
            std::fill(f.begin(), f.end(), 0.0);
            tree.add(x, scratch.data(), f.data());
            for (int r = 0; r < tree.rows(); ++r) {
                const auto [sum, size] = plain.value_at(x, r);
                if (std::abs(f[r] - sum) <= 1e-9 * size + 1e-280) continue;
                ++failures;
                std::fprintf(stderr, "FAILED: %s, keys %d, %s: f(%g) = %.17g, not %.17g\n", name.c_str(), kind, when, x,
                             f[r], sum);
            }
        }
    }

    // the same terms in a new tree of the same shape: the same bits
    void rebuild(Tree& tree, const Plain& plain) {
        const auto shape = tree.shape();
        std::vector<double> coefs, scratch(tree.scratch_size()), one(tree.rows()), other(tree.rows());
        for (const auto& row : plain.coefs) coefs.insert(coefs.end(), row.begin(), row.end());
        Tree twin(terms, tree.rows());
        bool good = twin.build(plain.keys, coefs, tree.rows(), &shape) && twin.shape() == shape;
        for (int i = 0; i < 5; ++i) {
            const double x = some_key(2000);
            tree.add(x, scratch.data(), one.data());
            twin.add(x, scratch.data(), other.data());
        }
        good = good && std::memcmp(one.data(), other.data(), one.size() * sizeof(double)) == 0;
        for (std::size_t i = 0; i < shape.size(); i += 1 + shape.size() / 9)
            for (std::int64_t by : {std::int64_t(-1), std::int64_t(1), std::int64_t(1) << 40}) {
                auto wrong = shape;
                wrong[i] += by;
                if (Tree(terms, tree.rows()).build(plain.keys, coefs, tree.rows(), &wrong)) good = false;
            }
        if (good) {
            tree = std::move(twin);
            return;
        }
        ++failures;
        std::fprintf(stderr, "FAILED: %s, keys %d: a rebuilt tree\n", name.c_str(), kind);
    }

    void run(int operations) {
        Tree tree(terms, 1 + static_cast<int>(random() % 2));
        Plain plain{terms, {}, {}};
        std::int64_t birth = 0;
        for (int i = 0; i < operations; ++i) {
            const double inserts = (i / 1500) % 2 == 0 ? 0.85 : 0.1;  // it grows, and shrinks, to nothing in the end
            const double what = uniform();
            const std::size_t at = plain.keys.empty() ? 0 : random() % plain.keys.size();
            if (what < 0.001 && tree.rows() < 4) {
                const int row = static_cast<int>(random() % (tree.rows() + 1));
                tree.grow(row);
                for (auto& coefs : plain.coefs) coefs.insert(coefs.begin() + row, 0.0);
            } else if (what < 0.002) {
                const int from = static_cast<int>(random() % tree.rows());
                const double factor = random() % 3 == 0 ? 0.0 : 1e-3 + uniform();
                tree.scale(from, tree.rows(), factor);
                for (auto& coefs : plain.coefs)
                    for (std::size_t r = from; r < coefs.size(); ++r) coefs[r] *= factor;
            } else if (what < 0.003) {
                rebuild(tree, plain);
            } else if (what < 0.05 && !plain.keys.empty()) {
                plain.coefs[at] = some_coefs(tree.rows());
                tree.change(plain.keys[at], plain.coefs[at].data());
            } else if (uniform() < inserts || plain.keys.empty()) {
                plain.keys.push_back({some_key(birth), birth});
                ++birth;
                plain.coefs.push_back(some_coefs(tree.rows()));
                tree.insert(plain.keys.back(), plain.coefs.back().data());
            } else {
                tree.erase(plain.keys[at]);
                plain.keys.erase(plain.keys.begin() + at);
                plain.coefs.erase(plain.coefs.begin() + at);
            }
            if (i % 100 == 0) check(tree, plain, "in between");
        }
        while (!plain.keys.empty()) {
            tree.erase(plain.keys.back());
            plain.keys.pop_back();
            plain.coefs.pop_back();
            if (plain.keys.size() % 200 == 0) check(tree, plain, "at the end");
        }
    }
};

inline Term decay(double theta, const std::vector<double>& coefs) {
    Term term;
    term.order = static_cast<int>(coefs.size()) - 1;
    term.theta = theta;
    std::copy(coefs.begin(), coefs.end(), term.coefs);
    return term;
}

inline Term ramp(int z) {
    Term term;
    term.kind = Term::Kind::ramp;
    term.order = z;
    for (int j = 0; j <= z; ++j) term.coefs[j] = binomials(z)[j] / (2 * z + 1 - j);
    return term;
}

inline Term power(int z) {
    Term term;
    term.kind = Term::Kind::power;
    term.order = z;
    term.coefs[0] = 0.5;
    return term;
}

// Returns the number of failures.
inline int test_trees() {
    const std::vector<std::pair<std::string, std::vector<Term>>> kernels = {
        {"exponential", {decay(3, {1})}},
        {"matern 7/2", {decay(2, {1, 1, 0.4, 1.0 / 15})}},
        {"brownian", {ramp(0)}},
        {"spline 1", {ramp(1), power(0), power(1)}},
        {"spline 5", {ramp(5), power(3)}},
        {"linear", {power(1)}},
        {"sum", {ramp(2), decay(5, {1, 1}), power(0), decay(0.1, {1})}},
    };
    int failures = 0;
    unsigned seed = 0;
    for (const auto& [name, terms] : kernels)
        for (int kind = 0; kind < 5; ++kind) {
            TreeTest test{name, terms, kind, std::mt19937(++seed)};
            test.run(4500);
            failures += test.failures;
        }
    return failures;
}

// The first of all slots, against a scan.
inline int test_ranking() {
    std::mt19937 random(1);
    Ranking ranking;
    std::vector<int> values;
    int failures = 0;
    for (int i = 0; i < 200000; ++i) {
        const unsigned what = random() % 100;
        const bool growing = (i / 20000) % 2 == 0;
        if (what < (growing ? 50 : 30)) {
            values.push_back(static_cast<int>(random() % 1000));
            ranking.touch(static_cast<int>(values.size()) - 1);
        } else if (what < 80 && !values.empty()) {
            const int slot = static_cast<int>(random() % values.size()), last = static_cast<int>(values.size()) - 1;
            ranking.touch(slot);
            ranking.touch(last);
            values[slot] = values[last];
            values.pop_back();
            values.shrink_to_fit();  // so that a look at what has gone is seen
        } else if (what < 90 && !values.empty()) {
            const int slot = static_cast<int>(random() % values.size());
            values[slot] = static_cast<int>(random() % 1000);
            ranking.touch(slot);
        } else if (!values.empty() && i % 7 == 0) {
            const auto before = [&](int a, int b) {
                return values[a] < values[b] || (values[a] == values[b] && a < b);
            };
            int first = 0;
            for (int slot = 1; slot < static_cast<int>(values.size()); ++slot)
                if (before(slot, first)) first = slot;
            failures += ranking.first(static_cast<int>(values.size()), before) != first;
        }
    }
    return failures;
}

}  // namespace gossamer
