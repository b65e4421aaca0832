// Stacking: what experts say together, beside their weighted mean. The twin of mixture/stacking.py, where the formulas are.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "certainty/link.hpp"
#include "mixture/opinions.hpp"

namespace gossamer {

struct StackedRows {
    const double* together = nullptr;  // (rows, outputs): the means of what settled experts say
    const double* y = nullptr;         // (rows,); null: predict only
    const double* weights = nullptr;   // (rows,); may be null: all 1
    const double* fades = nullptr;     // (rows,); what time leaves; null: it is forgotten by rows
    int rows = 0, outputs = 1;
    double* out = nullptr;  // (rows, outputs): the scores of the mixture, replaced
};

// theta and its curvature, for d features.
template <int d> struct StackStep {
    static constexpr double keep = 0.9999, precision = 30.0;
    double* theta;      // (d,)
    double* curvature;  // (d, d)

    double along(const double (&x)[d]) const {
        double sum = 0;
        for (int i = 0; i < d; ++i) sum += theta[i] * x[i];
        return sum;
    }
    void shrink(double factor) {
        for (int i = 0; i < d * d; ++i) curvature[i] *= factor;
        for (int i = 0; i < d; ++i) curvature[i * d + i] += (1 - factor) * precision;
    }
    void fade(double factor) {
        if (!(factor < 1)) return;
        double gradient[d], none[d * d] = {};
        for (int i = 0; i < d; ++i) gradient[i] = (1 - factor) * precision * theta[i];
        shrink(factor);
        move(gradient, none);
    }
    // gradient, safe, bend: of this row, its importance included
    void learn(double (&gradient)[d], const double (&safe)[d * d], const double (&bend)[d * d], double factor) {
        for (int i = 0; i < d; ++i) gradient[i] += (1 - factor) * precision * theta[i];
        shrink(factor);
        move(gradient, safe);
        for (int i = 0; i < d * d; ++i) curvature[i] += bend[i];
    }

   private:
    // theta -= (curvature + more)^-1 gradient, by elimination: the matrix is positive definite
    void move(const double (&gradient)[d], const double (&more)[d * d]) {
        double a[d][d], b[d];
        for (int i = 0; i < d; ++i) {
            b[i] = gradient[i];
            for (int j = 0; j < d; ++j) a[i][j] = curvature[i * d + j] + more[i * d + j];
        }
        for (int k = 0; k < d; ++k)
            for (int i = k + 1; i < d; ++i) {
                const double factor = a[i][k] / a[k][k];
                for (int j = k + 1; j < d; ++j) a[i][j] -= factor * a[k][j];
                b[i] -= factor * b[k];
            }
        for (int i = d - 1; i >= 0; --i) {
            for (int j = i + 1; j < d; ++j) b[i] -= a[i][j] * b[j];
            b[i] /= a[i][i];
            theta[i] -= b[i];
        }
    }
};

// The weight of the stack after a row: two experts with a fixed share.
inline double follow_stack(double weight, double own, double mixed, double importance, double share) {
    const double gain = importance * (std::log(own) - std::log(mixed));
    const double gained = weight * std::exp(std::min(700.0, std::max(-700.0, gain)));
    return (1 - share) * (gained / (gained + 1 - weight)) + share / 2;
}

// Two classes. numbers: the weight, theta (3,), the curvature (3, 3).
struct SignStack {
    static constexpr int features = 3;

