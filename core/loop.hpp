// THE LOOP, over one block of rows whose kernel values are known or made on demand. The twin of expansion.py's Loop.
//
// The kernel values stand in `g`, slots down, rows of the block across. Scores are kept as sixteen partial sums per row
// and output; when a slot changes, only its own partial sums are made again, for the rows still to come.
#pragma once
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "budgets.hpp"
#include "expansion.hpp"
#include "multiclass.hpp"
#include "rules.hpp"
#include "tiles.hpp"

namespace gossamer {

template <class T> struct Block {
    T* g = nullptr;         // [slot * ld + row]
    std::ptrdiff_t ld = 0;  // rows rounded up; 1 for a single row, 0 where g has the one value asked for
    int rows = 0;
    const double* kappas = nullptr;
    const double* y = nullptr;           // may be null: no targets
    const double* weights = nullptr;     // may be null: all 1
    const double* rates = nullptr;       // may be null: the rule's own schedule
    const std::int64_t* ids = nullptr;   // may be null: every row is a new example
    double* scores = nullptr;            // [row * columns + output]; -inf for a class not yet seen
    int columns = 1;
    double* levels = nullptr;            // may be null
};

class Loop {
public:
    Loop(Loss loss, Rule rule, Budget budget, Average average, bool with_gram, double epsilon)
        : loss(std::move(loss)), rule(std::move(rule)), budget(std::move(budget)), epsilon(epsilon) {
        expansion.average = average;
        expansion.with_gram = with_gram;
        std::visit(
            [&](const auto& r) {
                with_ids_ = expansion.with_ids = r.needs_ids;
                with_trace_ = r.needs_trace;
                if constexpr (std::is_same_v<std::decay_t<decltype(r)>, SVMD>) trace_matters_ = r.meta > 0;
                expansion.rate = r.rate;
            },
            this->rule);
        if (with_trace_) expansion.trace.resize(1);
        target_ = std::visit([](const auto& l) { return l.target; }, this->loss);
        std::visit(
            [&](const auto& l) {
                using L = std::decay_t<decltype(l)>;
                if constexpr (std::is_same_v<L, Structured>) expansion.labels = l.labels;
                if constexpr (many<L>) known_up_to(l.classes);
            },
            this->loss);
    }

    // Source: place(row, slot) stores a newcomer and makes its column of g; remove(slot, last) moves the last point.
    // A direct source has no g: values(row, out) are the unscaled sums of every row of coefficients, kernel(row, slot) is
    // a single kernel value, and it is told what else changes coefficients: change(slot), rescale(fold, cleared), grow().
    template <class T, class Source> void run(const Block<T>& block, Source& source) {
        Expansion& e = expansion;
        ld_ = block.ld;
        rows_ = block.rows;
        sum_all(block, 0);
        for (int t = 0; t < block.rows; ++t) {
            ++steps;
            e.begin_round();
            predict(block, t, source);
            const double y = block.y == nullptr ? 0.0 : block.y[t], kappa = block.kappas[t];
            if (target_ == Target::label) {
                emit(block, t, static_cast<int>(y));
                if (static_cast<int>(y) >= known) {
                    known_up_to(static_cast<int>(y) + 1);
                    if constexpr (Source::direct) source.grow();
                    sum_all(block, t);
                    predict(block, t, source);
                }
            } else {
                block.scores[t] = f_[0] + e.offset;
                if (target_ == Target::binary && y * block.scores[t] <= 0) ++mistakes;
            }
            if (block.levels != nullptr) block.levels[t] = level();

            const int own = with_ids_ && block.ids != nullptr ? slot_of(block.ids[t]) : refuse;
            const Step step = decide({f_.data(), with_trace_ ? v_.data() : nullptr, e.outputs(), e.offset, y, kappa,
                                      rate(block, t), block.weights == nullptr ? 1.0 : block.weights[t], e.norm2,
                                      own == refuse ? 0.0 : e.scale * e.raw[0][own], updates, e.inner, e.rate});
            e.offset = step.offset;
            set_level(step.level);
            const double largest_score = largest(f_) + std::abs(e.offset);
            if (step.keep == 0) {
                while (e.size() > 0) remove(e.size() - 1, t + 1, block, source);
                e.scale = 1;
                e.norm2 = 0;
            } else {
                with_trace_ ? e.shrink(step.keep, step.trace) : e.shrink(step.keep);
                const bool cleared = with_trace_ && step.trace.keep == 0;
                const Fold fold = e.fold_if_needed();
                if (fold || cleared) {
                    if constexpr (Source::direct) source.rescale(fold, cleared);
                    sum_all(block, t + 1);
                }
            }
            for (int c = 0; c < e.outputs(); ++c) {
                if (with_trace_) v_[c] = (step.trace.keep == 0 ? 0.0 : step.trace.keep * v_[c]) - step.trace.drift * f_[c];
                f_[c] *= step.keep;
            }
            // a step no larger than the rounding of the score it was made from is none
            // (SVMD's trace may move where an implicit step leaves f alone)
            if (kappa > 0 && (largest(move_) * kappa > epsilon * largest_score ||
                              (trace_matters_ && largest(trace_move_) * kappa > epsilon * largest(v_)))) {
                ++updates;
                own == refuse ? admit(t, kappa, block, source) : revise(own, t, block, source);
            }
            for (int gone; (gone = expired()) != refuse;) remove(gone, t + 1, block, source);
            e.refresh();
        }
    }

