// The probabilities of a classifier: a link, and a curve over its log-odds that takes what one slope cannot bend. The twin of
// `Calibration` (certainty/calibration.py), where the formulas are.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>

#include "certainty/link.hpp"

namespace gossamer {

// u -> u + a piecewise linear correction that is 0 at the start; it keeps the order.
struct Curve {
    static constexpr int knots = 9;
    static constexpr std::array<double, knots> at = {-5, -3, -1.5, -0.6, 0, 0.6, 1.5, 3, 5};
    static constexpr double keep = 0.998;  // of what a knot has learned, at a row of its own
    static constexpr double steepest_fall = 0.95;

    std::array<double, knots> shifts{};
    std::array<double, knots> curvatures = filled(links::prior_precision);

    template <class S, class F> static void each(S& s, F&& f) {
        for (auto& shift : s.shifts) f("shift", shift);
        for (auto& curvature : s.curvatures) f("curvature", curvature);
    }

    bool rises() const {
        for (int i = 0; i + 1 < knots; ++i)
            if (shifts[i] - shifts[i + 1] > steepest_fall * (at[i + 1] - at[i]) * (1 + 1e-9)) return false;
        return true;
    }

    double apply(double u) const {
        const auto [i, share] = place(u);
        return u + (1.0 - share) * shifts[i] + share * shifts[i + 1];
    }

    // returns the probability before
    double learn(double u, bool hit, double weight) {
        const auto [i, share] = place(u);
        const double v = u + (1.0 - share) * shifts[i] + share * shifts[i + 1], p = links::sigmoid(v);
        const double error = p - (hit ? 1.0 : 0.0), safe = links::safe_curvature(v, p);
        const double parts[2] = {weight * (1.0 - share), weight * share};
        double next[2];
        for (int k = 0; k < 2; ++k) {
            double& curvature = curvatures[i + k];
            const double fresh = std::min(1.0, (1.0 - keep) * parts[k]);
            curvature += fresh * (links::prior_precision - curvature);
            const double along = error * parts[k] + fresh * links::prior_precision * shifts[i + k];
            next[k] = shifts[i + k] - along / (curvature + safe * parts[k]);
            curvature += p * (1.0 - p) * parts[k];
        }
        // a step that would break the order of scores is not taken
        if (falls(next[0], next[1], i) || (i > 0 && falls(shifts[i - 1], next[0], i - 1)) ||
            (i + 2 < knots && falls(next[1], shifts[i + 2], i + 1)))
            return p;
        shifts[i] = next[0];
        shifts[i + 1] = next[1];
        return p;
    }

    // time passes: what was learned counts less, and goes back to the prior
    void fade(double factor) {
        for (int i = 0; i < knots; ++i) {
            curvatures[i] = factor * curvatures[i] + (1.0 - factor) * links::prior_precision;
            shifts[i] -= (1.0 - factor) * links::prior_precision * shifts[i] / curvatures[i];
        }
        if (!rises()) shifts.fill(0.0);
    }

private:
    struct Place {
        int left;
        double share;  // of the right knot
    };
    static std::array<double, knots> filled(double value) {
        std::array<double, knots> values;
        values.fill(value);
        return values;
    }
    static Place place(double u) {
        const double x = std::min(at[knots - 1], std::max(at[0], u));
        int i = 0;
        while (i + 2 < knots && x >= at[i + 1]) ++i;
        return {i, (x - at[i]) / (at[i + 1] - at[i])};
    }
    static bool falls(double left, double right, int i) { return left - right > steepest_fall * (at[i + 1] - at[i]); }
};

struct Calibration {
    Link two;
    SoftmaxLink many;
    Curve curve;  // of the second class, or of the class with the largest score

    template <class S, class F> static void each(S& s, F&& f) {
        Link::each(s.two, f), SoftmaxLink::each(s.many, f), Curve::each(s.curve, f);
    }

    // the probability of the second class
    double probability(double f) const { return agree(links::sigmoid(curve.apply(two.log_odds(f))), f); }
    // a finite score; returns the probability of the second class before
    double learn(double f, bool second, double weight) {
        const double before = agree(curve.learn(two.log_odds(f), second, weight), f);
        two.update(links::clip_score(f), second, weight);
        return before;
    }

    // f, p: (classes,), not one array. The class of the largest score gets the probability that the curve says, the others
    // share the rest, and none overtakes it.
    void probability(const double* f, int classes, double* p) const {
        for (int k = 0; k < classes; ++k)
            if (std::isnan(f[k]) || f[k] == std::numeric_limits<double>::infinity()) {
                std::fill_n(p, classes, std::numeric_limits<double>::quiet_NaN());  // a model that diverged
                return;
            }
        many.probability(f, classes, p);
        correct(p, classes, top(f, classes));
    }
    // q: room for (classes,)
    void learn(const double* f, int classes, int label, double* q, double weight) {
        const int best = top(f, classes);
        if (label >= 0 && label < classes && std::isfinite(f[label]) && best >= 0) {
            many.probability(f, classes, q);
            const double rest = others(q, classes, best);
            if (rest > 0) curve.learn(log_odds(q[best], rest), label == best, weight);
        }
        many.learn(f, classes, label, q, weight);
    }

    bool sound() const {
        const auto usable = [](const auto& l) {
            return l.forgetting > 0 && l.forgetting <= 1 && l.slope >= links::least_slope &&
                   l.slope <= links::largest_slope && l.slopes > 0 && l.total >= 0 && l.squares >= 0;
        };
        bool fits = usable(two) && usable(many) && two.offsets > 0 && two.slopes * two.offsets > two.mixed * two.mixed;
        for (const double curvature : curve.curvatures) fits = fits && curvature > 0;
        return fits && curve.rises();
    }

    // time passes
    void fade(double factor) { two.fade(factor), many.fade(factor), curve.fade(factor); }

    // A third class has come: f = g_1 - g_0, g_1 = -g_0.
    void widen() {
        many = {two.forgetting, links::clip_slope(two.slope / 2), 4 * two.slopes, two.total, two.squares / 4};
        curve = Curve{};
    }

private:
    static constexpr double barely = 1e-6;

    // the more probable class is the predicted one
    static double agree(double p, double f) {
        return f > 0 ? std::max(p, 0.5 + barely) : f < 0 ? std::min(p, 0.5 - barely) : p;
    }
    static double log_odds(double p, double rest) { return std::log(p) - std::log(rest); }
    static double others(const double* p, int classes, int best) {
        double sum = 0;
        for (int k = 0; k < classes; ++k)
            if (k != best) sum += p[k];
        return sum;
    }
    static int top(const double* f, int classes) {
        int best = -1;
        for (int k = 0; k < classes; ++k)
            if (std::isfinite(f[k]) && (best < 0 || f[k] > f[best])) best = k;
        return best;
    }
    void correct(double* p, int classes, int best) const {
        if (best < 0) return;
        const double rest = others(p, classes, best);
        if (!(rest > 0)) return;
        double second = 0;
        for (int k = 0; k < classes; ++k)
            if (k != best) second = std::max(second, p[k] / rest);
        const double wanted = links::sigmoid(curve.apply(log_odds(p[best], rest)));
        const double chance = std::max(wanted, second / (1.0 + second) + barely);
        for (int k = 0; k < classes; ++k) p[k] *= (1.0 - chance) / rest;
        p[best] = chance;
    }
};

}  // namespace gossamer
