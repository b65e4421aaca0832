// The twin of Expansion (_engine/expansion.py): lazily scaled coefficients in slots, one row per output, their norm, their mean
// over time and, for SVMD, the trace v = w + mix * f that shares the slots.
//
// The file is long because coefficients, norm, mean and trace change together in every method: it is one invariant.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "engine/ranking.hpp"
#include "engine/stride.hpp"
#include "parts/part.hpp"
#include "simd/tiles.hpp"

namespace gossamer {

using Rows2 = std::vector<Values>;  // [output][slot]

enum class Average { none, sparse, all };

// How SVMD's trace moves in a step: v <- keep v - drift f + coefficient k(x, .), and the step size it asks for.
struct Trace {
    double keep = 0, drift = 0;
    double rate = 0;
};

// f and v at the point of a slot, for an expansion whose points are in trees: values[row], unscaled, raw rows before trace.
struct Evaluator {
    virtual ~Evaluator() = default;
    virtual void at(int slot, double* values) const = 0;
};

// The factors by which raw and trace coefficients were multiplied.
struct Fold {
    double main = 1, trace = 1;
    explicit operator bool() const { return main != 1 || trace != 1; }
};

// How two points become one: z = h x_1 + (1 - h) x_2, to which the coefficients go by the factors u and w; the squared norm
// of what is lost.
struct Blend {
    double h = 0, u = 0, w = 0, lost2 = 0;
};

struct Expansion {
    static constexpr double fold_at = 1e6;
    static constexpr std::int64_t refresh_every = 10000;
    static constexpr double per_digit = 1000;  // updates that each digit (to base e) counts that cancels

    Rows2 raw{Values{}};
    Rows2 trace;           // w, empty if the rule has no trace
    Values sizes;          // Euclidean norm over the outputs of each slot's raw coefficients
    Values kappas, roots;  // k(x, x) and its square root
    std::vector<std::int64_t> births, ids;
    Values labels;  // label kernel, outputs x outputs; empty: the identity
    double scale = 1, trace_scale = 1, offset = 0, norm2 = 0;
    double mix = 0, inner = 0, rate = 0;  // of the trace: v = w + mix f, <f, v>, SVMD's step size
    double discarded = 0;                 // the sum of the norms of discarded terms

    Average average = Average::none;
    double rounds_scale = 0, offset_sum = 0;
    Rows2 summed{Values{}}, dropped{Values{}};
    Values entered;

    bool with_gram = false;
    bool keeps_norm = true;
    const Evaluator* evaluator = nullptr;  // instead of the kernel values of the slots
    std::int64_t refresh_in = refresh_every;
    Values gram;  // [i * stride + j]: kernel value of slots i and j, if i is the younger one
    std::ptrdiff_t stride = 0;
    bool with_ids = false;
    std::unordered_map<std::int64_t, int> slot_of;
    mutable Ranking ranking;  // for budgets that search the first of many slots

    bool tracks() const { return (with_gram && keeps_norm) || evaluator != nullptr; }  // the norm through removals
    int size() const { return static_cast<int>(births.size()); }
    int outputs() const { return static_cast<int>(raw.size()); }

    // a class that was not known before: a row of zeros
    void grow(int outputs) {
        const auto add = [&](Rows2& rows, std::size_t length) {
            while (static_cast<int>(rows.size()) < outputs) rows.emplace_back(length, 0.0);
        };
        const std::size_t left = dropped[0].size();
        add(raw, size());
        add(summed, size());
        add(dropped, left);
        if (!trace.empty()) add(trace, size());
    }

    void begin_round() {
        if (average == Average::none) return;
        rounds_scale += scale;
        offset_sum += offset;
    }

    void shrink(double keep) {
        scale *= keep;
        norm2 *= keep * keep;
    }

    // f <- keep f, v <- t.keep v - t.drift f (ALGORITHMS 4)
    void shrink(double keep, const Trace& t) {
        inner = keep * ((t.keep == 0 ? 0.0 : t.keep * inner) - t.drift * norm2);
        mix = ((t.keep == 0 ? 0.0 : t.keep * mix) - t.drift) / keep;
        trace_scale *= t.keep;
        if (t.keep == 0) {  // also how a trace that has overflowed starts again
            for (Values& row : trace) std::fill(row.begin(), row.end(), 0.0);
            trace_scale = 1;
        }
        rate = t.rate;
        shrink(keep);
    }

