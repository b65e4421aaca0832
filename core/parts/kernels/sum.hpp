// The sum of the two kernels before it
#pragma once
#include "parts/kernels/base.hpp"

namespace gossamer {

struct KernelSum {
    static Instruction make(const Numbers&, KernelContext&) {
        Instruction step;
        step.kind = Instruction::Kind::sum;
        return step;
    }
};
GOSSAMER_KERNEL(KernelSum, "sum")

}  // namespace gossamer
