// Alarms of a pixel bank that hold a share: adaptive conformal inference (Gibbs and Candes 2021) with one level per pixel.
//
// The evidence of a pixel is s, the shortfall of f averaged over its neighbourhood, in [0, 1]; r = s / its mean over the
// frames before. A sketch keeps the distribution of r over all pixels of about the last 50 frames. A pixel raises an alarm
// if the share of the sketch above r is below its level alpha, which begins at the share asked for and follows
//
//     alpha <- min(most, alpha + step (share - alarm)),    step = 0.3 share.
//
// A level <= 0 raises no alarm, so that in T frames a pixel raises at most share T + 1 + 1 / 0.3 alarms, whatever the frames
// are. A frame whose alarm goes on from the frame before is not counted and not learned here: something is there.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "certainty/sketch.hpp"

namespace gossamer {

class PixelAlarms {
public:
    static constexpr double part = 0.3;         // of the share: the step of a level
    static constexpr double keep = 0.98;        // of the sketch, from frame to frame
    static constexpr float least_rate = 0.01f;  // of the mean of s
    static constexpr float least = 1.0f / 255;  // added to that mean: evidence has 255 levels

    std::vector<float> usual, levels;  // of every pixel: the mean of s, and alpha
    std::vector<std::uint8_t> on;      // whether the frame before raised an alarm
    Sketch sketch;

    // share <= 0: no alarms are held, and nothing is kept
    void clear(int height, int width, double share, int side) {
        const std::size_t n = share > 0 ? static_cast<std::size_t>(height) * width : 0;
        share_ = share;
        unit_ = static_cast<float>(1.0 / (255.0 * side * side));
        most_ = static_cast<float>(std::min(0.5, 10 * share));
        usual.assign(n, 0), levels.assign(n, static_cast<float>(share)), on.assign(n, 0);
        sketch = Sketch();
    }
    bool held() const { return share_ > 0; }

    // Before a frame: the r up to which no level can raise an alarm, and the step of the means.
    void begin(long long frames) {
        easy_ = static_cast<float>(sketch.quantile(1.0 - most_));  // infinite before the second frame
        rate_ = std::max(least_rate, 1.0f / static_cast<float>(frames));
    }

    bool ready() const { return held() && std::isfinite(easy_); }

    bool alarms(std::size_t pixel, std::uint16_t total) const {
        const float r = ratio(pixel, total);
        return r > easy_ && above(r) < levels[pixel];
    }
    // The share of alarms at which a pixel is just about to raise one.
    float p_value(std::size_t pixel, std::uint16_t total) const {
        if (!(sketch.total > 0)) return 1.0f;
        const double tail = above(ratio(pixel, total)), level = levels[pixel];
        if (tail < level) return static_cast<float>(share_ * tail / level);
        return static_cast<float>(share_ + (1.0 - share_) * (tail - level) / (1.0 - level));
    }

    // After the mask of a frame has been made. run(f): f(begin, end, thread) over all rows.
    template <class Run>
    void learn(int height, int width, long long frames, const std::uint16_t* totals, const std::uint8_t* mask,
               Run&& run) {
        if (frames > 1) sample(height, width, frames, totals, mask);  // in the first frame there are no means yet
        run([&](int begin, int end, int) {
            const std::size_t last = static_cast<std::size_t>(end) * width;
            for (std::size_t i = static_cast<std::size_t>(begin) * width; i < last; ++i)
                follow(i, totals[i], mask[i] != 0);
        });
    }

    bool sound() const {
        bool fits = sketch.sound();
        for (const float mean : usual) fits = fits && mean >= 0 && mean <= 1;
        for (const float level : levels) fits = fits && level >= -1 && level <= most_;
        for (const std::uint8_t alarm : on) fits = fits && alarm <= 1;
        return fits;
    }

private:
    void follow(std::size_t pixel, std::uint16_t total, bool alarm) {
        const bool goes_on = alarm && on[pixel];
        on[pixel] = alarm;
        if (goes_on) return;
        const auto step = static_cast<float>(part * share_), share = static_cast<float>(share_);
        levels[pixel] = std::min(most_, levels[pixel] + step * (share - (alarm ? 1.0f : 0.0f)));
        if (!alarm) usual[pixel] += rate_ * (static_cast<float>(total) * unit_ - usual[pixel]);
    }
    // The distribution of r learns the pixels of a grid that moves from frame to frame.
    void sample(int height, int width, long long frames, const std::uint16_t* totals, const std::uint8_t* mask) {
        const auto apart = static_cast<int>(std::sqrt(static_cast<double>(height) * width / 4096));
        const int side = std::max(1, std::min(16, apart)), turn = static_cast<int>(frames % (side * side));
        if (!(sketch.total > 0)) sketch.add(1.0, 1e-9);  // the bins are those around 1
        sketch.fade(keep);
        for (int y = turn / side; y < height; y += side)
            for (int x = turn % side; x < width; x += side) {
                const std::size_t pixel = static_cast<std::size_t>(y) * width + x;
                if (!(on[pixel] && mask[pixel])) sketch.count_in(ratio(pixel, totals[pixel]));
            }
    }

    double share_ = 0;
    float unit_ = 0, most_ = 0, easy_ = 0, rate_ = 0;

    float ratio(std::size_t pixel, std::uint16_t total) const {
        return static_cast<float>(total) * unit_ / (usual[pixel] + least);
    }
    // The share of the distribution above r; beyond all that came, the farther the smaller.
    double above(float r) const {
        const double tail = 1.0 - sketch.below(r), end = sketch.highest();
        return r > end || !(tail > 0) ? end / (static_cast<double>(r) * (sketch.count() + 1.0)) : tail;
    }
};

}  // namespace gossamer
