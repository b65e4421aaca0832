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
    static constexpr double step = 0.1, step_novelty = 0.3;                            // of that share, at a row

    std::array<double, levels> alphas = missed;
    Sketch sketch;

    template <class S, class F> static void each(S& s, F&& f) {
        for (auto& alpha : s.alphas) f("alpha", alpha);
        Sketch::each(s.sketch, f);
    }

    void learn(double value, double weight, double size = step) {
        if (sketch.total > 0) {
            Alphas now(alphas, size);
            now.follow(sketch.weight_below(value), sketch.total);
            now.copy(alphas);
        }
        sketch.add(value, weight);
    }
    // The same for some values of weight 1, with what changes in registers.
    [[gnu::noinline]] void learn(const double* values, int rows) {
        for (int t = 0; t < rows; ++t) {
            Alphas now(alphas, step);
            const double per_first = sketch.per_first();
            double total = sketch.total, gain = sketch.gain;
            for (int bin; t < rows && total > 0 && gain < 0.5 * Sketch::largest_gain; ++t) {
                if ((bin = sketch.settled_bin(values[t], total)) < 0) break;
                now.follow(sketch.weight_below(values[t], bin, total, per_first), total);
                sketch.add_to(bin, gain);
                total += gain;
                gain *= Sketch::growth;
            }
            sketch.total = total;
            sketch.gain = gain;
            now.copy(alphas);
            if (t < rows) learn(values[t], 1.0);
        }
    }

private:
    // All alphas, two to a register, and no branch, which would be taken at random.
    struct Alphas {
        static constexpr int pairs = (levels + 1) / 2;
        Duo alphas[pairs], up[pairs], down[pairs];  // after a row inside, after a miss

        Alphas(const std::array<double, levels>& from, double size) {
            for (int k = 0; k < pairs; ++k) {
                const bool two = 2 * k + 1 < levels;
                const Duo wanted = {missed[2 * k], two ? missed[2 * k + two] : 0.0};
                alphas[k] = Duo{from[2 * k], two ? from[2 * k + two] : 0.0};
                up[k] = size * wanted * wanted;
                down[k] = size * wanted * (wanted - 1.0);
            }
        }
        void follow(double below, double total) {
            for (int k = 0; k < pairs; ++k)
                alphas[k] += Duo{below, below} > (1.0 - alphas[k]) * total ? down[k] : up[k];
        }
        void copy(std::array<double, levels>& to) const {
            for (int k = 0; k < levels; ++k) to[k] = alphas[k / 2][k % 2];
        }
    };
};

// Where the scores of a detector lie, which move while it learns: their mean and mean deviation, of about 200 rows.
struct Usual {
    static constexpr double rate = 0.005, largest = 1e12;
    double mean = 0, deviation = 0, rows = 0;

    template <class S, class F> static void each(S& s, F&& f) {
        f("mean", s.mean), f("deviation", s.deviation), f("rows", s.rows);
    }
    // How strange a score is: how far below the mean, in deviations.
    double strangeness(double f) const {
        if (!(deviation > 0)) return f < mean ? largest : 0.0;
        return std::min(largest, std::max(0.0, (mean - f) / deviation));
    }
    void learn(double f, double weight) {
        if (!(rows > 0)) mean = f;
        rows += weight;
        const double share = std::min(1.0, std::max(rate * weight, weight / rows)), away = f - mean;
        mean += share * away;
        deviation += share * (std::abs(away) - deviation);
    }
};

struct Certainty {
    // log_odds: classes whose scores are log-odds, or logarithms of probabilities, of a model that calibrates itself
    enum class Task { classes, log_odds, real, novelty };

    Task task = Task::classes;
    Calibration calibration;  // of classes
    Usual usual;              // of a detector
    Conformal conformal;      // of 1 - p of the class that came, |y - f|, or how far a score is below the usual ones

    template <class S, class F> static void each(S& s, F&& f) {
        if (s.task == Task::classes) Calibration::each(s.calibration, f);
        if (s.task == Task::novelty) Usual::each(s.usual, f);
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
        const double strange = conformal.sketch.quantile(1.0 - alpha(missed));
        if (task != Task::novelty || std::isinf(strange)) return task == Task::novelty ? -strange : strange;
        return usual.mean - strange * usual.deviation;
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
        usual.rows *= factor;
        conformal.sketch.fade(factor);
    }

