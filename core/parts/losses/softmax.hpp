// log sum_j exp f_j - f_y, for independent classes (ALGORITHMS 2.7).
#pragma once
#include "parts/losses/base.hpp"

namespace gossamer {

// w + ln w = z, by two steps of fourth order from a good start
inline double wright_omega(double z) {
    if (z < -40) return std::exp(z);
    double w = z < -1 ? std::exp(z) : z > 1 ? z - std::log(z) : 0.5671 + 0.3619 * z;
    for (int i = 0; i < 6; ++i) {
        const double r = z - w - std::log(w);
        if (r == 0) break;
        const double a = 1 + w, b = a + 2.0 / 3.0 * r;
        const double next = w * (1 + r / a * (a * b - 0.5 * r) / (a * b - r));
        if (std::abs(next - w) <= 1e-9 * next) return next;  // the order is four: next is exact
        w = next > 0 ? next : 0.5 * w;
    }
    return w;
}

struct Softmax : LossBase {
    static constexpr Target target = Target::label;
    int classes = 0;

    static Softmax make(const Numbers& numbers) {
        Softmax loss;
        loss.classes = static_cast<int>(numbers.at(0));
        return loss;
    }

    static void probabilities(const double* f, int n, double* out) {
        const double top = *std::max_element(f, f + n);
        double sum = 0;
        for (int j = 0; j < n; ++j) sum += out[j] = std::exp(f[j] - top);
        for (int j = 0; j < n; ++j) out[j] /= sum;
    }

    void slope(const double* f, int n, int y, double* out) const {
        probabilities(f, n, out);
        double others = 0;
        for (int j = 0; j < n; ++j) others += j == y ? 0.0 : out[j];
        out[y] = -others;
    }

    // (diag(p) - p p') v
    void curvature(const double* f, int n, int, const double* v, double* out) const {
        probabilities(f, n, out);
        double mean = 0;
        for (int j = 0; j < n; ++j) mean += out[j] * v[j];
        for (int j = 0; j < n; ++j) out[j] *= v[j] - mean;
    }

    double stiffness(const double* f, int n, int, const double*) const {
        static thread_local Values p;
        p.resize(n);
        probabilities(f, n, p.data());
        double sum = 0;
        for (double x : p) sum += x * (1 - x);
        return std::max(1e-4, sum / n);
    }

    // With q = c kappa and w_j = -kappa a_j: w_j = omega(p_j - p_y + shift) for j != y, W their sum, and the shift where
    // shift + W - ln(q - W) = 0; the left side rises with the shift.
    void implicit(const double* f, double keep, int n, int y, double kappa, double weight, double* out) const {
        std::fill_n(out, n, 0.0);
        if (n < 2 || !apart(f, keep, n, y)) return;
        const double q = std::min(weight * kappa, 1e300);  // beyond it, its logarithm would have no end
        if (!(q > 1e-300)) {
            Numbers p(n);
            for (int j = 0; j < n; ++j) p[j] = keep * f[j];
            slope(p.data(), n, y, out);
            for (int j = 0; j < n; ++j) out[j] *= -weight;
            return;
        }
        double slope_now = 0;
        const auto excess = [&](double shift) {
            double sum = 0, rises = 0;
            for (int j = 0; j < n; ++j) {
                if (j == y) continue;
                const double w = out[j] = wright_omega(keep * f[j] - keep * f[y] + shift);
                sum += w;
                rises += w / (1 + w);
            }
            slope_now = 1 + rises * (1 + 1 / (q - sum));
            return sum < q ? shift + sum - std::log(q - sum) : INFINITY;
        };
        double high = std::log(q), step = 1;
        while (excess(high - step) > 0) step *= 2;
        double low = high - step, shift = low;
        for (int i = 0; i < 200; ++i) {
            const double residual = excess(shift);
            (residual > 0 ? high : low) = shift;
            const double newton = shift - residual / slope_now;  // -inf where all of q was gone
            const double next = low < newton && newton < high ? newton : 0.5 * (low + high);
            const bool done = std::abs(next - shift) <= 2e-16 * std::abs(next) || next == low || next == high;
            shift = next;
            if (done) break;
        }
        excess(shift);
        double sum = 0;
        for (int j = 0; j < n; ++j) {
            if (j == y) continue;
            out[j] = -out[j] / kappa;
            sum -= out[j];
        }
        out[y] = sum;
    }
};
GOSSAMER_LOSS(Softmax, "softmax")

}  // namespace gossamer
