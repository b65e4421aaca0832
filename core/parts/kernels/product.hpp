// The product of the two kernels before it
#pragma once
#include "parts/kernels/base.hpp"

namespace gossamer {

struct KernelProduct {
    static Instruction make(const Numbers&, KernelContext&) {
        Instruction step;
        step.kind = Instruction::Kind::product;
        return step;
    }
};
GOSSAMER_KERNEL(KernelProduct, "product")

}  // namespace gossamer
