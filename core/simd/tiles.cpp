// Chooses the instruction set, once.
#include "simd/tiles.hpp"

#include <cstdlib>
#include <stdexcept>
#include <string>

#include "trees/onedim.hpp"
#include "video/video_tiles.hpp"

namespace gossamer {

#define GOSSAMER_DECLARE(isa)                 \
    extern const Tiles<float> tiles32_##isa;  \
    extern const Tiles<double> tiles64_##isa; \
    extern const OneDim onedim_##isa;         \
    extern const VideoTiles video_##isa;
GOSSAMER_DECLARE(baseline)
#ifdef GOSSAMER_X86
GOSSAMER_DECLARE(avx2)
GOSSAMER_DECLARE(avx512)
#endif

namespace {

enum class Isa { baseline, avx2, avx512 };

Isa supported() {
#ifdef GOSSAMER_X86
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512bw"))
        return Isa::avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return Isa::avx2;
#endif
    return Isa::baseline;
}

Isa chosen() {
    const Isa best = supported();
    const char* wish = std::getenv("GOSSAMER_ISA");
    if (wish == nullptr || *wish == '\0') return best;
    const std::string name(wish);
    Isa isa;
    if (name == "baseline" || name == tiles64_baseline.name)
        isa = Isa::baseline;
    else if (name == "avx2")
        isa = Isa::avx2;
    else if (name == "avx512")
        isa = Isa::avx512;
    else
        throw std::invalid_argument(
            "The environment variable GOSSAMER_ISA must be one of baseline, avx2, avx512. Got '" + name + "' instead.");
    if (isa > best)
        throw std::invalid_argument("The environment variable GOSSAMER_ISA names " + name +
                                    ", which this processor does not have.");
    return isa;
}

Isa isa() {
    static const Isa once = chosen();
    return once;
}

}  // namespace

// The table of the instruction set in use
#ifdef GOSSAMER_X86
#define GOSSAMER_CHOOSE(table) \
    return isa() == Isa::avx512 ? table##_avx512 : isa() == Isa::avx2 ? table##_avx2 : table##_baseline
#else
#define GOSSAMER_CHOOSE(table) \
    return static_cast<void>(isa()), table##_baseline  // a wrong GOSSAMER_ISA is told all the same
#endif

template <> const Tiles<float>& tiles<float>() { GOSSAMER_CHOOSE(tiles32); }
template <> const Tiles<double>& tiles<double>() { GOSSAMER_CHOOSE(tiles64); }
const OneDim& onedim() { GOSSAMER_CHOOSE(onedim); }
const VideoTiles& video_tiles() { GOSSAMER_CHOOSE(video); }

namespace {

constexpr Pascal triangle() {
    Pascal p{};
    for (int n = 0; n <= largest_order; ++n) {
        p.c[n][0] = 1;
        for (int k = 1; k <= n; ++k) p.c[n][k] = p.c[n - 1][k - 1] + (k < n ? p.c[n - 1][k] : 0.0);
    }
    return p;
}

}  // namespace

const Pascal pascal = triangle();

}  // namespace gossamer
