// The pixel bank's inner loops: pixels side by side in the lanes of a vector.
#include "simd/simd.hpp"
#include "video/video_tiles.hpp"

namespace gossamer {
namespace {

constexpr int lanes = width<float>;
constexpr int stopped_together = 16;  // pixels, whatever the vector: every instruction set gives the same bits
typedef typename Simd<float>::I Ints;
typedef std::int32_t Unaligned __attribute__((vector_size(vector_bytes), aligned(4), may_alias));
typedef std::uint8_t Bytes __attribute__((vector_size(lanes), aligned(1)));

inline V<float> floats(const std::uint8_t* p) {
#if defined(__AVX512F__)  // compilers do not vectorise the bytes
    return (V<float>)_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
#elif defined(__AVX2__)
    return (V<float>)_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
#else
    return __builtin_convertvector(__builtin_convertvector(*reinterpret_cast<const Bytes*>(p), Ints), V<float>);
#endif
}

inline bool none(Ints mask) {
#if defined(__AVX512F__)
    return _mm512_test_epi32_mask((__m512i)mask, (__m512i)mask) == 0;
#elif defined(__AVX2__)
    return _mm256_testz_si256((__m256i)mask, (__m256i)mask) != 0;
#else
    std::int32_t any = 0;
    for (int l = 0; l < lanes; ++l) any |= mask[l];
    return any == 0;
#endif
}

// f, and with `find` the slot of the nearest support point of every pixel and its squared distance. The sums of as
// many pixels as the registers hold are made together, and end together once all have reached their target.
template <int channels, bool find>
void evaluate(const TileStep& in, const std::uint8_t* slots, int used, bool to_margin, float* f, std::int32_t* nearest,
              float* distance) {
    constexpr int part = stopped_together / lanes;
    const V<float> inverse = all<float>(in.cap / in.scale);
    for (int start = 0; start < tile_size; start += part * lanes) {
        V<float> x[channels][part], sum[part], target[part], gamma[part], closest[part];
        Ints which[part];
        for (int v = 0; v < part; ++v) {
            const int at = start + v * lanes;
            for (int c = 0; c < channels; ++c) x[c][v] = floats(in.features + c * in.plane + at);
            sum[v] = V<float>{};
            target[v] = load<float>(in.margin + at) * inverse;
            gamma[v] = -load<float>(in.gamma + at);
            if (find) closest[v] = all<float>(1e9f), which[v] = Ints{};
        }
        const std::uint8_t* point = slots + start;
        for (int slot = 0; slot < used; ++slot, point += in.stride) {
            const float* coefs = reinterpret_cast<const float*>(point - start + tile_size * channels) + start;
            Ints below{};
            for (int v = 0; v < part; ++v) {
                V<float> d2{};
                for (int c = 0; c < channels; ++c) {
                    const V<float> d = x[c][v] - floats(point + c * tile_size + v * lanes);
                    d2 = muladd(d, d, d2);
                }
                const V<float> coef = load<float>(coefs + v * lanes);
                sum[v] = muladd(coef, exp_negative<float>(gamma[v] * d2), sum[v]);
                below |= sum[v] < target[v];
                if (find) {
                    const Ints nearer = (d2 < closest[v]) & (coef > 0);
                    closest[v] = nearer ? d2 : closest[v];
                    which[v] = nearer ? Ints{} + slot : which[v];
                }
            }
            if (to_margin && none(below)) break;
        }
        for (int v = 0; v < part; ++v) {
            const int at = start + v * lanes;
            store<float>(f + at, sum[v] * in.scale);
            if (!find) continue;
            store<float>(distance + at, closest[v]);
            *reinterpret_cast<Unaligned*>(nearest + at) = which[v];
        }
    }
}

// the support points of one pixel
template <int channels> struct Slots {
    std::uint8_t* slots;
    std::size_t stride;
    int lane;

    float& coef(int slot) const { return reinterpret_cast<float*>(slots + slot * stride + tile_size * channels)[lane]; }
    std::uint8_t& feature(int slot, int c) const { return slots[slot * stride + c * tile_size + lane]; }
    void copy(int to, int from) const {
        coef(to) = coef(from);
        for (int c = 0; c < channels; ++c) feature(to, c) = feature(from, c);
    }
    void swap(int a, int b) const {
        const float kept = coef(a);
        coef(a) = coef(b), coef(b) = kept;
        for (int c = 0; c < channels; ++c) {
            const std::uint8_t byte = feature(a, c);
            feature(a, c) = feature(b, c), feature(b, c) = byte;
        }
    }
};

// whether the colour of a pixel is, within merge2, the background of a pixel nearby
template <int channels> bool moved(const TileStep& in, int lane) {
    constexpr int offsets[][2] = {{-1, -1}, {1, -1}, {-1, 1}, {1, 1}, {-2, 0}, {2, 0},
                                  {0, -2},  {0, 2},  {-1, 0}, {1, 0}, {0, 1},  {0, -1}};
    const int pixel = in.first + lane, x = pixel % in.width, y = pixel / in.width;
    if (y >= in.height) return false;  // padding of the last tile
    for (const auto& o : offsets) {
        const int nx = x + o[0], ny = y + o[1];
        if (nx < 0 || ny < 0 || nx >= in.width || ny >= in.height) continue;
        int d2 = 0;
        for (int c = 0; c < channels; ++c) {
            const int d = in.features[c * in.plane + lane] - in.back[c * in.plane + ny * in.width + nx];
            d2 += d * d;
        }
        if (d2 <= in.merge2) return true;
    }
    return false;
}

template <int channels> int learn(const TileStep& in, std::uint8_t* slots, int used, float* f) {
    std::int32_t nearest[tile_size];
    float distance[tile_size], next[tile_size];
    evaluate<channels, true>(in, slots, used, true, f, nearest, distance);
    // copies, which no store can change: the loops become vector arithmetic
    const float keep = in.keep, step = in.step, cap = in.cap, known = in.known, merge2 = in.merge2;
    const float after = 1.0f / (in.scale * keep);
    float margin[tile_size];
    for (int i = 0; i < tile_size; ++i) margin[i] = in.margin[i];
    if (in.implicit)
        for (int i = 0; i < tile_size; ++i) {
            const float lack = margin[i] - keep * f[i], most = lack > step ? step : lack;
            next[i] = most < 0 ? 0 : most;
        }
    else
        for (int i = 0; i < tile_size; ++i) next[i] = f[i] < margin[i] ? step : 0.0f;
    if (cap < 1)
        for (int i = 0; i < tile_size; ++i) {
            const float whole = margin[i] - keep * f[i];
            const float filled = ((f[i] >= known * margin[i]) & (distance[i] <= merge2)) ? whole : next[i];
            next[i] = f[i] >= cap * margin[i] ? 0.0f : filled;
        }
    if (in.haste > 1)
        for (int i = 0; i < tile_size; ++i) {
            if (!(next[i] > 0 && 2 * f[i] < cap * margin[i] && moved<channels>(in, i))) continue;
            const float lack = margin[i] - keep * f[i], reach = in.haste * step;
            next[i] = lack < reach ? lack : reach;
        }
    if (in.nu >= 0)
        for (int i = 0; i < tile_size; ++i)
            in.margin[i] = margin[i] + in.level_rate * (in.nu - (f[i] < margin[i] ? 1.0f : 0.0f));
    for (int i = 0; i < tile_size; ++i) {
        const float move = next[i] * after;
        if (!(move > 0)) continue;
        const Slots<channels> pixel{slots, in.stride, i};
        if (distance[i] <= merge2) {
            int slot = nearest[i];
            pixel.coef(slot) += move;
            if (in.implicit)
                for (; slot > 0 && pixel.coef(slot) > pixel.coef(slot - 1); --slot) pixel.swap(slot, slot - 1);
            continue;
        }
        // the newcomer goes before equal points: the oldest of them is last, and is evicted first
        int size = used, place = 0;
        while (size > 0 && !(pixel.coef(size - 1) > 0)) --size;
        if (in.implicit)
            for (place = size; place > 0 && pixel.coef(place - 1) <= move; --place) {}
        if (place == in.budget) continue;
        if (size == in.budget) --size;
        if (size == used) {  // a slot that no pixel of the tile has used yet
            float* fresh = reinterpret_cast<float*>(slots + used++ * in.stride + tile_size * channels);
            for (int k = 0; k < tile_size; ++k) fresh[k] = 0;
        }
        for (int slot = size; slot > place; --slot) pixel.copy(slot, slot - 1);
        pixel.coef(place) = move;
        for (int c = 0; c < channels; ++c) pixel.feature(place, c) = in.features[c * in.plane + i];
    }
    return used;
}

void score_tile(const TileStep& in, const std::uint8_t* slots, int used, bool to_margin, float* f) {
    if (in.channels == 1)
        evaluate<1, false>(in, slots, used, to_margin, f, nullptr, nullptr);
    else
        evaluate<3, false>(in, slots, used, to_margin, f, nullptr, nullptr);
}

int learn_tile(const TileStep& in, std::uint8_t* slots, int used, float* f) {
    return in.channels == 1 ? learn<1>(in, slots, used, f) : learn<3>(in, slots, used, f);
}

inline std::uint8_t byte(int x) { return static_cast<std::uint8_t>(x < 0 ? 0 : x > 255 ? 255 : x); }

void planes(const std::uint8_t* pixels, int count, int channels, bool chroma, std::uint8_t* out, std::size_t plane) {
    if (channels == 1) {
        for (int i = 0; i < count; ++i) out[i] = pixels[i];
        return;
    }
    constexpr int part = 64;  // split into channels first: what follows is then vector arithmetic
    std::uint8_t b[part], g[part], r[part];
    for (int start = 0; start < count; start += part) {
        const int n = count - start < part ? count - start : part;
        const std::uint8_t* p = pixels + 3 * start;
        for (int i = 0; i < n; ++i) b[i] = p[3 * i], g[i] = p[3 * i + 1], r[i] = p[3 * i + 2];
        std::uint8_t *first = out + start, *second = first + plane, *third = second + plane;
        if (!chroma) {
            for (int i = 0; i < n; ++i) first[i] = b[i], second[i] = g[i], third[i] = r[i];
            continue;
        }
        for (int i = 0; i < n; ++i) {
            const std::int16_t luma = static_cast<std::int16_t>((29 * b[i] + 150 * g[i] + 77 * r[i] + 128) >> 8);
            first[i] = static_cast<std::uint8_t>(luma);
            second[i] = byte(128 + ((9 * (b[i] - luma)) >> 3));
            third[i] = byte(128 + ((23 * (r[i] - luma)) >> 4));
        }
    }
}

void lighten(const std::uint8_t* pixels, const float* gains, const float* factors, int count, int channels,
             std::uint8_t* out) {
    if (channels == 1) {
        for (int i = 0; i < count; ++i) {
            const float value = pixels[i] * gains[i] * factors[0] + 0.5f;
            out[i] = static_cast<std::uint8_t>(static_cast<std::int32_t>(value > 255.0f ? 255.0f : value));
        }
        return;
    }
    for (int i = 0; i < count; ++i)
        for (int c = 0; c < 3; ++c) {
            const float value = pixels[3 * i + c] * gains[3 * i + c] * factors[c] + 0.5f;
            out[3 * i + c] = static_cast<std::uint8_t>(static_cast<std::int32_t>(value > 255.0f ? 255.0f : value));
        }
}

void deficits(const float* f, const float* margin, float cap, int count, std::uint8_t* out) {
    for (int i = 0; i < count; ++i) {
        const float lack = margin[i] > 0 ? 1.0f - f[i] / (cap * margin[i]) : 0.0f;
        const float level = 255.0f * (lack < 0 ? 0.0f : lack > 1 ? 1.0f : lack) + 0.5f;
        out[i] = static_cast<std::uint8_t>(static_cast<std::int32_t>(level));
    }
}

void columns(const std::uint8_t* row, int width, int radius, std::uint16_t* out) {
    const int inner = width - radius;
    for (int x = 0; x < width; ++x) out[x] = 0;
    for (int d = -radius; d <= radius; ++d)
        for (int x = radius; x < inner; ++x) out[x] = static_cast<std::uint16_t>(out[x] + row[x + d]);
    for (int x = 0; x < width; ++x) {
        if (x == radius && inner > radius) x = inner;
        if (x >= width) break;
        int sum = 0;
        for (int d = -radius; d <= radius; ++d) {
            const int at = x + d;
            sum += row[at < 0 ? 0 : at >= width ? width - 1 : at];
        }
        out[x] = static_cast<std::uint16_t>(sum);
    }
}

void rows(const std::uint16_t* const* sums, int count, int width, std::uint16_t* out) {
    for (int x = 0; x < width; ++x) out[x] = sums[0][x];
    for (int k = 1; k < count; ++k) {
        const std::uint16_t* row = sums[k];
        for (int x = 0; x < width; ++x) out[x] = static_cast<std::uint16_t>(out[x] + row[x]);
    }
}

void spread(const std::uint8_t* now, const std::uint8_t* before, std::size_t plane, int channels, int move,
            std::uint16_t* spread) {
    std::uint16_t change[tile_size] = {};
    for (int c = 0; c < channels; ++c)
        for (int i = 0; i < tile_size; ++i) {
            const std::uint8_t a = now[c * plane + i], b = before[c * plane + i];
            const std::uint16_t d = static_cast<std::uint16_t>(a > b ? a - b : b - a);
            change[i] = change[i] > d ? change[i] : d;
        }
    const int up = move, down = 3 * move;
    for (int i = 0; i < tile_size; ++i) {
        const int s = spread[i], next = change[i] * 256 > s ? s + up : s - down;
        spread[i] = static_cast<std::uint16_t>(next < 0 ? 0 : next > 65535 ? 65535 : next);
    }
}

void widths(const std::uint16_t* spread, float low, float slope, float high, float* gamma) {
    for (int i = 0; i < tile_size; ++i) {
        const float wanted = low + slope * spread[i], width = wanted > high ? high : wanted;
        gamma[i] = 0.5f / (width * width);
    }
}

}  // namespace

extern const VideoTiles GOSSAMER_PASTE(video_, GOSSAMER_ISA_NAME);
const VideoTiles GOSSAMER_PASTE(video_, GOSSAMER_ISA_NAME) = {score_tile, learn_tile, planes, lighten, deficits,
                                                              columns,    rows,       spread, widths};

}  // namespace gossamer
