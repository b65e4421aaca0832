// Calibrated links: scores become probabilities through one or two numbers that are learned on the scores themselves,
// each before its label was used. The twins of `Link` and `SoftmaxLink` (certainty/links.py), where the formulas are.
//
// A link is a small struct that is copied; learning allocates nothing, and sums run in the order of the rows and classes.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

namespace gossamer {

namespace links {

constexpr double forgetting = 0.998;      // about five hundred rows
constexpr double prior_slope = 2.0;       // for scores of mean square 1
constexpr double prior_precision = 1.0;   // how firmly a slope stays near it, in rows
constexpr double offset_precision = 1.0;  // the same for an offset, which stays near 0
constexpr double least_slope = 1e-3;      // probabilities keep the order of the scores
constexpr double largest_slope = 100.0;
constexpr double largest_score = 1e150;  // its square is finite

inline double clip_score(double f) { return std::min(largest_score, std::max(-largest_score, f)); }
inline double clip_slope(double b) { return std::min(largest_slope, std::max(least_slope, b)); }

inline double sigmoid(double u) {  // without a branch, which would be taken at random
    const double e = std::exp(-std::abs(u));
    return (u >= 0 ? 1.0 : e) / (1.0 + e);
}

// The curvature of the parabola that touches log(1 + exp(-u)) at u and lies above it everywhere (Jaakkola and Jordan 2000):
// a step against it never overshoots. p: the sigmoid of u.
inline double safe_curvature(double u, double p) {
    const double ratio = (p - 0.5) / u;
    return std::abs(u) < 1e-4 ? 0.25 : ratio;
}

inline void check(double forgetting, double weight) {
    if (!(forgetting > 0.0 && forgetting <= 1.0))
        throw std::invalid_argument("The 'forgetting' parameter of Link must be a number in (0, 1]. Got " +
                                    std::to_string(forgetting) + " instead.");
    if (!(weight >= 0.0 && std::isfinite(weight)))
        throw std::invalid_argument("The 'weight' parameter of Link must be a number in [0, inf). Got " +
                                    std::to_string(weight) + " instead.");
}

[[noreturn]] inline void refuse_score(double f) {
    throw std::invalid_argument("The 'f' parameter of Link must be a finite score. Got " + std::to_string(f) +
                                " instead.");
}

}  // namespace links

// Two classes: p = sigmoid(slope * f / scale + offset), scale^2 the mean square of the scores up to and with f.
struct Link {
    double forgetting = links::forgetting;
    double slope = links::prior_slope;
    double offset = 0;
    double slopes = links::prior_precision;  // the curvature of the loss so far: a symmetric 2 x 2 matrix
    double mixed = 0;
    double offsets = links::offset_precision;
    double total = 0;    // the sum of weights
    double squares = 0;  // of the scores, weighted

    template <class S, class F> static void each(S& s, F&& f) {
        f("forgetting", s.forgetting), f("slope", s.slope), f("offset", s.offset), f("slopes", s.slopes);
        f("mixed", s.mixed), f("offsets", s.offsets), f("total", s.total), f("squares", s.squares);
    }

    // f in units of the scores up to and with itself
    double standardize(double f, double weight = 1.0) const {
        const double sum = forgetting * squares + weight * f * f;
        return sum > 0 ? f / std::sqrt(sum / (forgetting * total + weight)) : 0.0;
    }

    double log_odds(double f) const {
        if (!std::isfinite(f)) links::refuse_score(f);
        return slope * standardize(links::clip_score(f)) + offset;
    }
    double probability(double f) const { return links::sigmoid(log_odds(f)); }

    // Time passes: what was learned counts less by a factor, and slope and offset go back to the prior by as much.
    void fade(double factor) {
        if (factor == 1) return;
        const double fresh = 1.0 - factor;
        total *= factor;
        squares *= factor;
        slopes = factor * slopes + fresh * links::prior_precision;
        mixed = factor * mixed;
        offsets = factor * offsets + fresh * links::offset_precision;
        const double along_slope = fresh * links::prior_precision * (slope - links::prior_slope);
        const double along_offset = fresh * links::offset_precision * offset;
        const double step = (offsets * along_slope - mixed * along_offset) / (slopes * offsets - mixed * mixed);
        const double next = links::clip_slope(slope - step);
        offset -= (along_offset + mixed * (next - slope)) / offsets;
        slope = next;
    }

    // Learn a score and whether its row was of the second class; returns the probability of that before.
    double learn(double f, bool second, double weight = 1.0) {
        links::check(forgetting, weight);
        const double before = probability(f);
        if (weight > 0) update(links::clip_score(f), second, weight);
        return before;
    }

    // The same for a score and a weight that are known to be good.
    void update(double f, bool second, double weight) {
        const double z = standardize(f, weight);
        const double u = slope * z + offset;
        const double p = links::sigmoid(u);
        const double fresh = 1.0 - forgetting;
        total = forgetting * total + weight;
        squares = forgetting * squares + weight * f * f;
        // forgetting goes back to the prior, which therefore bounds the slope also where classes are separable
        slopes = forgetting * slopes + fresh * links::prior_precision;
        mixed = forgetting * mixed;
        offsets = forgetting * offsets + fresh * links::offset_precision;
        const double error = weight * (p - (second ? 1.0 : 0.0));
        const double along_slope = error * z + fresh * links::prior_precision * (slope - links::prior_slope);
        const double along_offset = error + fresh * links::offset_precision * offset;
        const double safe = weight * links::safe_curvature(u, p);
        const double a = slopes + safe * z * z, b = mixed + safe * z, c = offsets + safe;
        const double next = links::clip_slope(slope - (c * along_slope - b * along_offset) / (a * c - b * b));
        offset -= (along_offset + b * (next - slope)) / c;  // the best one for this slope
        slope = next;
        const double curvature = weight * p * (1.0 - p);
        slopes += curvature * z * z;
        mixed += curvature * z;
        offsets += curvature;
    }
};

// Many classes: p = softmax(slope * f / scale), scale^2 the mean square of scores around the mean of their row. A score
// of -inf is that of a class that was not known: it has the probability 0, and a row of such a class teaches nothing.
struct SoftmaxLink {
    double forgetting = links::forgetting;
    double slope = links::prior_slope;
    double slopes = links::prior_precision;  // the curvature of the loss so far
    double total = 0;                        // the sum of weights
    double squares = 0;                      // of the scores around the mean of their row, weighted

