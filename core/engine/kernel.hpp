// A kernel as its program of instructions (parts/kernels/), run over strips of products and distances.
#pragma once
#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "parts/kernels.hpp"
#include "simd/tiles.hpp"

namespace gossamer {

class Kernel {
public:
    Kernel(const std::vector<std::pair<std::string, Numbers>>& program, int features) {
        KernelContext made{features, {}};
        for (const auto& [name, numbers] : program) program_.push_back(make_kernel(name, numbers, made));
        additive_ = std::move(made.additive);
        int depth = 0;
        for (Instruction& step : program_) {
            if (step.values < additive_from) step.values = static_cast<int>(step.pair);
            if (step.kind == Instruction::Kind::leaf) needs_[step.values] = true;
            depth += step.kind == Instruction::Kind::leaf ? 1 : step.kind == Instruction::Kind::scale ? 0 : -1;
            deepest_ = std::max(deepest_, depth);
        }
        if (depth != 1) throw std::invalid_argument("the kernel's program does not leave one value");
    }

    bool needs(Pair pair) const { return needs_[static_cast<int>(pair)]; }
    const std::vector<std::vector<Coordinate>>& additive() const { return additive_; }
    // whether x is in the domain of every part
    template <class T> bool inside(const T* x) const {
        for (const auto& part : additive_)
            for (const Coordinate& c : part)
                if (!c.inside(static_cast<double>(c.key(x)))) return false;
        return true;
    }
    int deepest() const { return deepest_; }
    // whether k(x, x) cannot overflow
    bool bounded() const {
        return std::all_of(program_.begin(), program_.end(), [](const Instruction& step) {
            return step.kind != Instruction::Kind::leaf || step.by_norms ||
                   (step.values > 0 && step.values < additive_from);
        });
    }
    bool in_place() const { return program_.size() == 1; }  // the result may overwrite the pair values

    // out = k for a strip of `count` pairs of one point, squared norm `norm`, with points of squared norms `norms`.
    // `values` are the strip's products and distances. `exact` makes its squared distances by differences; it is called
    // only where products would lose digits. `stack` has room for deepest() strips.
    template <class T, class Exact>
    void apply(const T* const* values, const T* norms, T norm, T largest, int count, T* stack, T* out,
               Exact&& exact) const {
        const Tiles<T>& ops = tiles<T>();
        run(count, stack, out, [&](const Instruction& leaf, T* to) {
            const T* in = values[leaf.values];
            const T limit = static_cast<T>(trusted<T>() / leaf.params.gamma);
            if (!leaf.by_norms) {
                ops.map(leaf.map, leaf.params, in, nullptr, T(0), count, to);
            } else if (largest + norm > limit) {
                ops.distances(in, norms, norm, exact(), limit, count, to);
                ops.map(leaf.map, leaf.params, to, nullptr, T(0), count, to);
            } else {
                ops.map(leaf.map, leaf.params, in, norms, norm, count, to);
            }
        });
    }

    // out = k(x, x) for points of squared norms `norms`; additive[i]: what the additive part i has there
    template <class T> void diagonal(const T* norms, const T* const* additive, int count, T* stack, T* out) const {
        run(count, stack, out, [&](const Instruction& leaf, T* to) {
            if (leaf.values >= additive_from) {
                std::copy_n(additive[leaf.values - additive_from], count, to);
                return;
            }
            const bool product = leaf.pair == Pair::product && !leaf.by_norms;
            if (!product) std::fill_n(to, count, T(0));  // the distance of a point from itself
            tiles<T>().map(leaf.map, leaf.params, product ? norms : to, nullptr, T(0), count, to);
        });
    }

private:
    // The program with the first strip of its stack in `out`.
    template <class T, class Leaf> void run(int count, T* stack, T* out, Leaf&& leaf) const {
        int top = 0;
        const auto strip = [&](int i) { return i == 0 ? out : stack + static_cast<std::ptrdiff_t>(i - 1) * count; };
        for (const Instruction& step : program_) {
            if (step.kind == Instruction::Kind::leaf) {
                leaf(step, strip(top++));
            } else if (step.kind == Instruction::Kind::scale) {
                T* values = strip(top - 1);
                for (int i = 0; i < count; ++i) values[i] *= static_cast<T>(step.params.gamma);
            } else {
                T *left = strip(top - 2), *right = strip(top - 1);
                --top;
                const bool sum = step.kind == Instruction::Kind::sum;
                for (int i = 0; i < count; ++i) left[i] = sum ? left[i] + right[i] : left[i] * right[i];
            }
        }
    }

    // Up to gamma (|x|^2 + |s|^2) = this, the rounding of a distance made of products does not show in the kernel.
    template <class T> static double trusted() { return sizeof(T) == 4 ? 64.0 : 65536.0; }

    std::vector<Instruction> program_;
    std::vector<std::vector<Coordinate>> additive_;
    bool needs_[most_values] = {};
    int deepest_ = 0;
};

}  // namespace gossamer
