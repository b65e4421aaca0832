// Columns of numbers with gaps: each value scaled by the mean and deviation of the values before it; a gap is the mean.
// West's weighted form of Welford's recurrences for each column, since each has gaps of its own. Skewed columns are scaled
// on the scale of asinh, which is linear below its unit and logarithmic above. A column may start late: however long it has
// had one value, that weighs as a few rows once another comes, or all others would be clipped for long.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace gossamer {

// the most rows that a value counts for which was the only one
constexpr double kConstantRows = 16.0;

struct NumberColumns {
    int columns = 0;
    const double* clips = nullptr;         // (columns,): 0 leaves a column as it is, else the largest scaled value
    const double* units = nullptr;         // (columns,): if positive, a scaled value x is asinh(x / unit) first
    const std::int64_t* places = nullptr;  // (columns,): where the value goes in a row of the output
    const std::int64_t* marks = nullptr;   // (columns,): where the indicator of a gap goes; -1 for none
    double *weight = nullptr, *mean = nullptr, *squares = nullptr;  // (columns,): the statistics
};

// x: (rows, columns), NaN for a gap; out: (rows, width); keeps: what the past keeps at each row, or null for `keep`.
inline void encode_numbers(const NumberColumns& c, const double* x, double* out, std::int64_t rows, std::int64_t width,
                           bool learn, double keep, const double* keeps) {
    for (std::int64_t t = 0; t < rows; ++t, x += c.columns, out += width) {
        const double now = keeps ? keeps[t] : keep;
        for (int j = 0; j < c.columns; ++j) {
            const bool gap = std::isnan(x[j]), scaled = c.clips[j] > 0.0, skewed = scaled && c.units[j] > 0.0;
            const double weight = c.weight[j], mean = c.mean[j], value = skewed ? std::asinh(x[j] / c.units[j]) : x[j];
            double shown = gap ? mean : value;
            if (scaled) {
                // n values lie within sqrt(n) deviations of their mean: so does the next, whatever it is
                const double deviation = weight > 0.0 ? std::sqrt(c.squares[j] / weight) : 0.0;
                const double most = std::min(c.clips[j], std::sqrt(weight));
                shown = deviation > 0.0 ? std::clamp((shown - mean) / deviation, -most, most) : 0.0;
            }
            out[c.places[j]] = shown;
            if (gap && c.marks[j] >= 0) out[c.marks[j]] = 1.0;
            if (!learn) continue;
            const bool starts = scaled && !gap && c.squares[j] == 0.0 && value != mean;
            c.weight[j] = now * (starts ? std::min(weight, kConstantRows) : weight) + (gap ? 0.0 : 1.0);
            if (gap) {
                c.squares[j] = now * c.squares[j];
                continue;
            }
            const double away = value - mean, gain = 1.0 / c.weight[j];
            const double moved = mean + away * gain;
            if (std::isfinite(moved)) c.mean[j] = moved;  // two numbers at the ends of all floats are too far apart
            if (!scaled) continue;
            c.squares[j] = now * c.squares[j] + away * away * (1.0 - gain);
        }
    }
}

}  // namespace gossamer