    template <class S, class F> static void each(S& s, F&& f) {
        f("forgetting", s.forgetting), f("slope", s.slope), f("slopes", s.slopes), f("total", s.total);
        f("squares", s.squares);
    }

    struct Row {
        int known = 0;      // classes with a score
        double mean = 0;    // of their scores
        double square = 0;  // the mean square around it
    };

    // f: (classes,)
    static Row look(const double* f, int classes) {
        Row row;
        for (int k = 0; k < classes; ++k) {
            if (f[k] == -std::numeric_limits<double>::infinity()) continue;
            if (!std::isfinite(f[k])) links::refuse_score(f[k]);
            row.mean += links::clip_score(f[k]);
            ++row.known;
        }
        if (row.known == 0) return row;
        row.mean /= row.known;
        for (int k = 0; k < classes; ++k) {
            if (!std::isfinite(f[k])) continue;
            const double away = links::clip_score(f[k]) - row.mean;
            row.square += away * away;
        }
        row.square /= row.known;
        return row;
    }

    // as that of Link
    void fade(double factor) {
        if (factor == 1) return;
        const double fresh = 1.0 - factor;
        total *= factor;
        squares *= factor;
        slopes = factor * slopes + fresh * links::prior_precision;
        slope = links::clip_slope(slope - fresh * links::prior_precision * (slope - links::prior_slope) / slopes);
    }

    double unit(const Row& row, double weight = 1.0) const {
        const double sum = forgetting * squares + weight * row.square;
        return sum > 0 ? 1.0 / std::sqrt(sum / (forgetting * total + weight)) : 0.0;
    }

    // f, p: (classes,), which may be one array. All 0 if no class is known.
    Row probability(const double* f, int classes, double* p) const {
        const Row row = look(f, classes);
        fill(f, classes, p, row, 1.0);
        return row;
    }

    // Learn the scores of a row of this class, and write the probabilities before it to p (not f itself).
    void learn(const double* f, int classes, int label, double* p, double weight = 1.0) {
        links::check(forgetting, weight);
        update(f, classes, label, probability(f, classes, p), weight,
               [](double, int, double power) { return std::exp(power); });
    }
    // The same, of the row and the probabilities that `probability` gave, which save exponentials.
    void learn_from(const double* f, int classes, int label, const double* p, const Row& row, double weight) {
        update(
            f, classes, label, row, weight,
            [&](double top, int k, double power) {
                return weight == 1.0 && top > 1e-200 ? p[k] / top : std::exp(power);
            },
            p);
    }

private:
    // exponential(probability of the largest of the others, class, power): exp(power)
    template <class E>
    void update(const double* f, int classes, int label, const Row& row, double weight, E&& exponential,
                const double* p = nullptr) {
        const bool unknown = label < 0 || label >= classes || !std::isfinite(f[label]);
        if (weight == 0 || unknown || row.known < 2) return;
        const double scale = unit(row, weight), fresh = 1.0 - forgetting;
        // the class against the rest: the mean and the variance of the others' scores, weighted by their probabilities
        double top = -std::numeric_limits<double>::infinity(), most = 0;
        for (int k = 0; k < classes; ++k)
            if (k != label && std::isfinite(f[k])) {
                top = std::max(top, links::clip_score(f[k]));
                if (p != nullptr) most = std::max(most, p[k]);
            }
        double mass = 0, mean = 0, square = 0;
        for (int k = 0; k < classes; ++k) {
            if (k == label || !std::isfinite(f[k])) continue;
            const double away = scale * (links::clip_score(f[k]) - top), share = exponential(most, k, slope * away);
            mass += share;
            mean += share * away;
            square += share * away * away;
        }
        mean /= mass;
        const double variance = std::max(0.0, square / mass - mean * mean);
        const double z = scale * (links::clip_score(f[label]) - top) - mean;
        const double u = slope * (z + mean) - std::log(mass), q = links::sigmoid(u);
        total = forgetting * total + weight;
        squares = forgetting * squares + weight * row.square;
        slopes = forgetting * slopes + fresh * links::prior_precision;
        const double along = weight * (q - 1.0) * z + fresh * links::prior_precision * (slope - links::prior_slope);
        const double spread = (1.0 - q) * variance;
        slope = links::clip_slope(slope - along / (slopes + weight * (links::safe_curvature(u, q) * z * z + spread)));
        slopes += weight * (q * (1.0 - q) * z * z + spread);
    }
    void fill(const double* f, int classes, double* p, const Row& row, double weight) const {
        const double factor = slope * unit(row, weight);
        double top = -std::numeric_limits<double>::infinity(), sum = 0;
        for (int k = 0; k < classes; ++k)
            if (std::isfinite(f[k])) top = std::max(top, links::clip_score(f[k]));
        for (int k = 0; k < classes; ++k) {
            p[k] = std::isfinite(f[k]) ? std::exp(factor * (links::clip_score(f[k]) - top)) : 0.0;
            sum += p[k];
        }
        if (row.known > 0)
            for (int k = 0; k < classes; ++k) p[k] /= sum;
    }
};

}  // namespace gossamer