    double level() const {
        return std::visit([](const auto& l) { return l.level; }, loss);
    }
    bool adapts() const {
        return std::visit([](const auto& l) { return !std::isnan(l.nu); }, loss);
    }
    void set_level(double level) {
        std::visit([&](auto& l) { l.level = level; }, loss);
    }

    // whether y may be learned as it is, on the path for single rows of one output
    bool accepts(double y) const {
        switch (target_) {
            case Target::none: return true;
            case Target::binary: return std::abs(y) == 1;
            case Target::real: return std::isfinite(y);
            case Target::label: return false;
        }
        return false;
    }

    Loss loss;
    Rule rule;
    Budget budget;
    double epsilon;
    Expansion expansion;
    std::int64_t known = 0;  // classes seen so far
    std::int64_t steps = 0, updates = 0, mistakes = 0;

private:
    Values sums_;                       // [(coefficient row * 16 + partial sum) * ld + row of the block]
    Values f_, v_, move_, trace_move_;  // of the example at hand
    Values values_;                     // from a direct source
    std::ptrdiff_t ld_ = 0;
    int rows_ = 0;
    bool with_ids_ = false, with_trace_ = false, trace_matters_ = false;
    Target target_ = Target::real;

    // a newcomer: the budget finds it a slot, or not
    template <class T, class Source> void admit(int t, double kappa, const Block<T>& block, Source& source) {
        Expansion& e = expansion;
        const int slot = std::visit([&](const auto& b) { return b.choose(e, euclidean(move_), kappa); }, budget);
        if (slot == refuse) return;
        const bool appended = slot == e.size();
        if constexpr (Source::direct) *block.g = appended ? 0.0 : source.kernel(t, slot);
        e.place(slot, move_.data(), trace_move_.data(), kappa, steps, block.ids == nullptr ? -steps : block.ids[t],
                f_.data(), with_trace_ ? v_.data() : nullptr, block.g + t, block.ld);
        source.place(t, slot);
        appended ? extend_slot(slot, t + 1, block) : sum_slot(slot, t + 1, block);
    }

    // an example that came back: its own coefficient changes
    template <class T, class Source> void revise(int own, int t, const Block<T>& block, Source& source) {
        expansion.change(own, move_[0], f_[0]);
        if (expansion.raw[0][own] == 0) {
            remove(own, t + 1, block, source);
            return;
        }
        if constexpr (Source::direct) source.change(own);
        sum_slot(own, t + 1, block);
    }

    // a slot that has no part in the next round
    int expired() const {
        return std::visit([&](const auto& b) { return b.expired(expansion, steps + 1); }, budget);
    }
    Step decide(const Example& example) {
        return std::visit(
            [&](const auto& r, const auto& l) { return r.step(l, example, move_.data(), trace_move_.data()); }, rule,
            loss);
    }
    template <class T> double rate(const Block<T>& block, int t) const {
        if (block.rates != nullptr) return block.rates[t];
        return std::visit([&](const auto& r) { return r.rate_at(steps); }, rule);
    }