    static void run(const StackedRows& m, double* numbers, double share) {
        StackStep<3> step{numbers + 1, numbers + 4};
        for (int t = 0; t < m.rows; ++t) {
            const double z = m.out[t], x[3] = {z, m.together[t], 1.0};
            const double u = z + step.along(x), p = links::sigmoid(u), mixed = links::sigmoid(z);
            const double own = least_probability + (1 - 2 * least_probability) * p;
            const double both = numbers[0] * own + (1 - numbers[0]) * mixed;
            m.out[t] = std::log(both) - std::log1p(-both);
            if (m.y == nullptr) continue;
            const double c = m.weights == nullptr ? 1.0 : m.weights[t];
            if (!(c > 0)) {
                if (m.fades != nullptr) step.fade(m.fades[t]);
                continue;
            }
            const bool second = m.y[t] > 0;
            numbers[0] = follow_stack(numbers[0], second ? own : 1 - own, second ? mixed : 1 - mixed, c, share);
            const double error = c * (p - (second ? 1.0 : 0.0)), high = c * links::safe_curvature(u, p);
            const double low = c * p * (1 - p);
            double gradient[3], safe[9], bend[9];
            for (int i = 0; i < 3; ++i) {
                gradient[i] = error * x[i];
                for (int j = 0; j < 3; ++j) safe[i * 3 + j] = high * (x[i] * x[j]), bend[i * 3 + j] = low * (x[i] * x[j]);
            }
            step.learn(gradient, safe, bend, m.fades == nullptr ? StackStep<3>::keep : m.fades[t]);
        }
    }
};

// Many classes. numbers: the weight, theta (2,), the curvature (2, 2).
struct ClassStack {
    static constexpr int features = 2;

    static void run(const StackedRows& m, double* numbers, double share) {
        StackStep<2> step{numbers + 1, numbers + 3};
        std::vector<double> z(m.outputs), p(m.outputs);
        for (int t = 0; t < m.rows; ++t) {
            double* out = m.out + static_cast<std::ptrdiff_t>(t) * m.outputs;
            const double* together = m.together + static_cast<std::ptrdiff_t>(t) * m.outputs;
            int known = 0;
            double top = -std::numeric_limits<double>::infinity(), sum = 0;
            for (int k = 0; k < m.outputs; ++k) {
                z[k] = out[k];
                if (!std::isfinite(z[k])) continue;
                ++known;
                p[k] = z[k] + step.along({z[k], together[k]});
                top = std::max(top, p[k]);
            }
            for (int k = 0; k < m.outputs; ++k)
                if (std::isfinite(z[k])) sum += p[k] = std::exp(p[k] - top);
            const int label = m.y == nullptr ? 0 : static_cast<int>(m.y[t]);
            double likely_own = 0, likely_mixed = 0;
            for (int k = 0; k < m.outputs; ++k) {
                if (!std::isfinite(z[k])) continue;
                p[k] /= sum;
                const double own = least_probability / known + (1 - least_probability) * p[k], mixed = std::exp(z[k]);
                out[k] = std::log(numbers[0] * own + (1 - numbers[0]) * mixed);
                if (k == label) likely_own = own, likely_mixed = mixed;
            }
            if (m.y == nullptr) continue;
            const double c = m.weights == nullptr ? 1.0 : m.weights[t];
            if (!(c > 0) || !std::isfinite(z[label])) {
                if (m.fades != nullptr) step.fade(m.fades[t]);
                continue;
            }
            numbers[0] = follow_stack(numbers[0], likely_own, likely_mixed, c, share);
            learn(step, z.data(), together, p.data(), m.outputs, known, label, c,
                  m.fades == nullptr ? StackStep<2>::keep : m.fades[t]);
        }
    }

   private:
    static void learn(StackStep<2>& step, const double* z, const double* together, const double* p, int outputs,
                      int known, int label, double c, double factor) {
        double gradient[2] = {}, middle[2] = {}, mean[2] = {}, safe[4] = {}, bend[4] = {};
        for (int k = 0; k < outputs; ++k) {
            if (!std::isfinite(z[k])) continue;
            const double x[2] = {z[k], together[k]}, error = c * (p[k] - (k == label ? 1.0 : 0.0));
            for (int i = 0; i < 2; ++i) {
                gradient[i] += error * x[i];
                middle[i] += x[i] / known;
                mean[i] += p[k] * x[i];
            }
        }
        for (int k = 0; k < outputs; ++k) {
            if (!std::isfinite(z[k])) continue;
            const double x[2] = {z[k], together[k]};
            for (int i = 0; i < 2; ++i)
                for (int j = 0; j < 2; ++j) {
                    safe[i * 2 + j] += 0.5 * c * ((x[i] - middle[i]) * (x[j] - middle[j]));
                    bend[i * 2 + j] += c * p[k] * ((x[i] - mean[i]) * (x[j] - mean[j]));
                }
        }
        step.learn(gradient, safe, bend, factor);
    }
};

}  // namespace gossamer
