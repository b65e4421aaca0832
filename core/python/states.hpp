// The state of a loop as a dict of Python, and back: numbers and arrays by name, those of the rule and of the budget in dicts
// of their own.
#pragma once
#include "engine/saved.hpp"
#include "python/arrays.hpp"

namespace gossamer {

inline auto array(const Rows2& rows) {
    Values flat;
    for (const Values& row : rows) flat.insert(flat.end(), row.begin(), row.end());
    return array(std::move(flat), {rows.size(), rows.empty() ? 0 : rows[0].size()});
}

inline Rows2 rows_of(nanobind::handle h) {
    const auto a = nanobind::cast<Matrix<double>>(h);
    Rows2 rows;
    for (std::size_t i = 0; i < a.shape(0); ++i)
        rows.emplace_back(a.data() + i * a.shape(1), a.data() + (i + 1) * a.shape(1));
    return rows;
}

// the state of a part; an empty array is left out
inline State made_of(Fields&& fields) {
    State state;
    for (auto& [name, field] : fields) {
        const char* key = name.c_str();
        if (Values* values = std::get_if<Values>(&field)) {
            if (!values->empty()) state[key] = array(std::move(*values));
        } else if (const double* number = std::get_if<double>(&field)) {
            state[key] = *number;
        } else {
            state[key] = std::get<std::int64_t>(field);
        }
    }
    return state;
}

inline State made_of(Saved&& saved, const Loop& loop) {
    State state;
    state["raw"] = array(saved.raw);
    state["trace"] = array(saved.trace);
    state["summed"] = array(saved.summed);
    state["dropped"] = array(saved.dropped);
    state["kappas"] = array(std::move(saved.kappas));
    state["entered"] = array(std::move(saved.entered));
    state["births"] = array(std::move(saved.births));
    state["ids"] = array(std::move(saved.ids));
    state["level"] = saved.level;
    std::size_t i = 0;  // only the names and types of the loop's numbers are looked at
    each_number(
        [&](const char* name, const auto&) { std::visit([&](auto v) { state[name] = v; }, saved.numbers[i++]); }, loop);
    state["rule"] = made_of(std::move(saved.rule));
    state["budget"] = made_of(std::move(saved.budget));
    return state;
}

// the fields that a part has, as a dict has them
template <class Part> Fields fields_from(nanobind::handle h, const Part& part) {
    const auto state = nanobind::cast<State>(h);
    Fields fields;
    const auto read = [&](const char* name, const auto& field) {  // of the part's only the types
        using F = std::decay_t<decltype(field)>;
        if (!state.contains(name)) return;
        if constexpr (is_number<F>)
            fields.emplace_back(name, nanobind::cast<F>(state[name]));
        else
            fields.emplace_back(name, values<double>(state[name]));
    };
    std::visit([&](const auto& p) { std::decay_t<decltype(p.state)>::each(p.state, read); }, part);
    return fields;
}

inline Saved saved_from(const State& state, const Loop& loop) {
    Saved saved{rows_of(state["raw"]),
                rows_of(state["trace"]),
                rows_of(state["summed"]),
                rows_of(state["dropped"]),
                values<double>(state["kappas"]),
                values<double>(state["entered"]),
                values<std::int64_t>(state["births"]),
                values<std::int64_t>(state["ids"]),
                nanobind::cast<double>(state["level"]),
                {},
                fields_from(state["rule"], loop.rule),
                fields_from(state["budget"], loop.budget)};
    each_number(
        [&](const char* name, const auto& number) {  // of the loop's only the type
            saved.numbers.emplace_back(nanobind::cast<std::decay_t<decltype(number)>>(state[name]));
        },
        loop);
    return saved;
}

}  // namespace gossamer
