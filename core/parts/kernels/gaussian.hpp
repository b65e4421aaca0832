// exp(-gamma ||x - s||^2), the squared distance from products and norms
#pragma once
#include "parts/kernels/base.hpp"

namespace gossamer {

struct GaussianKernel {
    static Instruction make(const Numbers& n, KernelContext&) {
        Instruction step;
        step.map = Map::gaussian;
        step.params.gamma = n.at(0);
        step.by_norms = true;
        return step;
    }
};
GOSSAMER_KERNEL(GaussianKernel, "gaussian")

}  // namespace gossamer
