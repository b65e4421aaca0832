// THE LOOP, over one block of rows whose kernel values are known or made on demand. The twin of loop.py.
//
// The kernel values stand in `g`, slots down, rows of the block across. Scores are kept as sixteen partial sums per row
// and output; when a slot changes, only its own partial sums are made again, for the rows still to come.
#pragma once
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "parts/budgets.hpp"
#include "engine/expansion.hpp"
#include "parts/multiclass.hpp"
#include "parts/rules.hpp"
#include "simd/tiles.hpp"

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
    // In one that spreads, slots are coordinates: it adds a step to all of them itself, spread(move, trace_move), forget().
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
            Example example{f_.data(), with_trace_ ? v_.data() : nullptr, e.outputs(), e.offset, y, kappa,
                            rate(block, t), block.weights == nullptr ? 1.0 : block.weights[t], e.norm2,
                            own == refuse ? 0.0 : e.scale * e.raw[0][own], updates, e.inner, e.rate};
            Step step = decide(example);
            if constexpr (!Source::direct)
                if (own == refuse && inside(t, kappa, block)) {  // the step is taken there
                    example.kappa = e.inverse.inside;
                    step = decide(example);
                }
            e.offset = step.offset;
            set_level(step.level);
            const double largest_score = largest(f_) + std::abs(e.offset);
            if (step.keep == 0) {
                e.inverse.clear();
                if constexpr (Source::spreads)
                    source.forget();
                else
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
            for (int gone; (gone = expired()) != refuse;) {
                e.throw_away(gone);
                remove(gone, t + 1, block, source);
            }
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
    Values row_;                        // its kernel values, where they are needed in a row
    Values values_;                     // from a direct source
    std::ptrdiff_t ld_ = 0;
    int rows_ = 0;
    bool with_ids_ = false, with_trace_ = false, trace_matters_ = false;
    Target target_ = Target::real;

    // whether a row that moves the model lies in the span of the points, for a budget that projects
    template <class T> bool inside(int t, double kappa, const Block<T>& block) {
        const Project* project = std::get_if<Project>(&budget);
        if (project == nullptr || !expansion.inverse.active || kappa <= 0) return false;
        if (largest(move_) == 0 && !(trace_matters_ && largest(trace_move_) > 0)) return false;
        expansion.inverse.solve(block.g + t, block.ld, kappa);
        return expansion.inverse.residual <= project->tolerance * kappa;
    }

    // a newcomer: the budget finds it a slot, or not
    template <class T, class Source> void admit(int t, double kappa, const Block<T>& block, Source& source) {
        if constexpr (Source::spreads) return source.spread(move_.data(), trace_move_.data());
        std::visit(
            [&](const auto& b) {
                using B = std::decay_t<decltype(b)>;
                if constexpr (!reshapes<B>) {
                    const double size = euclidean(move_);
                    const int slot = b.choose(expansion, size, kappa);
                    if (slot == refuse)
                        expansion.discarded += std::sqrt(expansion.square(move_.data()) * kappa);
                    else
                        place(slot, t, kappa, block, source);
                } else if constexpr (!Source::direct) {
                    if constexpr (std::is_same_v<B, Project>) project(b, t, kappa, block, source);
                    if constexpr (std::is_same_v<B, Merge>) merge(b, t, kappa, block, source);
                    if constexpr (std::is_same_v<B, Forgetron>) forget(b, t, kappa, block, source);
                }
            },
            budget);
    }

    // a newcomer where everything shrinks before the oldest leaves
    template <class T, class Source>
    void forget(const Forgetron& budget, int t, double kappa, const Block<T>& block, Source& source) {
        Expansion& e = expansion;
        if (e.size() < budget.limit) return place(e.size(), t, kappa, block, source);
        const int slot = oldest_slot(e);
        const double a = e.scale * e.raw[0][slot], sign = a < 0 ? -1.0 : 1.0;
        const double value = e.at_slot(slot) + move_[0] * static_cast<double>(block.g[slot * block.ld + t]);
        const double left = 15.0 / 32.0 * static_cast<double>(updates) - e.spent;
        const double phi = Forgetron::factor(std::abs(a), e.kappas[slot], sign * value, left, &e.spent);
        e.shrink(phi);
        f_[0] *= phi;
        move_[0] *= phi;
        place(slot, t, kappa, block, source);
    }

    // a newcomer where the lightest point and the one that takes it best become one
    template <class T, class Source>
    void merge(const Merge& budget, int t, double kappa, const Block<T>& block, Source& source) {
        Expansion& e = expansion;
        const int m = e.size();
        if (m < budget.limit) return place(m, t, kappa, block, source);
        const int slot = Smallest{budget.limit, true}.choose(e, INFINITY, kappa);
        const double a2 = e.weight2(slot);
        int other = refuse;
        double least = INFINITY, h = 0, u = 0, w = 0;
        const auto lost = [&](int i, int halvings) {
            const double k = e.between(slot, i), b2 = e.weight2(i), ab = e.product(slot, i);
            return a2 + b2 + 2 * ab * k - Merge::blend(a2, b2, ab, std::log(k), halvings, &h, &u, &w);
        };
        for (int i = 0; i < m; ++i) {
            if (i == slot || e.product(slot, i) <= 0 || e.between(slot, i) < 1e-12) continue;
            const double loss = lost(i, 12);
            if (loss >= least) continue;
            least = loss;
            other = i;
        }
        if (other == refuse) return place(slot, t, kappa, block, source);
        const double lost2 = lost(other, 50);
        Values column(m);
        if constexpr (Source::blends)
            source.blend(t, slot, other, h, column.data());
        else
            blend(t, slot, other, h, column.data(), block, source);
        e.blend(slot, other, u, w, column, lost2);
        see(t, block);
        // the newcomer takes the other's slot, which weighs nothing now
        place(other, t, kappa, block, source);
        sum_all(block, t + 1);
    }

    // f and v at row t once more, after the coefficients have changed
    template <class T> void see(int t, const Block<T>& block) {
        const Expansion& e = expansion;
        row_.resize(e.size());
        for (int i = 0; i < e.size(); ++i) row_[i] = static_cast<double>(block.g[i * block.ld + t]);
        const auto sum = [&](const Values& coefs) { return tiles<double>().dot(row_.data(), coefs.data(), e.size()); };
        for (int c = 0; c < e.outputs(); ++c) f_[c] = e.scale * sum(e.raw[c]);
        e.join(f_.data());
        for (int c = 0; with_trace_ && c < e.outputs(); ++c) v_[c] = e.trace_scale * sum(e.trace[c]) + e.mix * f_[c];
    }

    // the kernel values of a point between two others, for a caller who keeps the points
    template <class T, class Source>
    void blend(int t, int slot, int other, double h, double* column, const Block<T>& block, Source& source) {
        const double far = std::pow(expansion.between(slot, other), -h * (1 - h));
        const auto value = [&](double a, double b) { return std::pow(a, h) * std::pow(b, 1 - h) * far; };
        for (int i = 0; i < expansion.size(); ++i)
            column[i] = value(i == slot ? 1.0 : expansion.between(slot, i), i == other ? 1.0 : expansion.between(other, i));
        T *to = block.g + slot * block.ld, *from = block.g + other * block.ld;
        for (int i = t; i < rows_; ++i)
            to[i] = static_cast<T>(value(static_cast<double>(to[i]), static_cast<double>(from[i])));
        source.blend(slot, other, h);
    }

    // a newcomer where what leaves is projected on what stays
    template <class T, class Source>
    void project(const Project& budget, int t, double kappa, const Block<T>& block, Source& source) {
        Expansion& e = expansion;
        Inverse& q = e.inverse;
        const auto kernel = [&](int i, int j) { return e.between(i, j); };
        const auto remake = [&] { q.make(e.size(), 0.0, kernel, [](int, const Values&, double) { return false; }); };
        if (!q.active && e.size() < budget.room(e)) {
            place(e.size(), t, kappa, block, source);
            if (budget.at_once) remake();
            return;
        }
        if (!q.active) {  // full for the first time
            first_inverse(budget.tolerance, t, block, source);
            q.solve(block.g + t, block.ld, kappa);
            see(t, block);
        }
        const bool known = q.residual <= std::max(budget.tolerance, Inverse::least_pivot) * kappa;
        int slot = e.size();
        if (!known && slot >= budget.room(e)) slot = budget.choose(e, e.square(move_.data()));
        if (known || slot == refuse) {
            e.absorb(move_.data(), trace_move_.data(), f_.data(), with_trace_ ? v_.data() : nullptr);
            if (!known) budget.grow(e, std::sqrt(q.residual * e.square(move_.data())));
            return sum_all(block, t + 1);
        }
        if (slot == e.size()) {
            q.append();
            place(slot, t, kappa, block, source);
        } else {
            const double outside = e.scale * e.scale * e.weight2(slot) / q.with_newcomer(slot);
            double cross = 0, product = e.inner;
            for (int c = 0; c < e.outputs(); ++c) {
                cross += 2 * move_[c] * f_[c];
                if (!with_trace_) continue;
                product += trace_move_[c] * f_[c] + move_[c] * v_[c] + move_[c] * trace_move_[c] * kappa -
                           e.scale * e.raw[c][slot] * e.trace_coef(c, slot) / q.with_newcomer(slot);
            }
            const double norm2 = e.norm2 + cross + kappa * e.square(move_.data()) - outside;
            e.spread(slot, q.replace(slot), move_.data(), trace_move_.data());
            place(slot, t, kappa, block, source);
            e.norm2 = std::max(0.0, norm2);
            e.inner = product;
            e.discarded += std::sqrt(std::max(0.0, outside));
            budget.grow(e, std::sqrt(std::max(0.0, outside)));
            sum_all(block, t + 1);
        }
        if (q.worn(slot, kernel)) remake();
    }

    // the inverse of the points' kernel values; those that the others know already leave
    template <class T, class Source> void first_inverse(double tolerance, int t, const Block<T>& block, Source& source) {
        Expansion& e = expansion;
        std::vector<int> gone;
        do {
            gone.clear();
            e.inverse.make(
                e.size(), std::max(tolerance, Inverse::least_pivot), [&](int i, int j) { return e.between(i, j); },
                [&](int slot, const Values& weights, double outside) {
                    e.hand_over(slot, weights, outside);
                    gone.push_back(slot);
                    return true;
                });
            if (!gone.empty()) e.inverse.clear();
            for (auto slot = gone.rbegin(); slot != gone.rend(); ++slot) remove(*slot, t + 1, block, source);
        } while (!gone.empty());
        sum_all(block, t + 1);
    }

    template <class T, class Source> void place(int slot, int t, double kappa, const Block<T>& block, Source& source) {
        Expansion& e = expansion;
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
