// The pixel bank: a novelty learner (SILK or truncated NORMA) per pixel, and the mask from its scores. A second loop beside
// engine/loop.hpp, which learns many rows in one model: here each of many models learns one row per frame, and the pixels
// of a tile take their steps together, in vector registers.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <vector>

#include "engine/gate.hpp"
#include "video/alarms.hpp"
#include "video/light.hpp"
#include "engine/threads.hpp"
#include "video/options.hpp"
#include "video/video_tiles.hpp"

namespace gossamer {

class PixelBank {
public:
    // Limits, validated before memory is allocated: the numbers of pixels and slots are ints.
    static constexpr int longest_side = 1 << 16, most_pixels = 1 << 28, most_turns = 1 << 16;

    mutable Gate gate;  // exclusive in all methods but background(): a score needs the buffers too
    int height, width, channels;
    VideoOptions options;
    Light light;
    long long frames = 0;                // learned so far
    std::vector<double> scales;          // of the coefficients, by the turn of the tiles
    std::vector<std::uint8_t> slots;     // the first slots of all tiles, the second ones, ...
    std::vector<std::uint8_t> used;      // slots of every tile
    std::vector<float> margins;          // of every pixel where they adapt, else of one tile
    std::vector<std::uint16_t> spreads;  // lower quartile of the change of every pixel, in 1/256
    std::vector<std::uint8_t> before;    // the features of the frame before
    PixelAlarms alarms;

    PixelBank(int h, int w, int ch, const VideoOptions& o, int threads)
        : height(h), width(w), channels(ch), options(checked(h, w, ch, o)), light(h, w, ch),
          pool_(new Threads(threads)) {
        clear();
    }

    int tiles() const { return (height * width + tile_size - 1) / tile_size; }
    std::size_t pixels() const { return static_cast<std::size_t>(tiles()) * tile_size; }
    std::size_t stride() const { return slot_bytes(channels) * static_cast<std::size_t>(tiles()); }
    std::uint8_t* tile(int t) { return slots.data() + slot_bytes(channels) * static_cast<std::size_t>(t); }
    const std::uint8_t* tile(int t) const { return slots.data() + slot_bytes(channels) * static_cast<std::size_t>(t); }
    bool adapts() const { return options.nu >= 0; }
    bool widens() const { return options.spread > 0; }

    void clear() {
        const std::size_t n = pixels();
        frames = 0;
        scales.assign(static_cast<std::size_t>(options.every), 1.0);
        slots.assign(stride() * static_cast<std::size_t>(options.budget), 0);
        used.assign(static_cast<std::size_t>(tiles()), 0);
        margins.assign(adapts() ? n : tile_size, static_cast<float>(options.margin));
        spreads.assign(widens() ? n : 0, 0);
        before.assign(widens() ? n * channels : 0, 0);
        light = Light(height, width, channels);
        planes_.assign(n * channels, 0);
        back_.assign(options.remembers() ? n * channels : 0, 0);
        deficits_.assign(n, 0);
        alarms.clear(height, width, options.alarms, 2 * options.radius + 1);
    }

    // margin - f of every pixel, without learning
    void score(const std::uint8_t* frame, std::ptrdiff_t stride, float* out) {
        const Light kept = light;
        prepare(frame, stride);
        light = kept;
        pool_->run(tiles(), [&](int begin, int end, int) {
            float gamma[tile_size], f[tile_size];
            for (int t = begin; t < end; ++t) {
                const TileStep in = step_of(t, 0, gamma);
                table_.score(in, tile(t), used[t], false, f);
                const int first = t * tile_size, count = std::min(tile_size, height * width - first);
                for (int i = 0; i < count; ++i) out[first + i] = in.margin[i] - f[i];
            }
        });
    }

    // the mask of a frame (0, 127 shadow, 255), made before it is learned; rate < 0: the options' step, 0: no step at all
    void apply(const std::uint8_t* frame, std::ptrdiff_t stride, double rate, std::uint8_t* mask) {
        const bool frozen = rate == 0, first = frames == 0;
        const Light kept = light;
        prepare(frame, stride);
        double step = rate > 0 ? rate : options.step;
        if (options.warm && rate < 0) step = std::max(step, options.margin / static_cast<double>(frames + 1));
        learn(step, frozen, options.warm && first);
        const double share = decide(mask, !frozen && !first);
        if (options.warm && first) std::fill_n(mask, static_cast<std::size_t>(height) * width, std::uint8_t{0});
        if (frozen) {
            light = kept;
            return;
        }
        const bool lost = !first && share > options.guard;
        if (lost) learn(options.margin, false, true);
        if (options.light) light.follow(mask, lost);
        if (widens()) before.swap(planes_);
        ++frames;
    }

