// A sum of one-dimensional kernels over coordinates (trees/coordinates.hpp)
#pragma once
#include "parts/kernels/base.hpp"

namespace gossamer {

struct AdditiveKernel {
    static Instruction make(const Numbers& n, KernelContext& program) {
        Instruction step;
        step.values = additive_from + static_cast<int>(program.additive.size());
        if (step.values >= most_values) throw std::invalid_argument("the kernel has too many additive parts");
        program.additive.push_back(read_coordinates(n, program.features));
        return step;
    }
};
GOSSAMER_KERNEL(AdditiveKernel, "additive")

}  // namespace gossamer