    static bool outside(double s) { return !(s > 1 / fold_at && s < fold_at); }

    Fold fold_if_needed() {
        Fold fold;
        if (outside(scale)) {
            fold.main = scale;
            for (int c = 0; c < outputs(); ++c)
                for (int i = 0; i < size(); ++i) {
                    summed[c][i] += raw[c][i] * (rounds_scale - entered[i]);
                    raw[c][i] *= scale;
                }
            std::fill(entered.begin(), entered.end(), 0.0);
            for (int i = 0; i < size(); ++i) measure(i);
            ranking.touch_all();
            rounds_scale = 0;
            scale = 1;
        }
        if (!trace.empty() && outside(trace_scale)) {
            fold.trace = trace_scale;
            for (Values& row : trace)
                for (double& w : row) w *= trace_scale;
            trace_scale = 1;
        }
        return fold;
    }

    // f <- f + sum_c move[c] k((x, c), .). f and v: the values at x now, changed if a term leaves for it; row[i * ld]:
    // the kernel values of x against the slots; trace_move: the coefficients of v
    template <class T>
    void place(int slot, const double* move, const double* trace_move, double kappa, std::int64_t birth,
               std::int64_t id, double* f, double* v, const T* row, std::ptrdiff_t ld) {
        const int m = size(), n = outputs();
        if (slot < m) {
            const double k = static_cast<double>(row[slot * ld]);
            for (int c = 0; c < n; ++c) {
                f[c] -= joint(slot, c) * k;
                if (v != nullptr) v[c] -= trace_coef(c, slot) * k;
            }
            throw_away(slot);
            leave(slot);
        } else {
            for (Rows2* rows : {&raw, &summed, &trace})
                for (Values& values : *rows) values.push_back(0.0);
            for (Values* values : {&sizes, &kappas, &roots, &entered}) values->push_back(0.0);
            births.push_back(0);
            ids.push_back(0);
        }
        double cross = 0;
        for (int c = 0; c < n; ++c) {
            raw[c][slot] = move[c] / scale;
            summed[c][slot] = 0;
            cross += 2 * move[c] * f[c];
            if (v != nullptr) {
                trace[c][slot] = (trace_move[c] - mix * move[c]) / trace_scale;
                inner += trace_move[c] * f[c] + move[c] * v[c] + move[c] * trace_move[c] * kappa;
            }
        }
        add_to_norm(cross, kappa * square(move));
        kappas[slot] = kappa;
        roots[slot] = std::sqrt(kappa);
        births[slot] = birth;
        entered[slot] = rounds_scale;
        measure(slot);
        name(slot, id);
        if (!with_gram) return;
        reserve_gram(size());
        double* to = gram.data() + slot * stride;
        for (int i = 0; i < m; ++i) to[i] = static_cast<double>(row[i * ld]);
        to[slot] = kappa;
    }

    // the coefficient of a slot grows by delta (one output); value: f at its point
    void change(int slot, double delta, double value) {
        summed[0][slot] += raw[0][slot] * (rounds_scale - entered[slot]);
        entered[slot] = rounds_scale;
        raw[0][slot] += delta / scale;
        add_to_norm(2 * delta * value, delta * delta * kappas[slot]);
        measure(slot);
    }

    // The coefficients of all points change: change(raw[c], c) and change_trace(trace[c], c) for each output, both unscaled.
    // The norm is the caller's to keep.
    template <class Change, class ChangeTrace> void change_all(Change&& change, ChangeTrace&& change_trace) {
        settle_sums();
        for (int c = 0; c < outputs(); ++c) {
            change(raw[c], c);
            if (!trace.empty()) change_trace(trace[c], c);
        }
        for (int i = 0; i < size(); ++i) measure(i);
    }

