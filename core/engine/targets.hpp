// Targets, or the values of a feature, scaled online: the twin of `follow` (estimators/targets.py).
#pragma once
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
    void follow(const double* y, const double* weights, std::size_t rows, double* z, double* means,
                double* deviations) {
        double known_mean = mean(), known_deviation = deviation();
        for (std::size_t t = 0; t < rows; ++t) {
            means[t] = known_mean;
            deviations[t] = known_deviation;
            z[t] = follow(y[t], weights == nullptr ? 1.0 : weights[t]);
            known_mean = mean();
            known_deviation = deviation();  // inlined, this is the square root that z was made with
        }
    }
};

}  // namespace gossamer
