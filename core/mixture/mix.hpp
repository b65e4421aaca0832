// Experts mixed by Bayes weights with a fixed share (Herbster and Warmuth 1998), over one block of rows whose scores by every
// expert are known. The twin of mixture/weights.py, where the formulas are.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "mixture/opinions.hpp"

namespace gossamer {

struct MixedRows {
    const double* scores = nullptr;     // (experts, rows, outputs): of each row before it was learned
    const double* variances = nullptr;  // (experts, rows); may be null
    const double* y = nullptr;          // (rows,); null: predict only
    const double* weights = nullptr;    // (rows,); may be null: all 1
    const double* fades = nullptr;      // (rows,); what time leaves of the opinions; null: they forget by rows
    int experts = 0, rows = 0, outputs = 1;
    double* out = nullptr;            // (rows, outputs)
    const double* settled = nullptr;  // (experts,); not 0 for those who are asked what they say together; may be null
    double* together = nullptr;       // (rows, outputs): the mean of what they say; null without them
};

// opinions: (experts, Opinion::numbers), weights, credits: (experts,), all of which go on with the rows.
// share: of the weight that all experts share after each row. keep: the factor of the credits, log-likelihoods less that of
// the mixture, before each row. An expert that holds no opinion of a row is left out of its mean, learns nothing of it, and
// loses weight like one that held the target for impossible.
template <class Opinion>
void mix(const MixedRows& m, double* opinions, double* weights, double* credits, double share, double keep) {
    std::vector<Opinion> own(m.experts);
    for (int e = 0; e < m.experts; ++e) {
        const double* from = opinions + static_cast<std::ptrdiff_t>(e) * Opinion::numbers;
        Opinion::each(own[e], [&](const char*, double& x) { x = *from++; });
    }
    std::vector<double> likelihoods(m.experts), workspace(m.outputs);
    for (int t = 0; t < m.rows; ++t) {
        double* sums = m.out + static_cast<std::ptrdiff_t>(t) * m.outputs;
        std::fill_n(sums, m.outputs, 0.0);
        const double y = m.y == nullptr ? 0.0 : m.y[t], importance = m.weights == nullptr ? 1.0 : m.weights[t];
        double* said = m.together == nullptr ? nullptr : m.together + static_cast<std::ptrdiff_t>(t) * m.outputs;
        if (said != nullptr) std::fill_n(said, m.outputs, 0.0);
        double mixed = 0, heard = 0;
        int voices = 0;
        bool all = true;
        for (int e = 0; e < m.experts; ++e) {
            const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(e) * m.rows + t;
            const Outlook row{m.scores + at * m.outputs, m.variances == nullptr ? 1.0 : m.variances[at], m.outputs,
                              workspace.data()};
            if (!Opinion::holds(row)) {
                likelihoods[e] = 0, all = false;
                continue;
            }
            heard += weights[e];
            const bool speaks = said != nullptr && m.settled[e] != 0;
            voices += speaks;
            likelihoods[e] = own[e].look(row, weights[e], sums, y, speaks ? said : nullptr);
            mixed += weights[e] * likelihoods[e];
            if (m.fades != nullptr) own[e].fade(m.fades[t]);
            if (m.y != nullptr && importance > 0) own[e].learn(row, y, importance);
        }
        for (int k = 0; k < m.outputs && !all; ++k) sums[k] = heard > 0 ? sums[k] / heard : Opinion::nothing(m.outputs);
        Opinion::finish(sums, m.outputs);
        for (int k = 0; k < m.outputs && said != nullptr; ++k) said[k] = voices > 0 ? said[k] / voices : sums[k];
        if (m.y == nullptr || !(importance > 0) || !(mixed > 0)) continue;
        double total = 0;
        for (int e = 0; e < m.experts; ++e) {
            const double gain = std::max(-700.0, importance * std::log(likelihoods[e] / mixed));
            credits[e] = keep * credits[e] + gain;
            weights[e] *= std::exp(std::min(700.0, gain));
            total += weights[e];
        }
        for (int e = 0; e < m.experts; ++e) weights[e] = (1 - share) * (weights[e] / total) + share / m.experts;
    }
    if (m.y == nullptr) return;
    for (int e = 0; e < m.experts; ++e) {
        double* to = opinions + static_cast<std::ptrdiff_t>(e) * Opinion::numbers;
        Opinion::each(own[e], [&](const char*, double& x) { *to++ = x; });
    }
}

}  // namespace gossamer
