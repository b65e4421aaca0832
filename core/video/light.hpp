// Global light: the gain of a frame over a slowly moving reference, as a plane of log gains for every channel.
//
// The frame is averaged over the cells of a coarse grid. With the log ratios l of cell means to their reference,
//   log gain (x, y) = a + b x + c y,   x, y in [-1, 1],
// is fitted by weighted least squares whose weights 1 / (1 + (residual / s)^2) leave out what moves, s shrinking from
// wide to narrow. A gain within the dead zone everywhere counts as 1.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace gossamer {

typedef std::array<double, 3> Plane;

struct Light {
    static constexpr int columns = 40, lines = 30, points = 4;  // cells, and pixels along a side of a cell

    int height = 0, width = 0, channels = 0;
    static constexpr double dead = 0.03;   // a smaller log gain counts as none
    static constexpr double planar = 0.2;  // a larger one is a plane, between them it is even
    static constexpr double pace = 0.01;   // weight of a frame in the reference
    std::vector<float> reference, now;     // [channel][cell]
    std::vector<std::uint8_t>
        busy;                     // cells where the last mask had foreground: left out of the fit and of the reference
    std::array<Plane, 3> gain{};  // of the last frame over the reference
    bool changed = false;         // whether it is to be compensated

    Light() = default;
    Light(int h, int w, int ch)
        : height(h), width(w), channels(ch), now(static_cast<std::size_t>(ch) * cells()),
          busy(static_cast<std::size_t>(cells())) {}

    int across() const { return std::min(columns, width); }
    int down() const { return std::min(lines, height); }
    int cells() const { return across() * down(); }

    // pixel (y, x) at frame + y * stride + x * channels
    void measure(const std::uint8_t* frame, std::ptrdiff_t stride) {
        average(frame, stride);
        if (reference.empty()) reference = now;
        double largest = 0;
        for (int c = 0; c < channels; ++c) {
            gain[c] = fit(c);
            largest = std::max(largest, std::fabs(gain[c][0]) + std::fabs(gain[c][1]) + std::fabs(gain[c][2]));
        }
        changed = largest > dead;
        if (!changed) gain = {};
    }

    // the reference follows the compensated frame: where the mask is free, or all of it at once if `lost`
    void follow(const std::uint8_t* mask, bool lost) {
        const int n = cells(), w = across();
        each_cell([&](int cell, int y0, int y1, int sy, int x0, int x1, int sx) {
            std::uint8_t any = 0;
            for (int y = y0; y < y1; y += sy)
                for (int x = x0; x < x1; x += sx) any |= mask[static_cast<std::size_t>(y) * width + x];
            busy[cell] = any != 0;
        });
        for (int c = 0; c < channels; ++c)
            for (int cell = 0; cell < n; ++cell) {
                if (busy[cell] && !lost) continue;
                const int i = c * n + cell;
                const double lit = now[i] * (changed ? std::exp(-at(c, cell % w, cell / w)) : 1.0);
                reference[i] += static_cast<float>((lost ? 1.0 : pace) * (lit - reference[i]));
            }
    }

private:
    static double place(int k, int count) { return count > 1 ? 2.0 * k / (count - 1) - 1.0 : 0.0; }
    double at(int c, int k, int j) const {
        return gain[c][0] + gain[c][1] * place(k, across()) + gain[c][2] * place(j, down());
    }

    template <class F> void each_cell(F&& f) const {
        const int w = across(), h = down();
        for (int j = 0; j < h; ++j)
            for (int k = 0; k < w; ++k) {
                const int y0 = j * height / h, y1 = (j + 1) * height / h, x0 = k * width / w, x1 = (k + 1) * width / w;
                f(j * w + k, y0, y1, std::max(1, (y1 - y0) / points), x0, x1, std::max(1, (x1 - x0) / points));
            }
    }

    void average(const std::uint8_t* frame, std::ptrdiff_t stride) {
        const int n = cells();
        each_cell([&](int cell, int y0, int y1, int sy, int x0, int x1, int sx) {
            int sums[3] = {}, count = 0;
            for (int y = y0; y < y1; y += sy)
                for (int x = x0; x < x1; x += sx, ++count)
                    for (int c = 0; c < channels; ++c) sums[c] += frame[y * stride + x * channels + c];
            for (int c = 0; c < channels; ++c)
                now[c * n + cell] = static_cast<float>(sums[c]) / static_cast<float>(count);
        });
    }

    Plane fit(int c) const {
        const int n = cells(), w = across(), h = down();
        const bool enough = 4 * std::count(busy.begin(), busy.end(), 0) >= n;  // else fit all cells
        std::vector<float> ratios;
        std::vector<int> places;
        for (int i = 0; i < n; ++i) {
            const float a = now[c * n + i], b = reference[c * n + i];
            if (a < 8 || b < 8 || a > 250 || b > 250 || (enough && busy[i])) continue;  // black, saturated or covered
            ratios.push_back(std::log(a / b));
            places.push_back(i);
        }
        if (ratios.size() < 16) return {};
        std::vector<float> sorted = ratios;
        const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
        std::nth_element(sorted.begin(), middle, sorted.end());
        Plane p{*middle, 0, 0};
        if (std::fabs(*middle) < planar) return p;
        for (const double s : {0.3, 0.2, 0.1, 0.05, 0.05, 0.05}) {
            double m[3][4] = {};
            for (std::size_t i = 0; i < ratios.size(); ++i) {
                const double x = place(places[i] % w, w), y = place(places[i] / w, h);
                const double r = (ratios[i] - p[0] - p[1] * x - p[2] * y) / s, weight = 1 / (1 + r * r);
                const double row[4] = {1, x, y, ratios[i]};
                for (int a = 0; a < 3; ++a)
                    for (int b = 0; b < 4; ++b) m[a][b] += weight * weight * row[a] * row[b];
            }
            for (int a = 1; a < 3; ++a) m[a][a] += 0.02 * m[0][0];  // shrinks slopes that the data hardly support
            for (int a = 0; a < 3; ++a)
                for (int b = 0; b < 3; ++b) {
                    if (a == b) continue;
                    const double q = m[b][a] / m[a][a];
                    for (int k = a; k < 4; ++k) m[b][k] -= q * m[a][k];
                }
            for (int a = 0; a < 3; ++a) p[a] = m[a][3] / m[a][a];
        }
        return p;
    }
};

}  // namespace gossamer
