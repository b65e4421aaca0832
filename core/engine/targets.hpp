// Targets, or the values of a feature, scaled online: the twin of `follow` (estimators/targets.py).
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>

namespace gossamer {

struct Targets {
    double total = 0;    // the sum of weights
    double first = 0;    // the first target
    double sums = 0;     // of the distances from it
    double squares = 0;  // of the distances from the mean

    double mean() const { return total > 0 ? first + sums / total : 0.0; }
    double deviation() const { return total > 0 ? std::sqrt(squares / total) : 0.0; }
    bool sound() const {
        return total >= 0 && squares >= 0 && std::isfinite(total) && std::isfinite(first) && std::isfinite(sums) &&
               std::isfinite(squares);
    }

    // Time passes: what came before weighs less. Mean and deviation stay, unless nothing is left.
    void fade(double factor) {
        if (factor == 1) return;
        total *= factor;
        sums *= factor;
        squares *= factor;
    }

    // y in the units of all targets up to and with itself
    double follow(double y, double weight = 1.0) {
        if (weight > 0) {
            if (total == 0) first = y;
            const double away = y - first;
            const double news = away - (total > 0 ? sums / total : 0.0);
            total += weight;
            sums += weight * away;
            squares += weight * news * news * (1.0 - weight / total);
        }
        const double unit = deviation();
        return unit > 0 ? ((y - first) - sums / total) / unit : 0.0;
    }

    // A batch: y in their units as above, and the mean and the deviation that were known before each.
    void follow(const double* y, const double* weights, const double* fades, std::size_t rows, double* z, double* means,
                double* deviations) {
        if (fades != nullptr) return follow_fading(y, weights, fades, rows, z, means, deviations);
        if (weights == nullptr) return follow_equal(y, rows, z, means, deviations);
        double known_mean = mean(), known_deviation = deviation();
        for (std::size_t t = 0; t < rows; ++t) {
            means[t] = known_mean;
            deviations[t] = known_deviation;
            z[t] = follow(y[t], weights[t]);
            known_mean = mean();
            known_deviation = deviation();  // inlined, this is the square root that z was made with
        }
    }

private:
    void follow_fading(const double* y, const double* weights, const double* fades, std::size_t rows, double* z,
                       double* means, double* deviations) {
        for (std::size_t t = 0; t < rows; ++t) {
            means[t] = mean();
            deviations[t] = deviation();
            fade(fades[t]);
            z[t] = follow(y[t], weights == nullptr ? 1.0 : weights[t]);
        }
    }

    // The same for weights of 1, to the bit, in half the time: only the sums go from row to row, and the compiler
    // vectorizes the divisions and roots between them. Arrays with one entry more begin with what was known before.
    void follow_equal(const double* y, std::size_t rows, double* z, double* means, double* deviations) {
        constexpr std::size_t most = 64;
        double totals[most], centres[most + 1], units[most + 1], terms[most];
        if (rows > 0 && total == 0) first = y[0];
        bool any = total > 0;
        centres[0] = any ? sums / total : 0.0;
        units[0] = deviation();
        for (std::size_t start = 0; start < rows; start += most) {
            const std::size_t n = std::min(most, rows - start);
            for (std::size_t t = 0; t < n; ++t) {
                totals[t] = total += 1.0;
                terms[t] = sums += y[start + t] - first;
            }
            for (std::size_t t = 0; t < n; ++t) centres[t + 1] = terms[t] / totals[t];
            for (std::size_t t = 0; t < n; ++t) {
                const double news = (y[start + t] - first) - centres[t];
                terms[t] = news * news * (1.0 - 1.0 / totals[t]);
            }
            for (std::size_t t = 0; t < n; ++t) terms[t] = squares += terms[t];
            for (std::size_t t = 0; t < n; ++t) units[t + 1] = std::sqrt(terms[t] / totals[t]);
            for (std::size_t t = 0; t < n; ++t) {
                const double scaled = ((y[start + t] - first) - centres[t + 1]) / units[t + 1];
                z[start + t] = units[t + 1] > 0 ? scaled : 0.0;
            }
            for (std::size_t t = 0; t < n; ++t) {
                means[start + t] = first + centres[t];
                deviations[start + t] = units[t];
            }
            if (!any) means[0] = 0.0;
            any = true;
            centres[0] = centres[n], units[0] = units[n];
        }
    }
};

}  // namespace gossamer
