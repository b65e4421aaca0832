// (gamma <x, s> + coef0)^degree
#pragma once
#include "parts/kernels/base.hpp"

namespace gossamer {

struct PolynomialKernel {
    static Instruction make(const Numbers& n, KernelContext&) {
        Instruction step;
        step.map = Map::polynomial;
        step.params = {n.at(0), n.at(1), static_cast<int>(n.at(2))};
        return step;
    }
};
GOSSAMER_KERNEL(PolynomialKernel, "polynomial")

}  // namespace gossamer