    // f <- f + sum_c move[c] sum_i direction[i] k((x_i, c), .); with the kernel values of the slots, without a trace
    void add_along(const double* move, const Values& direction) {
        const int m = size();
        const auto turn = [&](Values& a, int c) {
            tiles<double>().rank_two(a.data(), move[c] / scale, direction.data(), 0.0, direction.data(), m);
        };
        if (!keeps_norm) return change_all(turn, [](Values&, int) {});
        scores_.resize(m);  // K direction
        for (int i = 0; i < m; ++i) {
            gather(i);
            scores_[i] = tiles<double>().dot(leaving_.data(), direction.data(), m);
        }
        double cross = 0;
        for (int c = 0; c < outputs(); ++c)
            for (int i = 0; i < m; ++i) cross += 2 * move[c] * joint(i, c) * scores_[i];
        const double squared = tiles<double>().dot(direction.data(), scores_.data(), m);
        change_all(turn, [](Values&, int) {});
        add_to_norm(cross, std::max(0.0, squared) * square(move));
    }

    // a' K_Y a of a slot's coefficients, unscaled; and of two slots'
    double weight2(int slot) const { return labels.empty() ? sizes[slot] * sizes[slot] : product(slot, slot); }
    double product(int i, int j) const {
        double sum = 0;
        for (int c = 0; c < outputs(); ++c) sum += raw[c][i] * joint(j, c);
        return sum / scale;
    }

    // Two terms become one, in the slot of the first; the other is left without weight. kernel[i]: of the new point and
    // the points.
    void blend(int slot, int other, const Blend& blend, const Values& kernel) {
        const auto [h, u, w, lost2] = blend;
        settle_sums();
        if (keeps_norm) norm2 = blended_norm2(slot, other, u, w, kernel);
        if (average == Average::all)
            for (int c = 0; c < outputs(); ++c) dropped[c].push_back(summed[c][slot]);
        for (Rows2* rows : {&raw, &trace})
            for (Values& values : *rows) {
                values[slot] = u * values[slot] + w * values[other];
                values[other] = 0;
            }
        for (Values& values : summed) values[slot] = 0;
        const int younger = births[slot] >= births[other] ? slot : other;
        births[slot] = births[younger];
        ids[slot] = ids[younger];
        for (int i = 0; i < size(); ++i) gram[slot * stride + i] = gram[i * stride + slot] = kernel[i];
        gram[slot * stride + slot] = kappas[slot];
        measure(slot);
        measure(other);
        discarded += scale * std::sqrt(std::max(0.0, lost2));
        if (!trace.empty() || !labels.empty()) refresh_in = 0;
    }

    // f at the point of a slot (one output)
    double at_slot(int slot) {
        gather(slot);
        return scale * tiles<double>().dot(leaving_.data(), raw[0].data(), size());
    }

    // add a dropped term to the discarded norms
    void throw_away(int slot) { discarded += scale * std::sqrt(std::max(0.0, weight2(slot)) * kappas[slot]); }

    // drop a term; the last one moves to its slot
    void remove(int slot) {
        leave(slot);
        const int last = size() - 1;
        ranking.touch(slot);
        ranking.touch(last);
        for (Rows2* rows : {&raw, &summed, &trace})
            for (Values& values : *rows) {
                values[slot] = values[last];
                values.pop_back();
            }
        for (Values* values : {&sizes, &kappas, &roots, &entered}) {
            (*values)[slot] = (*values)[last];
            values->pop_back();
        }
        births[slot] = births[last];
        births.pop_back();
        const std::int64_t moved = ids[last];
        ids.pop_back();
        if (slot != last) {
            ids[slot] = moved;
            if (with_ids) slot_of[moved] = slot;
        }
        if (!with_gram) return;
        for (int i = 0; i <= last; ++i) gram[slot * stride + i] = gram[last * stride + i];
        for (int i = 0; i <= last; ++i) gram[i * stride + slot] = gram[i * stride + last];
        gram[slot * stride + slot] = gram[last * stride + last];
    }

    // recompute the norm, and SVMD's product, from the kernel values when too many digits have cancelled
    void refresh() {
        if (!tracks() || refresh_in > 0) return;
        double total = 0, product = 0;
        for (int j = 0; j < size(); ++j) {
            if (evaluator != nullptr) {
                values_.resize(raw.size() + trace.size());
                evaluator->at(j, values_.data());
            }
            for (int c = 0; c < outputs(); ++c) {
                double at = 0;  // at the point of slot j, before the label kernel
                if (evaluator != nullptr)
                    at = scale * values_[c];
                else
                    for (int i = 0; i < size(); ++i) at += scale * raw[c][i] * between(i, j);
                total += at * joint(j, c);
                if (!trace.empty()) product += at * trace_coef(c, j);
            }
        }
        norm2 = std::max(0.0, total);
        if (!trace.empty()) inner = product;
        refresh_in = evaluator == nullptr ? refresh_every : std::max<std::int64_t>(refresh_every, 16 * size());
    }

