// How sure a model is, learned from its scores, each before its target was used: probabilities of classes, and thresholds
// of scores that hold the coverage asked for. The twin of `Certainty` (certainty/conformal.py), where the formulas are.
#pragma once
#include <array>
#include <cmath>
#include <limits>

#include "certainty/calibration.hpp"
#include "certainty/sketch.hpp"

namespace gossamer {

// Adaptive conformal inference (Gibbs and Candes 2021) for a few coverages at once. A value is how strange a row was.
struct Conformal {
    static constexpr int levels = 5;
    static constexpr std::array<double, levels> missed = {0.5, 0.2, 0.1, 0.05, 0.01};  // the share asked for
    static constexpr double step = 0.1;                                                // of that share, at a row

    std::array<double, levels> alphas = missed;
    Sketch sketch;

    template <class S, class F> static void each(S& s, F&& f) {
        for (auto& alpha : s.alphas) f("alpha", alpha);
        Sketch::each(s.sketch, f);
    }

    // share: of the values before that were less strange
    void learn(double share, double value, double weight) {
        if (sketch.total > 0)
            for (int k = 0; k < levels; ++k)
                alphas[k] += step * missed[k] * (missed[k] - (share > 1.0 - alphas[k] ? 1.0 : 0.0));
        sketch.add(value, weight);
    }
};

struct Certainty {
    // log_odds: classes whose scores are log-odds, or logarithms of probabilities, of a model that calibrates itself
    enum class Task { classes, log_odds, real, novelty };

    Task task = Task::classes;
    Calibration calibration;  // of classes
    Conformal conformal;      // of 1 - p of the class that came, |y - f|, or the score of a detector, low ones strange

    template <class S, class F> static void each(S& s, F&& f) {
        if (s.task == Task::classes) Calibration::each(s.calibration, f);
        Conformal::each(s.conformal, f);
    }

    // The share of misses that stands for the one asked for now: between those that are followed, in proportion.
    double alpha(double missed) const {
        const auto& at = Conformal::missed;
        const auto ratio = [&](int k) { return conformal.alphas[k] / at[k]; };
        if (missed >= at[0]) return missed * ratio(0);
        for (int k = 1; k < Conformal::levels; ++k)
            if (missed >= at[k]) {
                if (missed == at[k]) return conformal.alphas[k];
                const double share = (missed - at[k]) / (at[k - 1] - at[k]);
                return missed * (share * ratio(k - 1) + (1.0 - share) * ratio(k));
            }
        return missed * ratio(Conformal::levels - 1);
    }
    // The value beyond which a row is strange, for a share of misses; of a detector below which. Infinite while nothing is
    // known, or after too many misses: everything is covered then.
    double threshold(double missed) const {
        const double a = alpha(missed);
        if (task != Task::novelty) return conformal.sketch.quantile(1.0 - a);
        return conformal.sketch.total > 0 ? conformal.sketch.quantile(a) : -std::numeric_limits<double>::infinity();
    }

    // the probability of the second class
    double probability(double f) const {
        return task == Task::log_odds ? links::sigmoid(f) : calibration.probability(f);
    }
    // f, p: (classes,)
    void probability(const double* f, int classes, double* p) const {
        if (task != Task::log_odds) return calibration.probability(f, classes, p);
        double top = -std::numeric_limits<double>::infinity(), sum = 0;
        for (int k = 0; k < classes; ++k) top = std::max(top, f[k]);
        for (int k = 0; k < classes; ++k) sum += p[k] = f[k] == top ? 1.0 : std::exp(f[k] - top);
        for (int k = 0; k < classes; ++k) p[k] /= sum;
    }

    // Time passes: what was learned counts less by a factor.
    void fade(double factor) {
        if (factor == 1) return;
        calibration.fade(factor);
        conformal.sketch.fade(factor);
    }

    void learn_two(double f, bool second, double weight) {
        if (!std::isfinite(f) || weight == 0) return;
        const double p = task == Task::log_odds ? links::sigmoid(f) : calibration.learn(f, second, weight);
        const double strange = second ? 1.0 - p : p;
        conformal.learn(conformal.sketch.below(strange), strange, weight);
    }
    // q: room for two rows of classes
    void learn_many(const double* f, int classes, int label, double* q, double weight) {
        if (weight == 0) return;
        for (int k = 0; k < classes; ++k)
            if (std::isnan(f[k]) || f[k] == std::numeric_limits<double>::infinity()) return;
        if (label >= 0 && label < classes && std::isfinite(f[label])) {
            probability(f, classes, q);
            const double strange = 1.0 - q[label];
            conformal.learn(conformal.sketch.below(strange), strange, weight);
        }
        if (task == Task::classes) calibration.learn(f, classes, label, q, weight);
    }
    // residual: y - f, in units of the deviation if the model has one
    void learn_real(double residual, double weight) {
        const double strange = std::abs(residual);
        if (!std::isfinite(strange) || weight == 0) return;
        conformal.learn(conformal.sketch.below(strange), strange, weight);
    }
    void learn_novelty(double f, double weight) {
        if (!std::isfinite(f) || weight == 0) return;
        conformal.learn(1.0 - conformal.sketch.below(f), f, weight);
    }
    // Whether numbers from outside are ones that learning can make.
    bool sound() const {
        bool fits = true;
        each(*this, [&](const char*, const double& field) { fits = fits && std::isfinite(field); });
        const Sketch& s = conformal.sketch;
        fits = fits && s.octave == std::floor(s.octave) && std::abs(s.octave) < 1100 && s.gain >= 1 &&
               s.gain <= 2 * Sketch::largest_gain && s.total >= 0;
        for (const double weight : s.weights) fits = fits && weight >= 0;
        for (const double alpha : conformal.alphas) fits = fits && alpha >= -1 && alpha <= 2;
        return fits && (task != Task::classes || calibration.sound());
    }
    // The share m of alarms at which a row with this score is just about to raise one: small for a strange row.
    double p_value(double f) const {
        const Sketch& sketch = conformal.sketch;
        const double share = sketch.below(f), least = 1.0 / (sketch.count() + 1.0);
        if (share <= 0 && sketch.total > 0) {  // below all that came: the farther the smaller
            const double low = sketch.lowest();
            return least * std::max(1e-9, std::min(1.0, low > 0 ? f / low : 1.0));
        }
        double m = 0, alpha = 0;
        for (int k = Conformal::levels; k >= 0; --k) {
            const double next = k > 0 ? Conformal::missed[k - 1] : 1.0;
            const double after = std::max(alpha, k > 0 ? conformal.alphas[k - 1] : 1.0);
            if (share < after || k == 0)
                return std::max(
                    least, std::min(1.0, after > alpha ? m + (next - m) * (share - alpha) / (after - alpha) : 1.0));
            m = next;
            alpha = after;
        }
        return 1.0;
    }
};

}  // namespace gossamer
