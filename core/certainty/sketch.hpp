// The distribution of recent values of any scale, in bins: four to an octave, sixteen octaves, older values weighing less.
// The twin of `Sketch` (certainty/sketch.py).
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "certainty/bend.hpp"

namespace gossamer {

struct Sketch {
    static constexpr int bins = 64, per_octave = 4, unit_bin = 40;
    static constexpr double growth = 1 / 0.999;  // about a thousand rows are remembered
    static constexpr double largest_gain = 1e100;

    double octave = 0;  // bin 40 begins at 2^octave
    double gain = 1;    // the weight of the next value: those before fade against it
    double total = 0;
    static constexpr int side = 8;  // bins of a block, and blocks
    alignas(16) std::array<double, bins> weights{};
    alignas(16) std::array<double, side> blocks{};  // the sums of eight bins each, so that a sum up to a bin is short

    template <class S, class F> static void each(S& s, F&& f) {
        f("octave", s.octave), f("gain", s.gain), f("total", s.total);
        for (auto& weight : s.weights) f("weight", weight);
        for (auto& block : s.blocks) f("block", block);
    }

    // values that are not positive belong to the first bin
    void add(double value, double weight = 1.0) {
        if (value >= std::numeric_limits<double>::min() && total == 0) octave = octave_of(value);
        int bin = bin_of(value);
        if (bin >= bins) {
            raise((bin - bins) / per_octave + 1);
            bin = bin_of(value);
        } else if (bin < 0 && value >= std::numeric_limits<double>::min() && weights[0] > 0.5 * total) {
            lower();
            bin = bin_of(value);
        }
        bin = std::max(0, bin);
        weights[bin] += gain * weight;
        blocks[bin / side] += gain * weight;
        total += gain * weight;
        gain *= growth;
        if (gain > largest_gain) rescale();
    }

    // A value that makes no other older; time passes by `fade`. Bins do not move: it goes to the first or the last of them.
    void count_in(double value) {
        add_to(std::min(bins - 1, std::max(0, bin_of(value))), gain);
        total += gain;
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
    double below(double value) const { return total > 0 ? weight_below(value) / total : 0.0; }
    // The weight itself.
    double weight_below(double value) const {
        if (!(value > 0)) return 0.0;
        const int bin = std::max(0, bin_of(value));
        if (bin >= bins) return total;
        return weight_below(value, bin, total, per_first());
    }

    // The same two for loops that keep total and gain in registers. The bin of a value; -1 if bins have to move for it.
    int settled_bin(double value, double sum_of_all) const {
        const int bin = bin_of(value);
        return bin >= bins || (bin < 0 && weights[0] > 0.5 * sum_of_all) ? -1 : std::max(0, bin);
    }
    double weight_below(double value, int bin, double sum_of_all, double per_first) const {
        const Duo sums = first(blocks.data(), bin / side) + first(weights.data() + bin / side * side, bin % side);
        const double inside = part_of(value), in_first = std::min(1.0, value * per_first);
        return std::min(sum_of_all, sums[0] + sums[1] + weights[bin] * (bin > 0 ? inside : in_first));
    }
    double per_first() const {  // the width of the first bin divides 1
        const double end = edge(1);
        return end > 0 ? 1.0 / end : 0.0;
    }
    void add_to(int bin, double amount) {
        add_to(weights.data(), bin, amount);
        add_to(blocks.data(), bin / side, amount);
    }

    // where the weight ends
    double highest() const {
        for (int i = bins - 1; i >= 0; --i)
            if (weights[i] > 0) return edge(i + 1);
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

    bool sound() const {
        bool fits = octave == std::floor(octave) && std::abs(octave) < 1100 && gain >= 1 && gain <= 2 * largest_gain;
        double sum = 0;
        for (int i = 0; i < side; ++i) {
            const double own = block(i);
            fits = fits && std::abs(blocks[i] - own) <= 1e-6 * own;
            sum += own;
        }
        for (const double weight : weights) fits = fits && weight >= 0;
        return fits && std::abs(total - sum) <= 1e-6 * sum;
    }

private:
    void sum_blocks() {
        for (int i = 0; i < side; ++i) blocks[i] = block(i);
    }
    // Written as the pair that `first` reads: a processor hands on what was just stored to a load of the same width, and waits
    // with a wider one.
    static void add_to(double* values, int place, double amount) {
        const auto odd = static_cast<double>(place & 1);
        double* at = values + (place & ~1);
        store_duo(at, load_duo(at) + (Duo{odd, odd} == Duo{0, 1} ? Duo{amount, amount} : Duo{0, 0}));
    }
    // The first `count` of eight numbers, without a branch: the sums of those at even and at odd places.
    static Duo first(const double* values, int count) {
        static constexpr double ones[2 * side] = {1, 1, 1, 1, 1, 1, 1, 1};
        Duo parts[side / 2];
        for (int i = 0; i < side / 2; ++i) parts[i] = load_duo(values + 2 * i) * load_duo(ones + side - count + 2 * i);
        return (parts[0] + parts[1]) + (parts[2] + parts[3]);
    }
    double block(int number) const {
        const Duo sums = first(weights.data() + number * side, side);
        return sums[0] + sums[1];
    }
    // The bits of a positive number from its second bit of the mantissa on count quarters of octaves.
    static constexpr int cut = 50, bias = 1023;
    static std::uint64_t bits_of(double value) {
        std::uint64_t bits;
        std::memcpy(&bits, &value, sizeof bits);
        return bits;
    }
    static double part_of(double value) {  // how far it lies in its bin, in [0, 1)
        return static_cast<double>(bits_of(value) & ((std::uint64_t{1} << cut) - 1)) * 0x1p-50;
    }
    static int octave_of(double value) { return static_cast<int>(bits_of(value) >> (cut + 2)) - bias; }
    int bin_of(double value) const {
        if (!(value >= std::numeric_limits<double>::min())) return -1;
        return unit_bin + static_cast<int>(bits_of(value) >> cut) - per_octave * (bias + static_cast<int>(octave));
    }
    double edge(int bin) const {
        const int place = bin - unit_bin + per_octave * (bias + static_cast<int>(octave));
        if (bin <= 0 || place < per_octave) return 0.0;
        if (place >= per_octave * 2047) return std::numeric_limits<double>::infinity();
        const std::uint64_t bits = static_cast<std::uint64_t>(place) << cut;
        double value;
        std::memcpy(&value, &bits, sizeof value);
        return value;
    }
    void raise(int octaves) {
        octave += octaves;
        const int shift = std::min(bins, octaves * per_octave);
        for (int i = 1; i < shift; ++i) weights[0] += weights[i];
        if (shift < bins) weights[0] += weights[shift];
        for (int i = 1; i < bins; ++i) weights[i] = i + shift < bins ? weights[i + shift] : 0.0;
        sum_blocks();
    }
    void lower() {  // by four octaves
        const int shift = 4 * per_octave;
        octave -= 4;
        for (int i = bins - 1 - shift; i < bins - 1; ++i) weights[bins - 1] += weights[i];
        for (int i = bins - 2; i > shift; --i) weights[i] = weights[i - shift];
        for (int i = 1; i <= shift; ++i) weights[i] = 0.0;
        sum_blocks();
    }
    void rescale() {
        for (double& weight : weights) weight /= gain;
        total /= gain;
        gain = 1;
        sum_blocks();
    }
};

}  // namespace gossamer
