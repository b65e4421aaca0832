// A polynomial of gamma ||x - s|| times its exponential. By differences: the root near 0 would magnify the rounding of products.
#pragma once
#include "parts/kernels/base.hpp"

namespace gossamer {

struct MaternKernel {
    static Instruction make(const Numbers& n, KernelContext&) {
        Instruction step;
        step.map = Map::matern;
        step.params.gamma = n.at(0);
        step.params.degree = static_cast<int>(n.size()) - 2;
        if (step.params.degree > most_matern) throw std::invalid_argument("the Matern kernel is too smooth");
        std::copy(n.begin() + 1, n.end(), step.params.coefs);
        step.pair = Pair::distance2;
        return step;
    }
};
GOSSAMER_KERNEL(MaternKernel, "matern")

}  // namespace gossamer
