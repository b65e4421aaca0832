// The distribution of recent values of any scale, in bins: four to an octave, sixteen octaves, older values weighing less.
// The twin of `Sketch` (certainty/sketch.py).
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace gossamer {

struct Sketch {
    static constexpr int bins = 64, per_octave = 4, unit_bin = 40;
    static constexpr double keep = 0.999;  // about a thousand rows
    static constexpr double largest_gain = 1e100;

    double octave = 0;  // bin 40 begins at 2^octave
    double gain = 1;    // the weight of the next value: those before fade against it
    double total = 0;
    std::array<double, bins> weights{};

    template <class S, class F> static void each(S& s, F&& f) {
        f("octave", s.octave), f("gain", s.gain), f("total", s.total);
        for (auto& weight : s.weights) f("weight", weight);
    }

    // values that are not positive belong to the first bin
    void add(double value, double weight = 1.0) {
        if (value > 0 && total == 0) octave = octave_of(value);
        int bin = bin_of(value);
        if (bin >= bins) {
            raise((bin - bins) / per_octave + 1);
            bin = bin_of(value);
        } else if (bin < 0 && value > 0 && weights[0] > 0.5 * total) {
            lower();
            bin = bin_of(value);
        }
        weights[std::max(0, bin)] += gain * weight;
        total += gain * weight;
        gain /= keep;
        if (gain > largest_gain) rescale();
    }

    // time passes: older values weigh less
    void fade(double factor) {
        if (factor > 0) {
            gain /= factor;
            if (gain > largest_gain) rescale();
        } else {
            *this = Sketch();
        }
    }

    double count() const { return total / gain; }

    // The share of the weight below a value, linear inside a bin.
    double below(double value) const {
        if (total <= 0 || !(value > 0)) return 0.0;
        const int bin = std::min(std::max(0, bin_of(value)), bins);
        if (bin == bins) return 1.0;
        double lanes[4] = {0, 0, 0, 0};  // four sums at a time: one would wait for itself
        int i = 0;
        for (; i + 4 <= bin; i += 4)
            for (int lane = 0; lane < 4; ++lane) lanes[lane] += weights[i + lane];
        for (; i < bin; ++i) lanes[i & 3] += weights[i];
        const double sum = (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
        const double low = edge(bin), high = edge(bin + 1);
        return std::min(1.0, (sum + weights[bin] * (value - low) / (high - low)) / total);
    }

    // where the weight begins
    double lowest() const {
        for (int i = 0; i < bins; ++i)
            if (weights[i] > 0) return edge(i);
        return 0.0;
    }

    // The least value with this share of the weight below it; infinite for a share above 1, -infinite below 0.
    double quantile(double share) const {
        if (total <= 0 || share >= 1) return std::numeric_limits<double>::infinity();
        if (share < 0) return -std::numeric_limits<double>::infinity();
        double sum = 0;
        for (int i = 0; i < bins; ++i) {
            if (weights[i] > 0 && sum + weights[i] >= share * total)
                return edge(i) + (edge(i + 1) - edge(i)) * std::max(0.0, share * total - sum) / weights[i];
            sum += weights[i];
        }
        return edge(bins);
    }

private:
    static int octave_of(double value) {
        int exponent;
        std::frexp(value, &exponent);
        return exponent - 1;
    }
    int bin_of(double value) const {
        if (!(value > 0)) return -1;
        int exponent;
        const double m = std::frexp(value, &exponent);  // in [1/2, 1)
        const double octaves = exponent - 1 - octave;
        return unit_bin + per_octave * static_cast<int>(octaves) + static_cast<int>((m - 0.5) * 2 * per_octave);
    }
    double edge(int bin) const {
        if (bin <= 0) return 0.0;
        const int from = bin - unit_bin, whole = (from >= 0 ? from : from - per_octave + 1) / per_octave;
        return std::ldexp(1.0 + static_cast<double>(from - whole * per_octave) / per_octave,
                          whole + static_cast<int>(octave));
    }
    void raise(int octaves) {
        octave += octaves;
        const int shift = std::min(bins, octaves * per_octave);
        for (int i = 1; i < shift; ++i) weights[0] += weights[i];
        if (shift < bins) weights[0] += weights[shift];
        for (int i = 1; i < bins; ++i) weights[i] = i + shift < bins ? weights[i + shift] : 0.0;
    }
    void lower() {  // by four octaves
        const int shift = 4 * per_octave;
        octave -= 4;
        for (int i = bins - shift; i < bins - 1; ++i) weights[bins - 1] += weights[i];
        for (int i = bins - 2; i > shift; --i) weights[i] = weights[i - shift];
        for (int i = 1; i <= shift; ++i) weights[i] = 0.0;
    }
    void rescale() {
        for (double& weight : weights) weight /= gain;
        total /= gain;
        gain = 1;
    }
};

}  // namespace gossamer
