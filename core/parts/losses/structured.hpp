// max_j (Delta(y, j) + f_j) - f_y, Delta(y, y) = 0 (Cheng et al. 2006, equation (17); ALGORITHMS 2.6).
#pragma once
#include <numeric>
#include <vector>

#include "parts/losses/base.hpp"

namespace gossamer {

struct Structured : LossBase {
    static constexpr Target target = Target::label;
    int classes = 0;         // given in advance; 0: as they come
    Numbers cost;            // classes x classes; empty: every mistake costs `level`
    Numbers labels;          // label kernel; empty: the identity
    bool runner_up = false;  // the paper's step instead of the exact one
    mutable std::vector<int> order;
    mutable Numbers pi, gradient;

    static Structured make(
        const Numbers& numbers) {  // margin, runner_up, classes, has a cost and a label matrix, and those
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
    const Numbers& label_kernel() const { return labels; }

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
        // y rises by its limit; the k highest other classes share the fall, each relative to their mean
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
            const double d = weight * kappa * (label(n, up, up) + label(n, down, down) - 2 * label(n, up, down));
            const double step = d > 0 ? std::min(pi[down], gap / d) : pi[down];
            pi[up] += step;
            pi[down] = step == pi[down] ? 0.0 : pi[down] - step;
            for (int j = 0; j < n; ++j) gradient[j] -= weight * kappa * step * (label(n, j, up) - label(n, j, down));
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
GOSSAMER_LOSS(Structured, "structured")

}  // namespace gossamer
