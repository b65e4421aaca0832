// THE LOOP, over one block of rows whose kernel values are known or made on demand. The twin of expansion.py's Loop.
//
// The kernel values stand in `g`, slots down, rows of the block across. Scores are kept as sixteen partial sums per
// row; when a slot changes, only its own partial sum is made again, for the rows still to come.
#pragma once
#include <cstdint>
#include <vector>

#include "budgets.hpp"
#include "expansion.hpp"
#include "losses.hpp"
#include "rules.hpp"
#include "tiles.hpp"

namespace gossamer {

template <class T> struct Block {
    T* g = nullptr;          // [slot * ld + row]
    std::ptrdiff_t ld = 0;   // rows rounded up; 1 for a single row
    int rows = 0;
    const double* kappas = nullptr;
    const double* y = nullptr;        // may be null: no targets
    const double* weights = nullptr;  // may be null: all 1
    const double* rates = nullptr;    // may be null: the rule's own schedule
    double* scores = nullptr;
    double* levels = nullptr;         // may be null
};

class Loop {
public:
    Loop(Loss loss, Rule rule, Budget budget, Average average, bool with_gram, double epsilon)
        : loss(std::move(loss)), rule(std::move(rule)), budget(std::move(budget)), epsilon(epsilon) {
        expansion.average = average;
        expansion.with_gram = with_gram;
    }

    // Source: place(row, slot) stores a newcomer and makes its column of g; remove(slot, last) moves the last point.
    template <class T, class Source> void run(const Block<T>& block, Source& source) {
        sum_all(block, 0);
        for (int t = 0; t < block.rows; ++t) {
            ++steps;
            for (int gone; (gone = expired()) != refuse;) remove(gone, t, block, source);
            expansion.begin_round();
            double value = expansion.scale * unscaled(block, t);
            const double score = value + expansion.offset, kappa = block.kappas[t];
            block.scores[t] = score;
            if (block.levels != nullptr) block.levels[t] = level();
            const double y = block.y == nullptr ? 0.0 : block.y[t];
            if (binary() && y * score <= 0) ++mistakes;

            const Step step = decide({value, expansion.offset, y, kappa, rate(block, t),
                                      block.weights == nullptr ? 1.0 : block.weights[t]});
            expansion.offset = step.offset;
            std::visit([&](auto& l) { l.level = step.level; }, loss);
            if (step.keep == 0) {
                while (expansion.size() > 0) remove(expansion.size() - 1, t + 1, block, source);
                expansion.scale = 1;
                expansion.norm2 = value = 0;
            } else {
                expansion.shrink(step.keep);
                if (expansion.must_fold()) {
                    expansion.fold();
                    sum_all(block, t + 1);
                }
            }
            // a step no larger than the rounding of the score it was made from is none
            if (!(std::abs(step.coefficient) * kappa > epsilon * std::abs(value + expansion.offset))) continue;
            ++updates;
            const int slot =
                std::visit([&](const auto& b) { return b.choose(expansion, step.coefficient, kappa); }, budget);
            if (slot == refuse) continue;
            const bool appended = slot == expansion.size();
            expansion.place(slot, step.coefficient, kappa, steps, step.keep * value, block.g + t, block.ld);
            source.place(t, slot);
            if (t + 1 == block.rows) continue;
            if (appended)  // one more term at the end of its partial sum
                tiles<T>().partial(block.g + slot * block.ld, block.ld, expansion.raw.data() + slot, 1, 0, t + 1,
                                   block.rows, sums_of(slot, block), true);
            else
                sum_one(slot, t + 1, block);
        }
    }

    double level() const {
        return std::visit([](const auto& l) { return l.level; }, loss);
    }

    bool accepts(double y) const {
        return std::visit(
            [&](const auto& l) {
                return l.target == Target::none || (l.target == Target::binary ? std::abs(y) == 1 : std::isfinite(y));
            },
            loss);
    }

    Loss loss;
    Rule rule;
    Budget budget;
    double epsilon;
    Expansion expansion;
    std::int64_t steps = 0, updates = 0, mistakes = 0;

private:
    std::vector<double> sums_;

    bool binary() const {
        return std::visit([](const auto& l) { return l.target == Target::binary; }, loss);
    }
    int expired() const {
        return std::visit([&](const auto& b) { return b.expired(expansion, steps); }, budget);
    }
    Step decide(const Example& example) const {
        return std::visit([&](const auto& r, const auto& l) { return r.step(l, example); }, rule, loss);
    }
    template <class T> double rate(const Block<T>& block, int t) const {
        if (block.rates != nullptr) return block.rates[t];
        return std::visit([&](const auto& r) { return r.rate_at(steps); }, rule);
    }

    template <class T, class Source> void remove(int slot, int from, const Block<T>& block, Source& source) {
        const int last = expansion.size() - 1;
        expansion.remove(slot);
        if (slot != last) std::copy_n(block.g + last * block.ld, block.ld, block.g + slot * block.ld);
        source.remove(slot, last);
        sum_one(slot, from, block);
        if (last % partial_sums != slot % partial_sums) sum_one(last, from, block);
    }

    template <class T> double* sums_of(int slot, const Block<T>& block) {
        return sums_.data() + (slot % partial_sums) * block.ld;
    }

    template <class T> double unscaled(const Block<T>& block, int t) {
        if (block.ld == 1) return tiles<T>().dot(block.g, expansion.raw.data(), expansion.size());
        return fold(sums_.data() + t, block.ld);
    }

    template <class T> void sum_one(int slot, int from, const Block<T>& block) {
        if (block.ld == 1 || from >= block.rows) return;
        tiles<T>().partial(block.g, block.ld, expansion.raw.data(), expansion.size(), slot % partial_sums, from,
                           block.rows, sums_of(slot, block), false);
    }

    template <class T> void sum_all(const Block<T>& block, int from) {
        if (block.ld == 1) return;
        sums_.resize(static_cast<std::size_t>(partial_sums) * block.ld);
        for (int q = 0; q < partial_sums; ++q) sum_one(q, from, block);
    }
};

}  // namespace gossamer
