// Arrays at the border: the types that are checked there, and copies that Python owns.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "parts/part.hpp"

namespace gossamer {

using State = nanobind::typed<nanobind::dict, nanobind::str, nanobind::object>;
using Spec = std::pair<std::string, Numbers>;  // the name of a part and its numbers

template <class T, int dimensions>
using Dense = nanobind::ndarray<T, nanobind::ndim<dimensions>, nanobind::c_contig, nanobind::device::cpu>;
template <class T> using Vector = Dense<const T, 1>;
template <class T> using Matrix = Dense<const T, 2>;
template <class T> using VectorOut = Dense<T, 1>;
template <class T> using MatrixOut = Dense<T, 2>;

template <class T> auto array(std::vector<T> values, std::vector<std::size_t> shape) {
    auto* kept = new std::vector<T>(std::move(values));
    nanobind::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return nanobind::ndarray<nanobind::numpy, T>(kept->data(), shape.size(), shape.data(), owner);
}
template <class T> auto array(std::vector<T> values) {
    const std::size_t n = values.size();
    return array(std::move(values), {n});
}
template <class T> auto matrix(std::vector<T>&& rows, int features) {
    const std::size_t d = static_cast<std::size_t>(features), n = rows.size() / d;
    return array(std::move(rows), {n, d});
}
template <class T> std::vector<T> values(nanobind::handle h) {
    const auto a = nanobind::cast<nanobind::ndarray<const T, nanobind::c_contig, nanobind::device::cpu>>(h);
    return std::vector<T>(a.data(), a.data() + a.size());
}

inline void expect(std::size_t got, std::size_t wanted, const char* what) {
    if (got != wanted)
        throw std::invalid_argument(std::string("The '") + what + "' parameter of the core must have " +
                                    std::to_string(wanted) + " entries. Got " + std::to_string(got) + " instead.");
}

}  // namespace gossamer
