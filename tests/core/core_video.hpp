// The pixel bank without Python: odd sizes, both rules, all options on and off; the number of threads changes no bit.
#pragma once
#include <cstdio>
#include <random>
#include <vector>

#include "core_hashes.hpp"
#include "video/video.hpp"

namespace gossamer {

inline int test_video() {
    int failures = 0;
    std::mt19937 random(7);
    for (const int channels : {1, 3})
        for (const auto& size : {std::pair<int, int>{1, 1}, {3, 70}, {37, 5}, {21, 33}})
            for (const int variant : {0, 1, 2, 3, 4}) {
                VideoOptions o;
                o.budget = 4, o.keep = 0.5, o.step = 0.3, o.implicit = variant != 1;
                if (variant >= 2) {
                    o.merge = 8, o.cap = 0.9, o.known = 0.75, o.haste = 5, o.spread = 2, o.widest = 40, o.every = 3;
                    o.chroma = o.warm = o.light = o.shadows = true, o.guard = 0.5, o.radius = 2;
                }
                if (variant == 3) o.nu = 0.2;
                if (variant == 4) o.alarms = 0.05;
                const int height = size.first, width = size.second, pixels = height * width;
                PixelBank one(height, width, channels, o, 1), many(height, width, channels, o, 3);
                std::vector<std::uint8_t> frame(pixels * channels), mask(pixels), other(pixels), lit(frame.size());
                std::vector<float> scores(pixels);
                for (int t = 0; t < 50; ++t) {  // with keep = 0.5 the scale is folded more than once
                    const int level = t % 20 < 10 ? 160 : 60;
                    for (auto& value : frame) value = static_cast<std::uint8_t>(level + random() % 40);
                    one.score(frame.data(), width * channels, scores.data());
                    one.compensate(frame.data(), width * channels, lit.data());
                    one.apply(frame.data(), width * channels, t % 7 == 6 ? 0 : -1, mask.data());
                    many.apply(frame.data(), width * channels, t % 7 == 6 ? 0 : -1, other.data());
                    one.background(lit.data());
                    failures += mask != other;
                }
                hashes.tell("video, scores", scores);
                hashes.tell("video, background", lit);
                hashes.tell("video, margins", one.margins);
                if (variant == 4) {
                    one.p_values(frame.data(), width * channels, scores.data());
                    hashes.tell("video, p-values", scores);
                    hashes.tell("video, levels of alarms", one.alarms.levels);
                    failures += one.alarms.levels != many.alarms.levels || one.alarms.usual != many.alarms.usual;
                    failures += !one.alarms.sound();
                }
                failures += one.slots != many.slots || one.spreads != many.spreads || one.margins != many.margins;
            }
    if (failures) std::fprintf(stderr, "FAILED: the pixel bank, %d times\n", failures);
    return failures;
}

}  // namespace gossamer
