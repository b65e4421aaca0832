// exp(-gamma |x - s|_1)
#pragma once
#include "parts/kernels/base.hpp"

namespace gossamer {

struct LaplaceKernel {
    static Instruction make(const Numbers& n, KernelContext&) {
        Instruction step;
        step.map = Map::laplace;
        step.params.gamma = n.at(0);
        step.pair = Pair::distance1;
        return step;
    }
};
GOSSAMER_KERNEL(LaplaceKernel, "laplace")

}  // namespace gossamer
