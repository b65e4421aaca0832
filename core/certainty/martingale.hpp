// A conformal test martingale: capital that grows when scores stop being exchangeable. The twin of `Martingale`
// (certainty/martingale.py), where the formulas are.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

namespace gossamer {

struct Martingale {
    static constexpr std::array<double, 3> jumps = {0.0001, 0.001, 0.01};
    static constexpr std::array<double, 5> bets = {-1.9, -1, 0, 1, 1.9};
    static constexpr int views = 2;  // of a p-value: itself, and how far it is from the middle
    static constexpr int players = views * static_cast<int>(jumps.size()),
                         stakes = players * static_cast<int>(bets.size());
    static constexpr double largest = 1e200;

    std::vector<double> sorted;  // the scores so far
    std::array<double, stakes> capital = start();
    double salt = 0;   // how many random numbers were drawn
    bool fed = false;  // a unit of capital comes before each row (Shiryaev and Roberts)

    static std::array<double, stakes> start() {
        std::array<double, stakes> even;
        even.fill(1.0 / stakes);
        return even;
    }

    double wealth() const {
        double sum = 0;
        for (const double part : capital) sum += part;
        return sum;
    }

    // The share of scores above this one, ties broken at random: uniform if all are exchangeable.
    double p_value(double score, std::uint64_t seed, int memory) {
        if (static_cast<int>(sorted.size()) >= memory) sorted.clear();
        const auto [low, high] = std::equal_range(sorted.begin(), sorted.end(), score);
        const auto above = static_cast<double>(sorted.end() - high), ties = static_cast<double>(high - low) + 1.0;
        salt += 1;
        const double p = (above + ties * uniform(seed, salt)) / (static_cast<double>(sorted.size()) + 1.0);
        sorted.insert(high, score);
        return p;
    }

    void bet(double p) {
        double* stake = capital.data();
        for (int view = 0; view < views; ++view) {
            const double x = view == 0 ? p - 0.5 : std::abs(2.0 * p - 1.0) - 0.5;
            for (const double jump : jumps) {
                double sum = 0;
                for (std::size_t i = 0; i < bets.size(); ++i) {
                    if (fed) stake[i] += 1.0 / stakes;
                    sum += stake[i];
                }
                const double share = jump * sum / bets.size();
                for (std::size_t i = 0; i < bets.size(); ++i)
                    stake[i] = std::min(largest, ((1.0 - jump) * stake[i] + share) * (1.0 + bets[i] * x));
                stake += bets.size();
            }
        }
    }

private:
    // SplitMix64 of the seed and a counter, as a number in (0, 1)
    static double uniform(std::uint64_t seed, double count) {
        std::uint64_t z = seed + static_cast<std::uint64_t>(count) * 0x9e3779b97f4a7c15ULL;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
        return (static_cast<double>((z ^ (z >> 31)) >> 12) + 0.5) / 4503599627370496.0;
    }
};

}  // namespace gossamer
