// The twins of multiclass.py: losses of a score per class. ALGORITHMS 2.6 and 2.7.
#pragma once
#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "parts/losses.hpp"

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

// Whether the scores can be compared with that of y: a model that has diverged has no step to make.
inline bool apart(const double* f, double keep, int n, int y) {
    for (int j = 0; j < n; ++j)
        if (!std::isfinite(keep * f[j] - keep * f[y])) return false;
    return true;
}

// max_j (Delta(y, j) + f_j) - f_y, Delta(y, y) = 0 (Cheng et al. 2006, equation (17))
struct Structured : Fixed {
    static constexpr Target target = Target::label;
    int classes = 0;         // given in advance; 0: as they come
    Numbers cost;            // classes x classes; empty: every mistake costs `level`
    Numbers labels;          // label kernel; empty: the identity
    bool runner_up = false;  // the paper's step instead of the exact one
    mutable std::vector<int> order;
    mutable Numbers pi, gradient;

    double delta(int y, int j) const { return j == y ? 0.0 : cost.empty() ? level : cost[y * classes + j]; }
    double label(int n, int a, int b) const { return labels.empty() ? (a == b ? 1.0 : 0.0) : labels[a * n + b]; }

    int rival(const double* f, int n, int y) const {
        int best = -1;
        for (int j = 0; j < n; ++j)
            if (j != y && (best < 0 || delta(y, j) + f[j] > delta(y, best) + f[best])) best = j;
        return best;
    }

    void slope(const double* f, int n, int y, double* out) const {
        std::fill_n(out, n, 0.0);
        const int other = rival(f, n, y);
        if (other < 0 || delta(y, other) + f[other] - f[y] < 0) return;
        out[y] = -1;
        out[other] = 1;
    }

    void curvature(const double*, int n, int, const double*, double* out) const { std::fill_n(out, n, 0.0); }

    // f: the scores; keep: the decay of this step; kappa: k(x, x); weight: c
    void implicit(const double* f, double keep, int n, int y, double kappa, double weight, double* out) const {
        std::fill_n(out, n, 0.0);
        if (n < 2 || !apart(f, keep, n, y)) return;
        if (runner_up)
            clipped(f, keep, n, y, kappa, weight, out);
        else if (labels.empty())
            simplex(f, keep, n, y, kappa, weight, out);
        else
            pairwise(f, keep, n, y, kappa, weight, out);
    }

private:
    void clipped(const double* f, double keep, int n, int y, double kappa, double weight, double* out) const {
        const int other = rival(f, n, y);
        const double d = kappa * (label(n, y, y) + label(n, other, other) - 2 * label(n, y, other));
        if (!(d > 0)) return;
        const double a = clip((delta(y, other) + keep * f[other] - keep * f[y]) / d, 0.0, weight);
        out[y] = a;
        out[other] = -a;
    }

    // the projection onto a simplex, in a form without c * kappa where it could swamp the scores
    void simplex(const double* f, double keep, int n, int y, double kappa, double weight, double* out) const {
        const auto u = [&](int j) { return keep * f[j] + delta(y, j); };
        order.resize(n);
        std::iota(order.begin(), order.end(), 0);
        order.erase(order.begin() + y);
        std::sort(order.begin(), order.end(), [&](int a, int b) { return u(a) > u(b); });
        if (u(order[0]) <= u(y)) return;
        double theta = u(y), sum = u(y);
        for (int k = 0; k < n - 1 && u(order[k]) > theta; ++k) {
            sum += u(order[k]);
            theta = sum / (k + 2);
        }
        if ((theta - u(y)) / kappa <= weight) {
            for (int j : order) {
                const double w = std::max(0.0, u(j) - theta) / kappa;
                out[j] = -w;
                out[y] += w;
            }
            return;
        }
        // the right class has all it can get; the k highest others share it, each beside its mean
        double mean = 0;
        int k = 0;
        for (; k < n - 1; ++k) {
            const double next = mean + (u(order[k]) - mean) / (k + 1);
            if (k > 0 && u(order[k]) <= mean - weight * kappa / k) break;
            mean = next;
        }
        for (int i = 0; i < k; ++i) out[order[i]] = -std::max(0.0, weight / k + (u(order[i]) - mean) / kappa);
        out[y] = weight;
    }