    // the p-value of every pixel, without learning
    void p_values(const std::uint8_t* frame, std::ptrdiff_t stride, float* out) {
        const Light kept = light;
        prepare(frame, stride);
        light = kept;
        learn(0, true, false);
        alarms.begin(frames);
        each_row([&](std::size_t at, const std::uint16_t* total, int) {
            for (int x = 0; x < width; ++x) out[at + x] = alarms.p_value(at + x, total[x]);
        });
    }

    // the support points that weigh most, as pixels
    void background(std::uint8_t* out) const {
        const auto byte = [](int x) { return static_cast<std::uint8_t>(std::min(std::max(x, 0), 255)); };
        for (std::size_t p = 0; p < static_cast<std::size_t>(height) * width; ++p, out += channels) {
            const std::uint8_t* point = tile(static_cast<int>(p / tile_size)) + p % tile_size;
            const int a = point[0];
            if (channels == 1 || !options.chroma) {
                for (int c = 0; c < channels; ++c) out[c] = point[c * tile_size];
                continue;
            }
            const int b = a + (8 * (point[tile_size] - 128)) / 9, r = a + (16 * (point[2 * tile_size] - 128)) / 23;
            out[0] = byte(b), out[1] = byte((256 * a - 29 * b - 77 * r + 75) / 150), out[2] = byte(r);
        }
    }

    // after the state has been restored
    void restored() {
        if (options.remembers()) remember(0, true);
    }

    // the frame as the bank sees it, without learning
    void compensate(const std::uint8_t* frame, std::ptrdiff_t stride, std::uint8_t* out) {
        const Light kept = light;
        prepare(frame, stride);
        light = kept;
        const std::size_t line = static_cast<std::size_t>(width) * channels;
        for (int y = 0; y < height; ++y)
            std::memcpy(out + y * line, lit_.empty() ? frame + y * stride : lit_.data() + y * line, line);
    }

private:
    static const VideoOptions& checked(int h, int w, int ch, const VideoOptions& o) {
        if (h < 1 || w < 1 || h > longest_side || w > longest_side || static_cast<long long>(h) * w > most_pixels)
            throw std::invalid_argument("A PixelBank must have sides in [1, 65536] and at most 2^28 pixels.");
        if (ch != 1 && ch != 3) throw std::invalid_argument("A PixelBank must have pixels of 1 or 3 channels.");
        if (o.budget < 1 || o.budget > 255 || o.every < 1 || o.every > most_turns || o.radius < 0 || o.radius > 7)
            throw std::invalid_argument("The options of a PixelBank must be in their ranges.");
        return o;
    }

    const VideoTiles& table_ = video_tiles();
    std::unique_ptr<Threads> pool_;
    std::vector<std::uint8_t> planes_, back_, deficits_, lit_;
    std::vector<std::uint16_t> sums_, totals_;

    TileStep step_of(int t, double step, float* gamma) {
        TileStep in{};
        in.channels = channels;
        in.budget = options.budget;
        in.implicit = options.implicit;
        in.keep = static_cast<float>(options.keep);
        in.step = static_cast<float>(step);
        in.level_rate = static_cast<float>(options.level_rate);
        in.nu = static_cast<float>(options.nu);
        in.scale = static_cast<float>(scales[t % options.every]);
        in.merge2 = static_cast<float>(options.merge < 0 ? -1.0 : options.merge * options.merge);
        in.features = planes_.data() + static_cast<std::size_t>(t) * tile_size;
        in.plane = pixels();
        in.gamma = gamma;
        in.stride = stride();
        in.known = static_cast<float>(options.known);
        in.cap = static_cast<float>(options.cap);
        in.haste = static_cast<float>(options.haste);
        in.back = back_.data();
        in.first = t * tile_size;
        in.width = width;
        in.height = height;
        in.margin = margins.data() + (adapts() ? static_cast<std::size_t>(t) * tile_size : 0);
        if (widens())
            table_.widths(spreads.data() + static_cast<std::size_t>(t) * tile_size, static_cast<float>(options.width),
                          static_cast<float>(options.spread / 256), static_cast<float>(options.widest), gamma);
        else
            std::fill(gamma, gamma + tile_size, static_cast<float>(0.5 / (options.width * options.width)));
        return in;
    }

