// <x, s>
#pragma once
#include "parts/kernels/base.hpp"

namespace gossamer {

struct LinearKernel {
    static Instruction make(const Numbers&, KernelContext&) {
        Instruction step;
        return step;
    }
};
GOSSAMER_KERNEL(LinearKernel, "linear")

}  // namespace gossamer
