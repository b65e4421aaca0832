// The arithmetic of the pixel bank, compiled once per instruction set (video_isa.cpp) and chosen at run time (tiles.cpp).
//
// A tile is tile_size pixels that lie side by side in the frame, read row by row. A slot of a tile holds the features of
// one support point of each pixel, channel by channel, and their coefficients,
//   u8 features[channels][tile_size], f32 coefs[tile_size];
// the first slots of all tiles lie together, then all second slots, and so on. The slots of a pixel are sorted: the last is
// the next to be evicted, an empty slot has the coefficient 0, and the heaviest points come first, so that the sum over a
// tile stops as soon as every pixel has reached its margin.
#pragma once
#include <cstddef>
#include <cstdint>

namespace gossamer {

constexpr int tile_size = 32;
constexpr std::size_t slot_bytes(int channels) { return tile_size * (channels + sizeof(float)); }

// One step of every pixel of a tile. f is made before the step; then, for f below the margin,
//   implicit  coefficient min(margin - keep f, step)  (SILK),   gradient  coefficient step  (NORMA)
// goes to the nearest support point if its squared distance is at most merge2 (below 0: never), else to a new one.
// With cap < 1 only f < cap * margin takes a step, and where f >= known * margin the point nearby is filled up.
struct TileStep {
    int channels, budget;
    bool implicit;
    float keep, step, level_rate, nu;
    float scale;  // before the step: a coefficient is scale * its stored value
    float merge2;
    float cap, known;              // shares of the margin: f above the cap takes no step, and no step goes beyond it
    const std::uint8_t* features;  // channel c of the tile at features + c * plane
    std::size_t plane;
    const float* gamma;  // of every pixel
    float* margin;       // of every pixel; changes if nu >= 0
    std::size_t stride;  // bytes from a slot of the tile to its next
    // where the colour of a pixel is the background of a neighbour, the step is haste times as large
    float haste;
    const std::uint8_t* back;  // planes like the features: the support points that weigh most
    int first, width, height;  // the pixel of the frame that the tile starts with, and the frame
};

struct VideoTiles {
    // f of every pixel; with `to_margin` the sum ends where all pixels of the tile have reached their margin
    void (*score)(const TileStep& in, const std::uint8_t* slots, int used, bool to_margin, float* f);
    // the same with to_margin, then the step; returns the number of slots used now
    int (*learn)(const TileStep& in, std::uint8_t* slots, int used, float* f);

    // planes from interleaved pixels; with `chroma` luma, 128 + 9/8 (B - luma), 128 + 23/16 (R - luma)
    void (*planes)(const std::uint8_t* pixels, int count, int channels, bool chroma, std::uint8_t* out,
                   std::size_t plane);
    // pixels[i] * gains[i], rounded, at most 255
    void (*lighten)(const std::uint8_t* pixels, const float* gains, const float* factors, int count, int channels,
                    std::uint8_t* out);
    // out[i] = 255 (1 - f[i] / (cap margin[i])), in [0, 255]
    void (*deficits)(const float* f, const float* margin, float cap, int count, std::uint8_t* out);
    // sums over 2 radius + 1 columns, the border repeated; then over rows
    void (*columns)(const std::uint8_t* row, int width, int radius, std::uint16_t* out);
    void (*rows)(const std::uint16_t* const* sums, int count, int width, std::uint16_t* out);
    // spread[i] follows the lower quartile of the change of the features, in 1/256; gamma[i] = 1 / (2 width^2),
    // width = min(high, low + slope * spread)
    void (*spread)(const std::uint8_t* now, const std::uint8_t* before, std::size_t plane, int channels, int move,
                   std::uint16_t* spread);
    void (*widths)(const std::uint16_t* spread, float low, float slope, float high, float* gamma);
};

const VideoTiles& video_tiles();

}  // namespace gossamer