    // the features of a frame, its light compensated
    void prepare(const std::uint8_t* frame, std::ptrdiff_t stride) {
        std::vector<float> gains;
        if (options.light) {
            light.measure(frame, stride);
            if (light.changed) gains.resize(static_cast<std::size_t>(width) * channels);
            for (std::size_t i = 0; i < gains.size(); ++i) {
                const int x = static_cast<int>(i) / channels;
                const double place = width > 1 ? 2.0 * x / (width - 1) - 1.0 : 0.0;
                gains[i] = static_cast<float>(std::exp(-light.gain[i % channels][1] * place));
            }
        }
        lit_.resize(gains.empty() ? 0 : static_cast<std::size_t>(height) * width * channels);
        pool_->run(height, [&](int begin, int end, int) {
            for (int y = begin; y < end; ++y) {
                const std::uint8_t* row = frame + y * stride;
                const std::size_t at = static_cast<std::size_t>(y) * width;
                if (!gains.empty()) {
                    float factors[3] = {};
                    const double place = height > 1 ? 2.0 * y / (height - 1) - 1.0 : 0.0;
                    for (int c = 0; c < channels; ++c)
                        factors[c] = static_cast<float>(std::exp(-light.gain[c][0] - light.gain[c][2] * place));
                    std::uint8_t* lit = lit_.data() + at * channels;
                    table_.lighten(row, gains.data(), factors, width, channels, lit);
                    row = lit;
                }
                table_.planes(row, width, channels, options.chroma, planes_.data() + at, pixels());
            }
        });
    }

    // scores of all tiles; the tiles whose turn it is learn (all with `full`, none if `frozen`)
    void learn(double step, bool frozen, bool full) {
        const int turn = static_cast<int>(frames % options.every);
        // while there are few frames the quartile moves in larger steps
        const int move = static_cast<int>(std::max<long long>(32, 1024 * options.every / (frames + options.every)));
        pool_->run(tiles(), [&](int begin, int end, int) {
            float gamma[tile_size], f[tile_size];
            for (int t = begin; t < end; ++t) {
                const std::size_t at = static_cast<std::size_t>(t) * tile_size;
                const bool now = !frozen && (full || t % options.every == turn);
                if (now && widens() && frames > 0)
                    table_.spread(planes_.data() + at, before.data() + at, pixels(), channels, move,
                                  spreads.data() + at);
                const TileStep in = step_of(t, step, gamma);
                if (now)
                    used[t] = static_cast<std::uint8_t>(table_.learn(in, tile(t), used[t], f));
                else
                    table_.score(in, tile(t), used[t], true, f);
                const float* margin = adapts() ? margins.data() + at : margins.data();
                table_.deficits(f, margin, static_cast<float>(options.cap), tile_size, deficits_.data() + at);
            }
        });
        if (frozen) return;
        if (options.remembers()) remember(turn, full);
        for (int phase = 0; phase < options.every; ++phase) {
            if (!full && phase != turn) continue;
            scales[phase] *= options.keep;
            if (scales[phase] < 0x1p-20) fold(phase);
        }
    }

    // the support points that weigh most, once all tiles have learned
    void remember(int turn, bool full) {
        const int every = full ? 1 : options.every;
        for (int t = full ? 0 : turn; t < tiles(); t += every)
            for (int c = 0; c < channels; ++c)
                std::copy_n(tile(t) + c * tile_size, tile_size,
                            back_.data() + c * pixels() + static_cast<std::size_t>(t) * tile_size);
    }

    // fold the scale into the coefficients, by a power of two, which is exact
    void fold(int phase) {
        scales[phase] *= 0x1p20;
        for (int t = phase; t < tiles(); t += options.every)
            for (int s = 0; s < used[t]; ++s) {
                float* coefs = reinterpret_cast<float*>(tile(t) + s * stride() + tile_size * channels);
                for (int i = 0; i < tile_size; ++i) coefs[i] *= 0x1p-20f;
            }
    }

    // f(first pixel, sums, thread) of every row: the sums of the deficits over the neighbourhood of its pixels
    template <class F> void each_row(F&& f) {
        const int r = options.radius, side = 2 * r + 1;
        sums_.resize(static_cast<std::size_t>(height) * width);
        totals_.resize(sums_.size());
        pool_->run(height, [&](int begin, int end, int) {
            for (int y = begin; y < end; ++y) {
                const std::size_t at = static_cast<std::size_t>(y) * width;
                table_.columns(deficits_.data() + at, width, r, sums_.data() + at);
            }
        });
        pool_->run(height, [&](int begin, int end, int k) {
            std::vector<const std::uint16_t*> rows(static_cast<std::size_t>(side));
            for (int y = begin; y < end; ++y) {
                const std::size_t at = static_cast<std::size_t>(y) * width;
                for (int d = -r; d <= r; ++d) {
                    const int near = std::min(std::max(y + d, 0), height - 1);
                    rows[d + r] = sums_.data() + static_cast<std::size_t>(near) * width;
                }
                table_.rows(rows.data(), side, width, totals_.data() + at);
                f(at, totals_.data() + at, k);
            }
        });
    }