    // update ||f||^2 after a step, and count the digits that have cancelled in it
    void add_to_norm(double cross, double square) {
        if (!keeps_norm) return;
        const double gross = norm2 + std::abs(cross) + square;
        norm2 = std::max(0.0, norm2 + cross + square);
        if (!tracks() || gross == 0) return;
        const double lost = norm2 > 0 ? per_digit * std::log(gross / norm2) : INFINITY;
        refresh_in -= 1 + (lost < refresh_every ? static_cast<std::int64_t>(lost) : refresh_every);  // NaN too
    }

    // ||f||^2, kept or computed
    double squared_norm() const {
        if (keeps_norm || !with_gram) return norm2;
        double total = 0;
        for (int c = 0; c < outputs(); ++c)
            for (int i = 0; i < size(); ++i)
                for (int j = 0; j < size(); ++j) total += scale * raw[c][i] * between(i, j) * joint(j, c);
        return std::max(0.0, total);
    }

    // k(points, points) as it is kept, row-major
    Values get_gram() const {
        Values values;
        for (int i = 0; i < size(); ++i)
            for (int j = 0; j < size(); ++j) values.push_back(between(i, j));
        return values;
    }

    void set_gram(const Values& values) {
        make_gram([&](double* to, std::ptrdiff_t apart) {
            for (int i = 0; i < size(); ++i) std::copy_n(values.begin() + i * size(), size(), to + i * apart);
        });
    }

    // fill(to, stride): k(points, points), row-major with this stride
    template <class Fill> void make_gram(Fill&& fill) {
        reserve_gram(size());
        fill(gram.data(), stride);
        for (int i = 0; i < size(); ++i) gram[i * stride + i] = kappas[i];  // as placed: it may round in another way
    }

    // recompute what is derived from the saved numbers
    void restored() {
        sizes.assign(size(), 0.0);
        ranking.touch_all();
        roots.clear();
        slot_of.clear();
        for (int i = 0; i < size(); ++i) {
            roots.push_back(std::sqrt(kappas[i]));
            measure(i);
            if (with_ids) slot_of[ids[i]] = i;
        }
    }

    // the sums over all rounds so far of an output's coefficients; with those of the dropped terms behind them
    Values total(int output, bool with_dropped = false) const {
        Values sums(size());
        for (int i = 0; i < size(); ++i) sums[i] = summed[output][i] + raw[output][i] * (rounds_scale - entered[i]);
        if (with_dropped) sums.insert(sums.end(), dropped[output].begin(), dropped[output].end());
        return sums;
    }

    // before coefficients change: add their sum so far to the mean
    void settle_sums() {
        if (average == Average::none) return;
        for (int c = 0; c < outputs(); ++c)
            for (int i = 0; i < size(); ++i) summed[c][i] += raw[c][i] * (rounds_scale - entered[i]);
        std::fill(entered.begin(), entered.end(), rounds_scale);
    }

    // f(x, .) = K_Y g(x, .), in place
    void join(double* f) const {
        if (labels.empty()) return;
        const int n = outputs();
        const Values g(f, f + n);
        for (int a = 0; a < n; ++a) {
            f[a] = 0;
            for (int b = 0; b < n; ++b) f[a] += labels[a * n + b] * g[b];
        }
    }

    double trace_coef(int output, int slot) const {
        return trace_scale * trace[output][slot] + mix * scale * raw[output][slot];
    }

    // the kernel value of two slots, where they are kept
    double between(int i, int j) const { return births[i] >= births[j] ? gram[i * stride + j] : gram[j * stride + i]; }

    // ||sum_c move[c] k((x, c), .)||^2 / k(x, x): move' K_Y move
    double square(const double* move) const {
        double sum = 0;
        for (int a = 0; a < outputs(); ++a) {
            if (labels.empty()) {
                sum += move[a] * move[a];
                continue;
            }
            for (int b = 0; b < outputs(); ++b) sum += move[a] * label(a, b) * move[b];
        }
        return sum;
    }

private:
    Values leaving_, scores_, values_;