    void learn_two(double f, bool second, double weight) {
        if (!std::isfinite(f) || weight == 0) return;
        const double p = task == Task::log_odds ? links::sigmoid(f) : calibration.learn(f, second, weight);
        const double strange = second ? 1.0 - p : p;
        conformal.learn(strange, weight);
    }
    // Rows of weight 1.
    void learn_two(const double* f, const double* y, int rows) {
        constexpr int span = Calibration::span;
        double strange[span];
        for (int t = 0, more; t < rows; t += more) {
            more = std::min(span, rows - t);
            bool finite = true;
            for (int i = t; i < t + more; ++i) finite = finite & (std::abs(f[i]) <= std::numeric_limits<double>::max());
            if (!finite || task == Task::log_odds) {
                for (int i = t; i < t + more; ++i) learn_two(f[i], y[i] > 0, 1.0);
            } else {
                calibration.learn_span(f + t, y + t, more, strange);
                conformal.learn(strange, more);
            }
        }
    }
    // q: room for two rows of classes
    void learn_many(const double* f, int classes, int label, double* q, double weight) {
        if (weight == 0) return;
        for (int k = 0; k < classes; ++k)
            if (std::isnan(f[k]) || f[k] == std::numeric_limits<double>::infinity()) return;
        const bool known = label >= 0 && label < classes && std::isfinite(f[label]);
        double p = 0;
        if (task == Task::classes) {
            p = calibration.learn(f, classes, label, q, weight);
        } else if (known) {
            probability(f, classes, q);
            p = q[label];
        }
        if (known) conformal.learn(1.0 - p, weight);
    }
    // residual: y - f, in units of the deviation if the model has one
    void learn_real(double residual, double weight) {
        const double strange = std::abs(residual);
        if (!std::isfinite(strange) || weight == 0) return;
        conformal.learn(strange, weight);
    }
    // Rows of weight 1.
    void learn_real(const double* residuals, int rows) {
        constexpr int span = Calibration::span;
        double strange[span];
        for (int t = 0, more; t < rows; t += more) {
            more = std::min(span, rows - t);
            int finite = 0;
            for (int i = t; i < t + more; ++i) {
                strange[finite] = std::abs(residuals[i]);
                finite += strange[finite] <= std::numeric_limits<double>::max();
            }
            conformal.learn(strange, finite);
        }
    }
    void learn_novelty(double f, double weight) {
        if (!std::isfinite(f) || weight == 0) return;
        if (usual.deviation > 0) conformal.learn(usual.strangeness(f), weight, Conformal::step_novelty);
        usual.learn(f, weight);
    }
    // Whether numbers from outside are ones that learning can make.
    bool sound() const {
        bool fits = true;
        each(*this, [&](const char*, const double& field) { fits = fits && std::isfinite(field); });
        fits = fits && conformal.sketch.sound();
        for (const double alpha : conformal.alphas) fits = fits && alpha >= -1 && alpha <= 2;
        return fits && usual.deviation >= 0 && usual.rows >= 0 && (task != Task::classes || calibration.sound());
    }
    // The share m of alarms at which a row with this score is just about to raise one: small for a strange row.
    double p_value(double f) const {
        const Sketch& sketch = conformal.sketch;
        if (!(sketch.total > 0)) return 1.0;
        const double strange = usual.strangeness(f), least = 1.0 / (sketch.count() + 1.0);
        double share = std::max(0.0, 1.0 - sketch.below(strange)), floor = least;
        if (share <= 0) {  // beyond all that came: the farther the smaller
            share = least * std::max(1e-9, std::min(1.0, sketch.highest() / strange));
            floor = 0;
        }
        double m = 0, alpha = 0;
        for (int k = Conformal::levels; k >= 0; --k) {
            const double next = k > 0 ? Conformal::missed[k - 1] : 1.0;
            const double after = std::max(alpha, k > 0 ? conformal.alphas[k - 1] : 1.0);
            if (share < after || k == 0)
                return std::max(
                    floor, std::min(1.0, after > alpha ? m + (next - m) * (share - alpha) / (after - alpha) : 1.0));
            m = next;
            alpha = after;
        }
        return 1.0;
    }
};

}  // namespace gossamer