    // the mask from the deficits; returns the share of foreground
    double decide(std::uint8_t* mask, bool learns) {
        const int side = 2 * options.radius + 1;
        const auto least = static_cast<int>((1.0 - options.threshold) * 255.0 * side * side);
        std::vector<long long> counts(static_cast<std::size_t>(pool_->count()), 0);
        if (alarms.held()) alarms.begin(frames);
        each_row([&](std::size_t at, const std::uint16_t* total, int k) {
            std::uint8_t* out = mask + at;
            int here = 0;
            if (alarms.ready())
                for (int x = 0; x < width; ++x) out[x] = alarms.alarms(at + x, total[x]) ? 255 : 0;
            else
                for (int x = 0; x < width; ++x) out[x] = total[x] > least ? 255 : 0;
            for (int x = 0; x < width; ++x) here += out[x] & 1;
            counts[k] += here;
        });
        if (alarms.held() && learns)
            alarms.learn(height, width, frames, totals_.data(), mask, [&](auto&& rows) { pool_->run(height, rows); });
        if (options.shadows) label(mask);
        long long found = 0;
        for (const long long n : counts) found += n;
        return static_cast<double>(found) / (static_cast<double>(height) * width);
    }

    // Shadow: darker than the background by a factor that hardly varies nearby, and of the same colour. A pixel is
    // judged by the foreground on a grid of 4 x 4 around it.
    void label(std::uint8_t* mask) {
        pool_->run(height, [&](int begin, int end, int) {
            for (int y = begin; y < end; ++y)
                for (int x = 0; x < width;) {
                    const std::size_t at = static_cast<std::size_t>(y) * width + x;
                    std::uint64_t eight = 1;  // most of a frame is background
                    if (x + 8 <= width) std::memcpy(&eight, mask + at, 8);
                    const int count = eight == 0 ? 8 : 1;
                    if (count == 8) std::memset(deficits_.data() + at, 0, 8);
                    if (count == 1) deficits_[at] = mask[at] != 0 && in_shadow(mask, x, y);
                    x += count;
                }
        });
        const std::size_t n = static_cast<std::size_t>(height) * width;
        for (std::size_t i = 0; i < n; ++i) mask[i] = deficits_[i] ? 127 : mask[i];
    }

    bool in_shadow(const std::uint8_t* mask, int x, int y) const {
        constexpr float darkest = 0.5f, lightest = 0.95f, uneven = 0.1f, tinge = 8.0f;
        const auto factor = [&](std::size_t at) { return (luma(planes_, at) + 2) / (luma(back_, at) + 2); };
        const float here = factor(static_cast<std::size_t>(y) * width + x);
        if (here < darkest || here > lightest) return false;
        float sum = 0, squares = 0, colour = 0;
        int count = 0;
        for (int dy = -3; dy <= 3; dy += 2)
            for (int dx = -3; dx <= 3; dx += 2) {
                const int ny = y + dy, nx = x + dx;
                if (ny < 0 || nx < 0 || ny >= height || nx >= width) continue;
                const std::size_t at = static_cast<std::size_t>(ny) * width + nx;
                if (mask[at] == 0) continue;
                const float r = factor(at);
                sum += r, squares += r * r, ++count;
                for (int c = 1; c < channels; ++c)
                    colour += std::fabs(chroma(planes_, c, at) - r * chroma(back_, c, at));
            }
        if (count < 6) return false;
        const float mean = sum / static_cast<float>(count),
                    variance = squares / static_cast<float>(count) - mean * mean;
        return mean >= darkest && mean <= lightest && variance <= uneven * uneven * mean * mean &&
               colour <= tinge * static_cast<float>(count);
    }

    // of the features at a pixel: brightness, and a channel minus brightness
    float luma(const std::vector<std::uint8_t>& planes, std::size_t at) const {
        if (channels == 1 || options.chroma) return planes[at];
        return (29.0f * planes[at] + 150.0f * planes[at + pixels()] + 77.0f * planes[at + 2 * pixels()]) / 256.0f;
    }
    float chroma(const std::vector<std::uint8_t>& planes, int c, std::size_t at) const {
        if (options.chroma) return static_cast<float>(planes[at + c * pixels()]) - 128.0f;
        return c == 1 ? 1.125f * (planes[at] - luma(planes, at))
                      : 1.4375f * (planes[at + 2 * pixels()] - luma(planes, at));
    }
};

}  // namespace gossamer
