// The twin of expansion.py's Expansion: lazily scaled coefficients in slots, their norm and their mean over time.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace gossamer {

enum class Average { none, sparse, all };

struct Expansion {
    static constexpr double fold_at = 1e6;
    static constexpr std::int64_t refresh_every = 10000;

    std::vector<double> raw, kappas, roots, summed, entered, dropped;  // roots[i] = sqrt(kappas[i])
    std::vector<std::int64_t> births;
    double scale = 1, offset = 0, norm2 = 0;
    double rounds_scale = 0, offset_sum = 0;
    std::int64_t refresh_in = refresh_every;
    Average average = Average::none;
    bool with_gram = false;
    std::vector<double> gram;  // [i * stride + j]
    int stride = 0;

    int size() const { return static_cast<int>(raw.size()); }
    double coef(int slot) const { return scale * raw[slot]; }

    void begin_round() {
        if (average == Average::none) return;
        rounds_scale += scale;
        offset_sum += offset;
    }

    void shrink(double keep) {
        scale *= keep;
        norm2 *= keep * keep;
    }

    bool must_fold() const { return !(scale > 1 / fold_at && scale < fold_at); }

    void fold() {
        for (int i = 0; i < size(); ++i) {
            summed[i] += raw[i] * (rounds_scale - entered[i]);
            entered[i] = 0;
            raw[i] *= scale;
        }
        rounds_scale = 0;
        scale = 1;
    }

    // value: f(x) now; row[i * ld]: the kernel values of x against the slots
    template <class T>
    void place(int slot, double coefficient, double kappa, std::int64_t birth, double value, const T* row,
               std::ptrdiff_t ld) {
        const int m = size();
        if (slot < m) {
            value -= coef(slot) * static_cast<double>(row[slot * ld]);
            leave(slot);
        } else {
            for (auto* values : {&raw, &kappas, &roots, &summed, &entered}) values->push_back(0.0);
            births.push_back(0);
        }
        raw[slot] = coefficient / scale;
        kappas[slot] = kappa;
        roots[slot] = std::sqrt(kappa);
        births[slot] = birth;
        summed[slot] = 0;
        entered[slot] = rounds_scale;
        norm2 = std::max(0.0, norm2 + 2 * coefficient * value + coefficient * coefficient * kappa);
        if (!with_gram) return;
        reserve_gram(size());
        for (int i = 0; i < m; ++i) {
            gram[slot * stride + i] = static_cast<double>(row[i * ld]);
            gram[i * stride + slot] = static_cast<double>(row[i * ld]);
        }
        gram[slot * stride + slot] = kappa;
        if (--refresh_in <= 0) refresh();
    }

    void remove(int slot) {
        leave(slot);
        const int last = size() - 1;
        for (auto* values : {&raw, &kappas, &roots, &summed, &entered}) {
            (*values)[slot] = (*values)[last];
            values->pop_back();
        }
        births[slot] = births[last];
        births.pop_back();
        if (!with_gram) return;
        for (int i = 0; i <= last; ++i) gram[slot * stride + i] = gram[last * stride + i];
        for (int i = 0; i <= last; ++i) gram[i * stride + slot] = gram[i * stride + last];
        gram[slot * stride + slot] = gram[last * stride + last];
    }

    void set_gram(const std::vector<double>& values) {
        stride = 0;
        gram.clear();
        reserve_gram(size());
        for (int i = 0; i < size(); ++i)
            std::copy_n(values.begin() + i * size(), size(), gram.begin() + i * stride);
    }

private:
    void leave(int slot) {
        if (with_gram) {
            double value = 0;
            for (int i = 0; i < size(); ++i) value += raw[i] * gram[slot * stride + i];
            const double a = coef(slot);
            norm2 += -2 * a * scale * value + a * a * kappas[slot];
        }
        if (average == Average::all) dropped.push_back(summed[slot] + raw[slot] * (rounds_scale - entered[slot]));
    }

    void refresh() {
        double total = 0;
        for (int i = 0; i < size(); ++i)
            for (int j = 0; j < size(); ++j) total += raw[i] * raw[j] * gram[i * stride + j];
        norm2 = std::max(0.0, scale * scale * total);
        refresh_in = refresh_every;
    }

    void reserve_gram(int m) {
        if (m <= stride) return;
        const int wider = std::max(2 * stride, std::max(m, 16));
        std::vector<double> grown(static_cast<std::size_t>(wider) * wider);
        for (int i = 0; i < stride; ++i) std::copy_n(gram.begin() + i * stride, stride, grown.begin() + i * wider);
        gram.swap(grown);
        stride = wider;
    }
};

// the sum of each slot's coefficient over all rounds so far
inline std::vector<double> total_of(const Expansion& e) {
    std::vector<double> sums(e.raw.size());
    for (int i = 0; i < e.size(); ++i) sums[i] = e.summed[i] + e.raw[i] * (e.rounds_scale - e.entered[i]);
    return sums;
}

}  // namespace gossamer
