// THE LOOP, over one block of rows whose kernel values are known or made on demand. The twin of loop.py.
//
// The kernel values stand in `g`, slots down, rows of the block across. Loss, rule and budget meet here; the loop asks what
// they need by their traits and never what they are.
//
// The file is long because a newcomer acts on the loop from inside: the two are one class in two parts.
#pragma once
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <utility>
#include <vector>

#include "engine/expansion.hpp"
#include "engine/partial_sums.hpp"
#include "parts/budgets.hpp"
#include "parts/losses.hpp"
#include "parts/rules.hpp"
#include "simd/tiles.hpp"

namespace gossamer {

template <class T> struct Block {
    T* g = nullptr;         // [slot * ld + row]
    std::ptrdiff_t ld = 0;  // rows rounded up; 1 for a single row, 0 where g has the one value asked for
    int rows = 0;
    const double* kappas = nullptr;
    const double* y = nullptr;          // [row * targets + target]; may be null: no targets
    int targets = 1;                    // of a row
    const double* weights = nullptr;    // may be null: all 1
    const double* rates = nullptr;      // may be null: the rule's own schedule
    const std::int64_t* ids = nullptr;  // may be null: every row is a new example
    double* scores = nullptr;           // [row * columns + output]; -inf for a class not yet seen
    int columns = 1;
    double* levels = nullptr;       // may be null
    double* variances = nullptr;    // s^2 of each row before it is learned; null unless asked, of rules that have it
    const double* fades = nullptr;  // may be null: what the time since the row before leaves of the model, 0 to 1

    // some rows of it, without their kernel values
    template <class U = T> Block<U> part(std::int64_t first, int count) const {
        const auto from = [first](auto* p) { return p == nullptr ? p : p + first; };
        Block<U> some;
        some.rows = count;
        some.y = y == nullptr ? y : y + first * targets;
        some.targets = targets;
        some.weights = from(weights);
        some.rates = from(rates);
        some.ids = from(ids);
        some.scores = scores + first * columns;
        some.columns = columns;
        some.levels = from(levels);
        some.variances = from(variances);
        some.fades = from(fades);
        return some;
    }
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
                trace_matters_ = r.trace_matters();
                moves_all_ = r.moves_all;
                expansion.keeps_norm = r.keeps_norm;
                rule_follows_ = r.follows;
                rule_ages_ = r.ages();
                using R = std::decay_t<decltype(r)>;
                static_assert(!(R::moves_all && R::needs_trace), "the trace does not follow a direction");
                expansion.rate = r.rate;
            },
            this->rule);
        if (with_trace_) expansion.trace.resize(1);
        if (moves_all_ && expansion.keeps_norm && !with_gram)
            throw std::invalid_argument(
                "The 'gram' parameter of the core must be true for a rule that moves all points.");
        std::visit(
            [&](const auto& b) {
                needs_kernel_ = b.needs_kernel;
                reaches_ = b.reaches;
                expires_ = b.expires;
                follows_ = b.follows;
            },
            this->budget);
        std::visit(
            [&](const auto& l) {
                target_ = l.target;
                expansion.labels = l.label_kernel();
                if constexpr (many<std::decay_t<decltype(l)>>) known_up_to(l.classes);
                if constexpr (several<std::decay_t<decltype(l)>>) signs_ = l.signs();
            },
            this->loss);
    }

    // A row that takes a step, as its budget sees it and acts on it.
    template <class T, class Source> class Newcomer {
    public:
        Expansion& expansion;
        const double kappa;  // k(x, x)

        Newcomer(Loop& loop, int t, double kappa, const Block<T>& block, Source& source)
            : expansion(loop.expansion), kappa(kappa), loop_(loop), t_(t), block_(block), source_(source) {}

        // its coefficients and scores, one per output; v is null where no rule asks for a trace
        double* move() { return loop_.move_.data(); }
        double* trace_move() { return loop_.trace_move_.data(); }
        const double* f() const { return loop_.f_.data(); }
        const double* v() const { return loop_.with_trace_ ? loop_.v_.data() : nullptr; }
        double size() const { return euclidean(loop_.move_); }
        std::int64_t updates() const { return loop_.updates; }  // with this one
        // its kernel values: row()[slot * stride()]
        const T* row() const { return block_.g + t_; }
        std::ptrdiff_t stride() const { return block_.ld; }
        double kernel(int slot) const { return static_cast<double>(row()[slot * stride()]); }

        // it gets the slot of a point, which is thrown away, or one more at the end; or is itself thrown away
        void place(int slot) {
            if (slot == gossamer::refuse) return refuse();
            if (loop_.moves_all_ && slot < expansion.size() && slot != handed_over_) loop_.drop(slot, move());
            loop_.place(slot, t_, kappa, block_, source_);
        }
        void refuse() {
            expansion.discarded += std::sqrt(expansion.square(move()) * kappa);
            if (loop_.moves_all_) loop_.take_back();
        }
        // what the rule is told: the step was taken along shares of the points; the function of a slot has gone to the
        // others by a factor of these shares
        void absorbed(const double* shares) { loop_.absorbed(shares); }
        void handed_over(int slot, const double* shares, double factor) {
            loop_.handed_over(slot, shares, factor);
            handed_over_ = slot;
        }
        // all coefficients and its own, by a factor
        void shrink(double factor) {
            loop_.with_trace_ ? expansion.shrink(factor, Trace{1, 0, expansion.rate}) : expansion.shrink(factor);
            for (Values* values : {&loop_.f_, &loop_.move_})
                for (double& x : *values) x *= factor;
        }
        // the coefficients of all points, as Expansion::change_all
        template <class Change, class ChangeTrace> void change_all(Change&& change, ChangeTrace&& change_trace) {
            expansion.change_all(change, change_trace);
            all_changed_ = true;
        }
        // a point leaves with what weight it has; the last one takes its slot
        void remove(int slot) { loop_.remove(slot, t_ + 1, block_, source_); }
        // the points of two slots become one in the first; the other is left without weight
        void blend(int slot, int other, const Blend& blend) {
            expansion.blend(slot, other, blend, blend_points(slot, other, blend));
            all_changed_ = true;
            predict();
        }
        // the same with a rule that learns a metric: two observations become one; the other slot is removed
        void merge(int slot, int other, const Blend& blend) {
            const Values column = blend_points(slot, other, blend);
            Values kernel = column;  // with the two as they were
            kernel[slot] = blend.u;
            kernel[other] = blend.w;
            Rows2 coefs = expansion.raw;
            std::visit([&](auto& r) { r.merged(slot, other, kernel, expansion.kappas[slot], coefs); }, loop_.rule);
            expansion.blend(slot, other, blend, column);
            change_all([&](Values& a, int c) { a = coefs[c]; }, [](Values&, int) {});
            remove(other);
        }
        // its scores once more, after the coefficients have changed
        void predict() { loop_.see(t_, block_); }
        // the same for the rule, after points have left
        void renew() { loop_.renew(kappa); }

        void finish() {
            if (all_changed_ || loop_.moves_all_) loop_.sums_.all(expansion, block_.g, t_ + 1);
        }

    private:
        Loop& loop_;
        const int t_;
        const Block<T>& block_;
        Source& source_;
        // the point of a slot moves; its kernel values with all points
        Values blend_points(int slot, int other, const Blend& blend) {
            Values column(expansion.size());
            if constexpr (Source::blends)
                source_.blend(t_, slot, other, blend.h, column.data());
            else
                loop_.blend(t_, slot, other, blend.h, column.data(), block_, source_);
            return column;
        }

        bool all_changed_ = false;
        int handed_over_ = gossamer::refuse;
    };

    // Source: place(row, slot) stores a newcomer and makes its column of g; remove(slot, last) moves the last point.
    // A direct source has no g: values(row, out) are the unscaled sums of every row of coefficients, kernel(row, slot) is
    // a single kernel value, and it is told what else changes coefficients: change(slot), rescale(fold, cleared), grow().
    // In one that spreads, slots are coordinates: it adds a step to all of them itself, spread(move, trace_move), forget();
    // prior() is k(x, x) of the current row, with its part outside of the space.
    template <class T, class Source> void run(const Block<T>& block, Source& source) {
        Expansion& e = expansion;
        sums_.begin(e, block.g, block.ld, block.rows);
        for (int t = 0; t < block.rows; ++t) {
            const std::int64_t before = updates;
            ++steps;
            e.begin_round();
            predict(block, t, source);
            const double* aims =
                block.y == nullptr ? nullptr : block.y + static_cast<std::ptrdiff_t>(t) * block.targets;
            const double y = aims == nullptr ? 0.0 : *aims, kappa = block.kappas[t];
            if (target_ < Target::label) {  // one score
                block.scores[t] = f_[0] + e.offset;
                if (target_ == Target::binary && y * block.scores[t] <= 0) ++mistakes;
            } else if (target_ == Target::several) {
                emit(block, t, aims);
            } else {
                emit(block, t, static_cast<int>(y));
                if (static_cast<int>(y) >= known) {
                    known_up_to(static_cast<int>(y) + 1);
                    if constexpr (Source::direct) source.grow();
                    sums_.all(e, block.g, t);
                    predict(block, t, source);
                }
            }
            if (block.levels != nullptr) block.levels[t] = level();
            double left = 0;  // the variance before time has passed
            const bool fades = block.fades != nullptr && block.fades[t] != 1;
            if (fades) left = pass_time(t, kappa, block, source);

            const int own = with_ids_ && block.ids != nullptr ? slot_of(block.ids[t]) : refuse;
            Example example{f_.data(),
                            with_trace_ ? v_.data() : nullptr,
                            e.outputs(),
                            e.offset,
                            y,
                            kappa,
                            rate(block, t),
                            block.weights == nullptr ? 1.0 : block.weights[t],
                            e.norm2,
                            own == refuse ? 0.0 : e.scale * e.raw[0][own],
                            updates,
                            e.inner,
                            e.rate,
                            along_,
                            aims};
            if (moves_all_) look_along(t, example, block, source);
            if (fades && block.variances != nullptr) block.variances[t] = left;
            Step step = decide(example);
            if constexpr (!Source::direct)
                if (reaches_ && own == refuse && kappa > 0 && moves()) {
                    example.kappa = reach(t, kappa, block, source);
                    if (example.kappa != kappa) step = decide(example);
                }
            e.offset = step.offset;
            set_level(step.level);
            const double largest_score = largest(f_) + std::abs(e.offset);
            if (step.keep == 0) {
                forget_all(t + 1, block, source);
            } else {
                with_trace_ ? e.shrink(step.keep, step.trace) : e.shrink(step.keep);
                const bool cleared = with_trace_ && step.trace.keep == 0;
                const Fold fold = e.fold_if_needed();
                if (fold || cleared) {
                    if constexpr (Source::direct) source.rescale(fold, cleared);
                    sums_.all(e, block.g, t + 1);
                }
            }
            for (int c = 0; c < e.outputs(); ++c) {
                if (with_trace_)
                    v_[c] = (step.trace.keep == 0 ? 0.0 : step.trace.keep * v_[c]) - step.trace.drift * f_[c];
                f_[c] *= step.keep;
            }
            // a step no larger than the rounding of its score is not counted
            // (SVMD's trace may move where an implicit step leaves f alone)
            if (kappa > 0 && (largest(move_) * kappa > epsilon * largest_score ||
                              (trace_matters_ && largest(trace_move_) * kappa > epsilon * largest(v_)))) {
                ++updates;
                if (rule_follows_) std::visit([&](auto& r) { r.took(example, move_.data()); }, rule);
                if (moves_all_) add_along();
                own == refuse ? admit(t, kappa, block, source) : revise(own, t, block, source);
            }
            if (rule_ages_ || (rule_follows_ && (updates != before || (moves_all_ && !along_.rests))))
                std::visit([](auto& r) { r.ended(); }, rule);
            for (int gone; expires_ && (gone = expired()) != refuse;) {
                if (moves_all_ && drop(gone, nullptr))
                    sums_.all(e, block.g, t + 1);
                else
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
            case Target::label:
            case Target::several: return false;
        }
        return false;
    }

    // the targets of a row
    int targets() const { return target_ == Target::several ? expansion.outputs() : 1; }

    bool moves_all() const { return moves_all_; }  // a step moves the coefficients of all points

    // for a learner without kernel values: trees, features
    void forbid_kernel(bool directions = false) const {
        if (needs_kernel_ || (moves_all_ && (expansion.keeps_norm || !directions)))
            throw std::invalid_argument("The parts of a learner without kernel values must not ask for them.");
    }

    Loss loss;
    Rule rule;
    Budget budget;
    double epsilon;
    Expansion expansion;
    std::int64_t known = 0;  // classes seen so far
    std::int64_t steps = 0, updates = 0, mistakes = 0;

private:
    PartialSums sums_;
    Values f_, v_, move_, trace_move_;  // of the current example
    Values row_, direction_;            // its kernel values, where they are needed in a row; of a rule that moves all
    Values shares_, change_;            // of points in another that leaves
    Along along_;
    Values values_;  // from a direct source
    // traits of the rule, then of the budget
    bool with_ids_ = false, with_trace_ = false, trace_matters_ = false, moves_all_ = false, rule_follows_ = false;
    bool rule_ages_ = false;
    bool needs_kernel_ = false, reaches_ = false, expires_ = false, follows_ = false;
    Target target_ = Target::real;
    bool signs_ = false;  // of several targets

    bool moves() const { return largest(move_) != 0 || (trace_matters_ && largest(trace_move_) > 0); }

    // the k(x, x) that the budget lets a row that moves the model be stepped with
    template <class T, class Source> double reach(int t, double kappa, const Block<T>& block, Source& source) {
        Newcomer<T, Source> newcomer(*this, t, kappa, block, source);
        return std::visit([&](auto& b) { return b.reach(newcomer); }, budget);
    }

    // a newcomer: the budget finds it a slot, or not
    template <class T, class Source> void admit(int t, double kappa, const Block<T>& block, Source& source) {
        if constexpr (Source::spreads) {
            source.spread(move_.data(), trace_move_.data());
            return absorbed(source.z);
        }
        Newcomer<T, Source> newcomer(*this, t, kappa, block, source);
        std::visit(
            [&](auto& b) {
                if constexpr (!Source::direct || !std::decay_t<decltype(b)>::needs_kernel) b.admit(newcomer);
            },
            budget);
        newcomer.finish();
    }

    template <class T> void read_row(int t, const Block<T>& block) {
        row_.resize(expansion.size());
        for (int i = 0; i < expansion.size(); ++i) row_[i] = static_cast<double>(block.g[i * block.ld + t]);
    }

    // f and v at row t once more, after the coefficients have changed
    template <class T> void see(int t, const Block<T>& block) {
        const Expansion& e = expansion;
        read_row(t, block);
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
            column[i] =
                value(i == slot ? 1.0 : expansion.between(slot, i), i == other ? 1.0 : expansion.between(other, i));
        T *to = block.g + slot * block.ld, *from = block.g + other * block.ld;
        for (int i = t; i < block.rows; ++i)
            to[i] = static_cast<T>(value(static_cast<double>(to[i]), static_cast<double>(from[i])));
        source.blend(slot, other, h);
    }

    template <class T, class Source> void place(int slot, int t, double kappa, const Block<T>& block, Source& source) {
        Expansion& e = expansion;
        const bool appended = slot == e.size();
        if constexpr (Source::direct) *block.g = appended ? 0.0 : source.kernel(t, slot);
        e.place(slot, move_.data(), trace_move_.data(), kappa, steps, block.ids == nullptr ? -steps : block.ids[t],
                f_.data(), with_trace_ ? v_.data() : nullptr, block.g + t, block.ld);
        source.place(t, slot);
        if (rule_follows_) std::visit([&](auto& r) { r.placed(slot); }, rule);
        appended ? sums_.extend(e, block.g, slot, t + 1) : sums_.slot(e, block.g, slot, t + 1);
    }

    // an example that came back: its own coefficient changes
    template <class T, class Source> void revise(int own, int t, const Block<T>& block, Source& source) {
        expansion.change(own, move_[0], f_[0]);
        if (expansion.raw[0][own] == 0) {
            remove(own, t + 1, block, source);
            return;
        }
        if constexpr (Source::direct) source.change(own);
        sums_.slot(expansion, block.g, own, t + 1);
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
            if (block.ld == 1) return tiles<T>().dot(block.g, coefs.data(), expansion.size());
            return sums_.at(row, t);
        };
        if constexpr (Source::direct) {
            values_.resize(e.raw.size() + e.trace.size());
            source.values(t, values_.data());
        }
        f_.resize(n);
        move_.resize(n);
        trace_move_.resize(n);
        for (int c = 0; c < n; ++c) f_[c] = e.scale * unscaled(e.raw[c], c);
        e.join(f_.data());
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

    // the scores of all targets, and whether one that is a sign was wrong
    template <class T> void emit(const Block<T>& block, int t, const double* aims) {
        double* out = block.scores + static_cast<std::ptrdiff_t>(t) * block.columns;
        std::copy_n(f_.data(), std::min<int>(block.columns, expansion.outputs()), out);
        bool wrong = false;
        for (int c = 0; signs_ && c < expansion.outputs(); ++c) wrong |= aims[c] * f_[c] <= 0;
        if (wrong) ++mistakes;
    }

    template <class T, class Source> void remove(int slot, int from, const Block<T>& block, Source& source) {
        if (follows_) std::visit([&](auto& b) { b.removed(slot); }, budget);
        if (rule_follows_) std::visit([&](auto& r) { r.removed(slot); }, rule);
        drop(slot, from, block, source);
    }
    template <class T, class Source> void drop(int slot, int from, const Block<T>& block, Source& source) {
        const int last = expansion.size() - 1;
        expansion.remove(slot);
        if (slot != last) std::copy_n(block.g + last * block.ld, block.ld, block.g + slot * block.ld);
        source.remove(slot, last);
        sums_.slot(expansion, block.g, slot, from);
        if (last % partial_sums != slot % partial_sums) sums_.slot(expansion, block.g, last, from);
    }

    // Time has passed before row t is learned: f and what is known of it fade by a factor, with 0 nothing is left. Returns
    // the variance that the row met before.
    template <class T, class Source>
    [[gnu::noinline]] double pass_time(int t, double kappa, const Block<T>& block, Source& source) {
        Expansion& e = expansion;
        const double fade = block.fades[t];
        double left = 0;
        if (moves_all_ && block.variances != nullptr) {
            along_.rests = true;
            left = look_back(t, kappa, block, source);
        }
        if (fade == 0) {
            forget_all(t, block, source);
        } else {
            const double keep = std::visit([&](auto& r) { return r.fade(fade); }, rule);
            with_trace_ ? e.shrink(keep, Trace{keep, 0, e.rate}) : e.shrink(keep);
            if (const Fold fold = e.fold_if_needed()) {
                if constexpr (Source::direct) source.rescale(fold, false);
                sums_.all(e, block.g, t);
            }
        }
        predict(block, t, source);
        return left;
    }

    // f = 0, for the rows of the block from this one on; a space of features stays
    template <class T, class Source> void forget_all(int from, const Block<T>& block, Source& source) {
        if constexpr (Source::spreads)
            source.forget();
        else
            while (expansion.size() > 0) drop(expansion.size() - 1, from, block, source);
        expansion.scale = expansion.trace_scale = 1;
        expansion.norm2 = expansion.mix = expansion.inner = 0;
        if (follows_) std::visit([](auto& b) { b.forgotten(); }, budget);
        if (rule_follows_) std::visit([](auto& r) { r.forgotten(); }, rule);
    }

    // the kernel values of row t, and room for a direction over the points, which is 0 unless the rule writes it
    template <class T, class Source>
    [[gnu::noinline]] void look_along(int t, const Example& example, const Block<T>& block, Source& source) {
        along_.rests = std::visit([&](const auto& r, const auto& l) { return r.rests(l, example); }, rule, loss);
        if (along_.rests && block.variances == nullptr) return;
        const double left = look_back(t, example.kappa, block, source);
        if (block.variances != nullptr) block.variances[t] = left;
    }
    // the same, and the variance that is left at the row, if it is asked for
    template <class T, class Source> double look_back(int t, double kappa, const Block<T>& block, Source& source) {
        if constexpr (Source::spreads)
            row_.assign(source.z, source.z + expansion.size());
        else if constexpr (!Source::direct)
            read_row(t, block);
        direction_.assign(row_.size(), 0.0);
        along_ = {row_.data(), direction_.data(), expansion.size(), along_.rests};
        if (block.variances == nullptr) return 0;
        if constexpr (Source::spreads) kappa = source.prior();
        return std::visit([&](const auto& r) { return r.variance(along_, kappa); }, rule);
    }

    // the part of a step that moves the points; the sums of the rows to come are left to the admission
    [[gnu::noinline]] void add_along() {
        Expansion& e = expansion;
        if (e.size() == 0) return;
        e.add_along(move_.data(), direction_);
        if (!e.keeps_norm) return;
        const double here = tiles<double>().dot(row_.data(), direction_.data(), e.size());
        Values moved = move_;
        e.join(moved.data());
        for (int c = 0; c < e.outputs(); ++c) f_[c] += moved[c] * here;
    }

    // the same back, where the newcomer is refused
    void take_back() {
        if (expansion.size() == 0) return;
        Values back = move_;
        for (double& x : back) x = -x;
        expansion.add_along(back.data(), direction_);
    }

    // A slot that the budget drops: the rule may hand its function over to the others, and to the newcomer, if there is one.
    bool drop(int slot, double* move) {
        Expansion& e = expansion;
        const double pivot = std::visit([&](auto& r) { return r.drop(slot, shares_); }, rule);
        if (pivot == 0) return false;
        e.discarded += e.scale * std::sqrt(std::max(0.0, e.weight2(slot)) / pivot);
        handed_over(slot, shares_.data(), 1);
        for (int c = 0; move != nullptr && c < e.outputs(); ++c) move[c] += e.scale * e.raw[c][slot] * shares_[slot];
        e.change_all(
            [&](Values& a, int) {
                tiles<double>().rank_two(a.data(), a[slot], shares_.data(), 0.0, shares_.data(), e.size());
                a[slot] = 0;
            },
            [](Values&, int) {});
        return true;
    }

    void renew(double kappa) {
        if (rule_follows_) std::visit([&](auto& r) { r.renewed(row_.data(), expansion.size(), kappa); }, rule);
    }

    void absorbed(const double* shares) {
        if (rule_follows_) std::visit([&](auto& r) { r.absorbed(shares, expansion.size()); }, rule);
    }

    void handed_over(int slot, const double* shares, double factor) {
        if (!rule_follows_) return;
        change_.assign(shares, shares + expansion.size());
        for (double& x : change_) x *= factor;
        change_[slot] -= 1;
        std::visit([&](auto& r) { r.handed_over(slot, change_.data()); }, rule);
    }
};

}  // namespace gossamer