    // pairwise ascent on the dual for any label kernel
    void pairwise(const double* f, double keep, int n, int y, double kappa, double weight, double* out) const {
        pi.assign(n, 0.0);
        gradient.resize(n);
        pi[y] = 1;
        double size = 1;
        for (int j = 0; j < n; ++j) {
            gradient[j] = delta(y, j) + keep * f[j];
            size = std::max(size, std::abs(gradient[j]));
        }
        for (int round = 0; round < 20000 * n; ++round) {
            int up = 0, down = -1;
            for (int j = 0; j < n; ++j) {
                if (gradient[j] > gradient[up]) up = j;
                if (pi[j] > 0 && (down < 0 || gradient[j] < gradient[down])) down = j;
            }
            const double gap = gradient[up] - gradient[down];
            if (gap <= 1e-13 * size) break;
            const double d =
                weight * kappa * (label(n, up, up) + label(n, down, down) - 2 * label(n, up, down));
            const double step = d > 0 ? std::min(pi[down], gap / d) : pi[down];
            pi[up] += step;
            pi[down] = step == pi[down] ? 0.0 : pi[down] - step;
            for (int j = 0; j < n; ++j)
                gradient[j] -= weight * kappa * step * (label(n, j, up) - label(n, j, down));
        }
        double sum = 0;
        for (int j = 0; j < n; ++j) {
            if (j == y) continue;
            out[j] = -weight * pi[j];
            sum += pi[j];
        }
        out[y] = weight * sum;
    }
};

// log sum_j exp f_j - f_y, for independent classes
struct Softmax : Fixed {
    static constexpr Target target = Target::label;
    int classes = 0;

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

    // With q = c kappa and w_j = -kappa a_j: w_j = omega(p_j - p_y + shift) for j != y, W their sum, and the shift where
    // shift + W - ln(q - W) = 0; the left side rises with the shift.
    void implicit(const double* f, double keep, int n, int y, double kappa, double weight, double* out) const {
        std::fill_n(out, n, 0.0);
        if (n < 2 || !apart(f, keep, n, y)) return;
        const double q = weight * kappa;
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

using Loss = std::variant<Hinge, SquaredHinge, Logistic, Squared, EpsilonInsensitive, Huber, Pinball, Novelty, Structured,
                          Softmax>;

inline Loss make_loss(const std::string& name, const Numbers& numbers) {
    const auto at = [&](std::size_t i, double otherwise) { return i < numbers.size() ? numbers[i] : otherwise; };
    const auto filled = [&](auto loss) {
        loss.level = at(0, 0.0);
        loss.nu = at(1, NAN);
        return loss;
    };
    if (name == "hinge") return filled(Hinge{});
    if (name == "squared_hinge") return filled(SquaredHinge{});
    if (name == "logistic") return filled(Logistic{});
    if (name == "squared") return filled(Squared{});
    if (name == "epsilon_insensitive") return filled(EpsilonInsensitive{});
    if (name == "huber") {
        Huber loss = filled(Huber{});
        loss.standard = at(2, 0.0) != 0;
        loss.by_gradient = at(3, 0.0) != 0;
        return loss;
    }
    if (name == "pinball") return filled(Pinball{});
    if (name == "novelty") return filled(Novelty{});
    if (name == "softmax") {
        Softmax loss;
        loss.classes = static_cast<int>(numbers.at(0));
        return loss;
    }
    if (name == "structured") {  // margin, runner_up, classes, whether there is a cost and a label matrix, and those
        Structured loss;
        loss.level = numbers.at(0);
        loss.runner_up = numbers.at(1) != 0;
        loss.classes = static_cast<int>(numbers.at(2));
        const std::size_t square = static_cast<std::size_t>(loss.classes) * loss.classes;
        const bool has_cost = numbers.at(3) != 0, has_labels = numbers.at(4) != 0;
        if (numbers.size() != 5 + square * (has_cost + has_labels))
            throw std::invalid_argument("the core got a cost or label matrix of the wrong size");
        if (has_cost) loss.cost.assign(numbers.begin() + 5, numbers.begin() + 5 + square);
        if (has_labels) loss.labels.assign(numbers.end() - square, numbers.end());
        return loss;
    }
    throw std::invalid_argument("the core has no loss '" + name + "'");
}

}  // namespace gossamer
