// What a kernel is made of: a short program in postfix form over products and distances of pairs (engine/kernel.hpp runs it).
// A kernel's make() gives its instruction.
#pragma once
#include <vector>

#include "parts/part.hpp"
#include "simd/tiles.hpp"
#include "trees/coordinates.hpp"

namespace gossamer {

struct Instruction {
    enum class Kind { leaf, sum, product, scale } kind = Kind::leaf;
    Map map = Map::identity;
    MapParams params;
    Pair pair = Pair::product;
    int values = 0;         // which of the values of a pair it takes: those of an additive part, else those of `pair`
    bool by_norms = false;  // the squared distance is made of products and norms
};

// The values of pairs that a program may take: products, distances, and additive parts.
constexpr int additive_from = 3, most_values = 8;

// What the instructions of a program share: the features of a row, and the coordinates of the additive parts so far.
struct KernelContext {
    int features;
    std::vector<std::vector<Coordinate>> additive;
};

}  // namespace gossamer
