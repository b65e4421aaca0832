// The kernel before it, times a factor
#pragma once
#include "parts/kernels/base.hpp"

namespace gossamer {

struct KernelScale {
    static Instruction make(const Numbers& n, KernelContext&) {
        Instruction step;
        step.kind = Instruction::Kind::scale;
        step.params.gamma = n.at(0);
        return step;
    }
};
GOSSAMER_KERNEL(KernelScale, "scale")

}  // namespace gossamer
