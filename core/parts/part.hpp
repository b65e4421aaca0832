// What the parts of a learner have in common. A part is one file in kernels/, losses/, rules/ or budgets/ with a struct,
// the parameters as its members, a static make() from the numbers that its Python twin hands over, and one line
//
//     GOSSAMER_BUDGET(Project, "project")
//
// with the struct and the name of the twin. CMake reads that line and writes parts/budgets.hpp, which includes all files
// of the folder and has their std::variant and make_budget(); no list is edited when a part is added.
//
// A part may have state: a member `state` whose type has a static each(state, f) that calls f(name, field) for every
// field. A field is a double, a std::int64_t, a vector of doubles, or a class that packs itself into one (Inverse). The
// store, the bank and Python save and restore the fields without knowing what they mean.
#pragma once
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

namespace gossamer {

using Numbers = std::vector<double>;
using Values = std::vector<double>;

template <class Part> inline constexpr const char* part_name = nullptr;

#define GOSSAMER_PART(type, name) template <> inline constexpr const char* part_name<type> = name;
#define GOSSAMER_KERNEL(type, name) GOSSAMER_PART(type, name)
#define GOSSAMER_LOSS(type, name) GOSSAMER_PART(type, name)
#define GOSSAMER_RULE(type, name) GOSSAMER_PART(type, name)
#define GOSSAMER_BUDGET(type, name) GOSSAMER_PART(type, name)

// The part of this name, as one of a std::variant; or what its make() gives, if that is something else.
template <class Parts, std::size_t i = 0, class... More>
auto make_part(const char* kind, const std::string& name, const Numbers& numbers, More&... more) {
    using Part = std::variant_alternative_t<i, Parts>;
    using Made = decltype(Part::make(numbers, more...));
    using Result = std::conditional_t<std::is_same_v<Made, Part>, Parts, Made>;
    if (name == part_name<Part>) return Result(Part::make(numbers, more...));
    if constexpr (i + 1 < std::variant_size_v<Parts>)
        return Result(make_part<Parts, i + 1>(kind, name, numbers, more...));
    throw std::invalid_argument(std::string("the core has no ") + kind + " '" + name + "'");
}

// the state of a part that has none
struct NoState {
    template <class S, class F> static void each(S&, F&&) {}
};

// The fields of a state in the order and number that they have in a bank's bytes: those of each(), unless the state has an
// each_packed() of its own, because older versions had others. A field without a name is not used.
template <class S, class F> auto each_packed(S& state, F&& f) -> decltype(S::each_packed(state, f)) {
    S::each_packed(state, f);
}
template <class S, class F, class... None> void each_packed(S& state, F&& f, None...) { S::each(state, f); }

template <class Field> constexpr bool is_number = std::is_arithmetic_v<Field>;

// An array as a field: pack() gives its values, empty if there is none; fits() validates values for a model of this number
// of points, and unpack() takes them. packed_length() is the number of values, where it follows from that of the points.
inline const Values& pack(const Values& field) { return field; }
inline bool fits(const Values&, const Values&, int) { return true; }
inline void unpack(Values& field, const Values& values, int) { field = values; }
inline std::optional<std::size_t> packed_length(const Values&, int) { return std::nullopt; }
template <class Field> Values pack(const Field& field) { return field.packed(); }
template <class Field> bool fits(const Field&, const Values& values, int points) { return Field::fits(values, points); }
template <class Field> void unpack(Field& field, const Values& values, int points) { field.unpack(values, points); }
template <class Field> std::optional<std::size_t> packed_length(const Field&, int points) {
    return Field::packed_length(points);
}

}  // namespace gossamer