    static double largest(const Values& values) {
        double most = 0;
        for (double x : values) most = std::max(most, std::abs(x));
        return most;
    }
    static double euclidean(const Values& values) {
        if (values.size() == 1) return std::abs(values[0]);
        double sum = 0;
        for (double x : values) sum += x * x;
        return std::sqrt(sum);
    }

    int slot_of(std::int64_t id) const {
        const auto found = expansion.slot_of.find(id);
        return found == expansion.slot_of.end() ? refuse : found->second;
    }

    void known_up_to(std::int64_t classes) {
        known = classes;
        expansion.grow(static_cast<int>(std::max<std::int64_t>(classes, 1)));
    }

    // f and v at row t of the block
    template <class T, class Source> void predict(const Block<T>& block, int t, Source& source) {
        const Expansion& e = expansion;
        const int n = e.outputs();
        const auto unscaled = [&](const Values& coefs, int row) {
            if constexpr (Source::direct) return values_[row];
            if (ld_ == 1) return tiles<T>().dot(block.g, coefs.data(), expansion.size());
            return fold(sums_at(row, 0) + t, ld_);
        };
        if constexpr (Source::direct) {
            values_.resize(e.raw.size() + e.trace.size());
            source.values(t, values_.data());
        }
        f_.resize(n);
        move_.resize(n);
        trace_move_.resize(n);
        for (int c = 0; c < n; ++c) f_[c] = e.scale * unscaled(e.raw[c], c);
        if (!e.labels.empty()) {
            v_ = f_;
            for (int a = 0; a < n; ++a) {
                f_[a] = 0;
                for (int b = 0; b < n; ++b) f_[a] += e.labels[a * n + b] * v_[b];
            }
        }
        if (e.trace.empty()) return;
        v_.resize(n);
        for (int c = 0; c < n; ++c) v_[c] = e.trace_scale * unscaled(e.trace[c], n + c) + e.mix * f_[c];
    }

    // the scores of the classes seen so far, and whether the right one led
    template <class T> void emit(const Block<T>& block, int t, int label) {
        double* out = block.scores + static_cast<std::ptrdiff_t>(t) * block.columns;
        bool led = label < known;
        for (int c = 0; c < block.columns; ++c) {
            out[c] = c < known ? f_[c] : -std::numeric_limits<double>::infinity();
            if (led && c < known && c != label && f_[c] >= f_[label]) led = false;
        }
        if (!led) ++mistakes;
    }

    template <class T, class Source> void remove(int slot, int from, const Block<T>& block, Source& source) {
        const int last = expansion.size() - 1;
        expansion.remove(slot);
        if (slot != last) std::copy_n(block.g + last * block.ld, block.ld, block.g + slot * block.ld);
        source.remove(slot, last);
        sum_slot(slot, from, block);
        if (last % partial_sums != slot % partial_sums) sum_slot(last, from, block);
    }

    double* sums_at(int row, int q) { return sums_.data() + (static_cast<std::ptrdiff_t>(row) * partial_sums + q) * ld_; }

    template <class F> void each_row(F&& f) {
        int row = 0;
        for (const Values& coefs : expansion.raw) f(coefs, row++);
        for (const Values& coefs : expansion.trace) f(coefs, row++);
    }

    // the partial sums that a slot is in, made again for the rows from `from` on
    template <class T> void sum_slot(int slot, int from, const Block<T>& block) {
        if (ld_ <= 1 || from >= rows_) return;
        const int q = slot % partial_sums;
        each_row([&](const Values& coefs, int row) {
            tiles<T>().partial(block.g, ld_, coefs.data(), expansion.size(), q, from, rows_, sums_at(row, q), false);
        });
    }

    // one more term at the end of the partial sums of the last slot: the same bits, in less time
    template <class T> void extend_slot(int slot, int from, const Block<T>& block) {
        if (ld_ <= 1 || from >= rows_) return;
        const int q = slot % partial_sums;
        each_row([&](const Values& coefs, int row) {
            tiles<T>().partial(block.g + slot * ld_, ld_, coefs.data() + slot, 1, 0, from, rows_, sums_at(row, q), true);
        });
    }

    template <class T> void sum_all(const Block<T>& block, int from) {
        if (ld_ <= 1) return;
        sums_.resize((expansion.raw.size() + expansion.trace.size()) * partial_sums * ld_);
        for (int q = 0; q < partial_sums; ++q) sum_slot(q, from, block);
    }
};

}  // namespace gossamer
