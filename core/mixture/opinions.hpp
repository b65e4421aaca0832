// The opinion of one expert of a mixture: a distribution of the target, made of its score by a few learned numbers. The
// twin of mixture/opinions.py, where the formulas are.
//
// An opinion is a small struct that is copied. look(...) adds its prediction, weighted, to a sum and returns the likelihood
// of the target; what it says in the units of the mixture's score is added to `said`, which may be null; learn(...) goes on; finish(...) turns the weighted sum into the score of the mixture. holds(...) is false for
// scores that are no opinion, such as those of an expert that diverged; nothing(...) is the prediction if all are like that.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>

#include "certainty/link.hpp"

namespace gossamer {

// One row as an expert sees it.
struct Outlook {
    const double* scores;  // (outputs,)
    double variance;       // of the expert at this row, its noise added; 1 where it has none
    int outputs;
    double* workspace;  // (outputs,)
};

constexpr double opinion_forgetting = 0.9995;  // about two thousand rows
constexpr double least_probability =
    1e-4;  // of what an expert holds for impossible: it never loses more than 9.3 in a row

// Two classes: the probability of the second one, by a calibrated link. The score of the mixture is its log-odds.
struct SignOpinion {
    static constexpr int numbers = 8;
    Link link{opinion_forgetting};

    template <class S, class F> static void each(S& s, F&& f) { Link::each(s.link, f); }
    static bool holds(const Outlook& row) { return std::isfinite(row.scores[0]); }
    static double nothing(int) { return 0.5; }
    double probability(const Outlook& row) const {
        return least_probability + (1 - 2 * least_probability) * link.probability(row.scores[0]);
    }
    double look(const Outlook& row, double weight, double* sums, double y, double* said) const {
        const double p = probability(row);
        sums[0] += weight * p;
        if (said != nullptr) said[0] += std::log(p) - std::log1p(-p);
        return y > 0 ? p : 1 - p;
    }
    void learn(const Outlook& row, double y, double weight) { link.learn(row.scores[0], y > 0, weight); }
    void fade(double factor) { link.forgetting = 1, link.fade(factor); }
    static void finish(double* sums, int) { sums[0] = std::log(sums[0]) - std::log1p(-sums[0]); }
};

// Many classes: their probabilities, by a calibrated link. The scores of the mixture are their logarithms.
struct ClassOpinion {
    static constexpr int numbers = 5;
    SoftmaxLink link{opinion_forgetting};

    template <class S, class F> static void each(S& s, F&& f) { SoftmaxLink::each(s.link, f); }
    static bool holds(const Outlook& row) {  // -inf: a class that the expert does not know
        for (int k = 0; k < row.outputs; ++k)
            if (!(row.scores[k] <= std::numeric_limits<double>::max())) return false;
        return true;
    }
    static double nothing(int outputs) { return 1.0 / outputs; }
    double look(const Outlook& row, double weight, double* sums, double y, double* said) const {
        double *p = row.workspace, chosen = least_probability;
        link.probability(row.scores, row.outputs, p);
        int known = 0;
        for (int k = 0; k < row.outputs; ++k) known += std::isfinite(row.scores[k]);
        for (int k = 0; k < row.outputs; ++k) {
            const bool unknown = !std::isfinite(row.scores[k]);
            const double share =
                unknown ? least_probability : least_probability / known + (1 - least_probability) * p[k];
            if (said != nullptr) said[k] += std::log(share);
            if (unknown) continue;
            sums[k] += weight * share;
            if (k == static_cast<int>(y)) chosen = share;
        }
        return chosen;
    }
    void learn(const Outlook& row, double y, double weight) {
        link.learn(row.scores, row.outputs, static_cast<int>(y), row.workspace, weight);
    }
    void fade(double factor) { link.forgetting = 1, link.fade(factor); }
    static void finish(double* sums, int outputs) {
        for (int k = 0; k < outputs; ++k) sums[k] = std::log(sums[k]);
    }
};

// A number: Student's t around the score, whose spread is that of the expert times a learned factor. The score of the
// mixture is the weighted mean.
struct ValueOpinion {
    static constexpr int numbers = 2;
    static constexpr double freedom = 6.0, prior = 4.0;
    double total = prior, squares = prior;
    double forgetting = opinion_forgetting;  // by rows; 1 where it is by the clock

    template <class S, class F> static void each(S& s, F&& f) { f("total", s.total), f("squares", s.squares); }
    static bool holds(const Outlook& row) {
        return std::isfinite(row.scores[0]) && row.variance > 0 && std::isfinite(row.variance);
    }
    static double nothing(int) { return 0.0; }
    double spread(double variance) const { return std::max(1e-12, squares / total * variance); }
    double look(const Outlook& row, double weight, double* sums, double y, double* said) const {
        sums[0] += weight * row.scores[0];
        if (said != nullptr) said[0] += row.scores[0];
        const double away = y - row.scores[0], unit = spread(row.variance);
        return std::exp(-0.5 * (1 + freedom) * std::log1p(away * away / (freedom * unit))) / std::sqrt(unit);
    }
    void learn(const Outlook& row, double y, double weight) {
        const double away = y - row.scores[0], ratio = away * away / row.variance;
        const double robust = (1 + freedom) / (freedom + ratio * total / squares) * ratio;
        total = forgetting * total + (1 - forgetting) * prior + weight;
        squares = forgetting * squares + (1 - forgetting) * prior + weight * robust;
    }
    void fade(double factor) {
        forgetting = 1;
        total = factor * total + (1 - factor) * prior;
        squares = factor * squares + (1 - factor) * prior;
    }
    static void finish(double*, int) {}
};

// A quantile: the asymmetric Laplace density around the score, whose width is the mean pinball loss so far.
struct QuantileOpinion {
    static constexpr int numbers = 3;
    static constexpr double prior = 4.0;
    double total = prior, losses = 0.25 * prior, level = 0.5;
    double forgetting = opinion_forgetting;

    template <class S, class F> static void each(S& s, F&& f) {
        f("total", s.total), f("losses", s.losses), f("level", s.level);
    }
    static bool holds(const Outlook& row) { return std::isfinite(row.scores[0]); }
    static double nothing(int) { return 0.0; }
    double loss(double away) const { return away > 0 ? level * away : (level - 1) * away; }
    double look(const Outlook& row, double weight, double* sums, double y, double* said) const {
        sums[0] += weight * row.scores[0];
        if (said != nullptr) said[0] += row.scores[0];
        const double width = std::max(1e-12, losses / total);
        return std::exp(-loss(y - row.scores[0]) / width) / width;
    }
    void learn(const Outlook& row, double y, double weight) {
        const double most = 20 * losses / total;  // an outlier does not widen the density for long
        total = forgetting * total + (1 - forgetting) * prior + weight;
        losses =
            forgetting * losses + (1 - forgetting) * 0.25 * prior + weight * std::min(most, loss(y - row.scores[0]));
    }
    void fade(double factor) {
        forgetting = 1;
        total = factor * total + (1 - factor) * prior;
        losses = factor * losses + (1 - factor) * 0.25 * prior;
    }
    static void finish(double*, int) {}
};

}  // namespace gossamer