    // ||f||^2 once two terms, g, have become one: ||f - g||^2 + 2 <f - g, new> + ||new||^2
    double blended_norm2(int slot, int other, double u, double w, const Values& kernel) {
        double total = norm2 / (scale * scale);
        const double k = between(slot, other);
        for (const Values& a : raw) {
            const double first = a[slot], second = a[other], made = u * first + w * second;
            gather(slot);
            total -= 2 * first * tiles<double>().dot(leaving_.data(), a.data(), size());
            gather(other);
            total -= 2 * second * tiles<double>().dot(leaving_.data(), a.data(), size());
            total += first * first * kappas[slot] + second * second * kappas[other] + 2 * first * second * k;
            const double all = tiles<double>().dot(kernel.data(), a.data(), size());
            total += 2 * made * (all - first * kernel[slot] - second * kernel[other]) + made * made * kappas[slot];
        }
        return std::max(0.0, total) * scale * scale;
    }

    // leaving_[i] = the kernel value of slots `slot` and i
    void gather(int slot) {
        const int m = size();
        leaving_.resize(m);
        double* out = leaving_.data();
        const double *row = gram.data() + slot * stride, *column = gram.data() + slot;
        const std::int64_t* born = births.data();
        const std::int64_t birth = born[slot];
        for (int i = 0; i < m; ++i) out[i] = born[i] <= birth ? row[i] : column[i * stride];
    }

    double label(int a, int b) const { return labels.empty() ? (a == b ? 1.0 : 0.0) : labels[a * outputs() + b]; }

    // the weight of slot's point in the joint score of an output
    double joint(int slot, int output) const {
        if (labels.empty()) return scale * raw[output][slot];
        double sum = 0;
        for (int c = 0; c < outputs(); ++c) sum += label(output, c) * raw[c][slot];
        return scale * sum;
    }

    void measure(int slot) {
        ranking.touch(slot);
        if (outputs() == 1) {
            sizes[slot] = std::abs(raw[0][slot]);
            return;
        }
        double sum = 0;
        for (const Values& row : raw) sum += row[slot] * row[slot];
        sizes[slot] = std::sqrt(sum);
    }

    void name(int slot, std::int64_t id) {
        ids[slot] = id;
        if (with_ids) slot_of[id] = slot;
    }

    void leave(int slot) {
        if (with_ids) slot_of.erase(ids[slot]);
        if (tracks()) {
            values_.clear();  // of every row at the point that leaves, unscaled
            if (evaluator != nullptr) {
                values_.resize(raw.size() + trace.size());
                evaluator->at(slot, values_.data());
            } else {
                gather(slot);
                for (const Rows2* rows : {&raw, &trace})
                    for (const Values& row : *rows)
                        values_.push_back(tiles<double>().dot(leaving_.data(), row.data(), size()));
            }
            Values& g = scores_;  // f there, before the label kernel
            g.clear();
            for (int c = 0; c < outputs(); ++c) g.push_back(scale * values_[c]);
            double cross = 0, square = 0;
            for (int c = 0; c < outputs(); ++c) {
                const double a = scale * raw[c][slot];
                double f = labels.empty() ? g[c] : 0.0;
                if (!labels.empty())
                    for (int b = 0; b < outputs(); ++b) f += label(c, b) * g[b];
                cross -= 2 * a * f;
                square += a * joint(slot, c) * kappas[slot];
                if (trace.empty()) continue;
                const double b = trace_coef(c, slot);
                inner += -a * (trace_scale * values_[outputs() + c] + mix * f) - b * f + a * b * kappas[slot];
            }
            add_to_norm(cross, square);
        }
        if (average == Average::all)
            for (int c = 0; c < outputs(); ++c)
                dropped[c].push_back(summed[c][slot] + raw[c][slot] * (rounds_scale - entered[slot]));
    }

    void reserve_gram(int m) {
        if (m <= stride) return;
        const std::ptrdiff_t wider = wider_stride(stride, m);
        Values grown(static_cast<std::size_t>(wider) * wider);
        for (std::ptrdiff_t i = 0; i < stride; ++i)
            std::copy_n(gram.begin() + i * stride, stride, grown.begin() + i * wider);
        gram.swap(grown);
        stride = wider;
    }
};

}  // namespace gossamer
