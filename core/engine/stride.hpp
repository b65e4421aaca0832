// How a square matrix that grows stands in memory: the distance of its rows.
#pragma once
#include <algorithm>
#include <cstddef>

namespace gossamer {

// a stride for m columns where there was another: an eighth wider at least, so that growing costs little, and memory too.
// An odd number of cache lines: a power of two would send a whole column to the same few cache sets
inline std::ptrdiff_t wider_stride(std::ptrdiff_t stride, std::ptrdiff_t m) {
    return ((std::max(stride + stride / 8, m) + 7) / 8 | 1) * 8;
}

}  // namespace gossamer
