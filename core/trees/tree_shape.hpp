// The shape of a tree: how many entries its leaves have, and how many children its nodes, from the leaves up.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "trees/onedim.hpp"

namespace gossamer {

using Counts = std::vector<std::vector<std::int64_t>>;  // [level][leaf or node]

// every leaf and node as full as can be
inline Counts full_shape(std::int64_t entries) {
    Counts counts;
    std::int64_t largest = leaf_size;
    do {
        counts.emplace_back();
        const std::int64_t groups = std::max<std::int64_t>(1, (entries + largest - 1) / largest);
        for (std::int64_t i = 0; i < groups; ++i)
            counts.back().push_back(entries * (i + 1) / groups - entries * i / groups);
        entries = groups;
        largest = fan;
    } while (entries > 1);
    return counts;
}

// counts from a flat list, the height before, its length before each level; returns whether they fit `entries`
inline bool read_shape(const std::vector<std::int64_t>& shape, std::int64_t entries, Counts& counts) {
    std::size_t at = 0;
    const auto next = [&]() -> std::int64_t { return at < shape.size() ? shape[at++] : -1; };
    const std::int64_t height = next();
    if (height < 0 || height > 31) return false;
    for (std::int64_t level = 0; level <= height; ++level) {
        const std::int64_t groups = next(), largest = level == 0 ? leaf_size : fan;
        if (groups < 1 || groups > static_cast<std::int64_t>(shape.size() - at)) return false;
        counts.emplace_back();
        std::int64_t sum = 0;
        for (std::int64_t i = 0; i < groups; ++i) {
            const std::int64_t count = next();
            const bool empty = height == 0 && entries == 0 && count == 0;
            if ((count < 1 || count > largest) && !empty) return false;
            counts.back().push_back(count);
            sum += count;
        }
        if (sum != entries) return false;
        entries = groups;
    }
    return entries == 1 && at == shape.size();
}

}  // namespace gossamer
