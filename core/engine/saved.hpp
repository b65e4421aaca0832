// A snapshot of a loop as plain values: copied while its gate is held, converted to Python objects afterwards.
#pragma once
#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "engine/loop.hpp"

namespace gossamer {

// every number that is saved, by name
template <class F, class L> void each_number(F&& f, L& loop) {
    auto& e = loop.expansion;
    f("scale", e.scale);
    f("trace_scale", e.trace_scale);
    f("offset", e.offset);
    f("norm2", e.norm2);
    f("mix", e.mix);
    f("inner", e.inner);
    f("rate", e.rate);
    f("rounds_scale", e.rounds_scale);
    f("offset_sum", e.offset_sum);
    f("refresh_in", e.refresh_in);
    f("discarded", e.discarded);
    f("known", loop.known);
    f("steps", loop.steps);
    f("updates", loop.updates);
    f("mistakes", loop.mistakes);
}

// The state of a part: its fields by name.
using Number = std::variant<double, std::int64_t>;
using Field = std::variant<double, std::int64_t, Values>;
using Fields = std::vector<std::pair<std::string, Field>>;

template <class Part> Fields fields_of(const Part& part) {
    Fields fields;
    const auto save = [&](const char* name, const auto& field) {
        if constexpr (is_number<std::decay_t<decltype(field)>>)
            fields.emplace_back(name, field);
        else
            fields.emplace_back(name, Values(pack(field)));
    };
    std::visit([&](const auto& p) { std::decay_t<decltype(p.state)>::each(p.state, save); }, part);
    return fields;
}

// The same part with these fields, and its initial ones where there are none; whether they fit is left in `fitting`.
template <class Part> Part with_fields(Part part, const Fields& fields, int points, bool& fitting) {
    const auto restore = [&](const char* name, auto& field) {
        using F = std::decay_t<decltype(field)>;
        for (const auto& [own, value] : fields) {
            if (own != name) continue;
            if constexpr (is_number<F>) {
                field = std::get<F>(value);
            } else {
                const Values& values = std::get<Values>(value);
                fitting = fitting && fits(field, values, points);
                if (fitting) unpack(field, values, points);
            }
        }
    };
    std::visit(
        [&](auto& p) {
            p.state = {};
            std::decay_t<decltype(p.state)>::each(p.state, restore);
        },
        part);
    return part;
}

struct Saved {
    Rows2 raw, trace, summed, dropped;
    Values kappas, entered;
    std::vector<std::int64_t> births, ids;
    double level = 0;
    std::vector<Number> numbers;  // in the order of each_number
    Fields rule, budget;

    static Saved of(const Loop& loop) {
        const Expansion& e = loop.expansion;
        Saved s{e.raw, e.trace, e.summed, e.dropped, e.kappas, e.entered, e.births, e.ids, loop.level(), {}, {}, {}};
        each_number([&](const char*, const auto& number) { s.numbers.emplace_back(number); }, loop);
        s.rule = fields_of(loop.rule);
        s.budget = fields_of(loop.budget);
        return s;
    }

    void put(Loop& loop) {
        Expansion& e = loop.expansion;
        const std::size_t n = raw.size(), m = births.size();
        std::size_t i = 0, outputs = 1;
        each_number(
            [&](const char*, auto& number) {
                if (static_cast<const void*>(&number) == &loop.known)
                    outputs = static_cast<std::size_t>(std::max<std::int64_t>(std::get<std::int64_t>(numbers[i]), 1));
                ++i;
            },
            loop);
        bool fits = n == outputs && (e.labels.empty() || e.labels.size() == n * n) && summed.size() == n &&
                    dropped.size() == n && kappas.size() == m && entered.size() == m && ids.size() == m &&
                    trace.size() == (e.trace.empty() ? 0 : n);
        for (const Rows2* rows : {&raw, &trace, &summed})
            for (const Values& row : *rows) fits = fits && row.size() == m;
        Rule its_rule = with_fields(loop.rule, rule, static_cast<int>(m), fits);
        Budget its_budget = with_fields(loop.budget, budget, static_cast<int>(m), fits);
        if (!fits) throw std::invalid_argument("The 'state' parameter of the core must have arrays that fit together.");
        e.raw = std::move(raw);
        e.trace = std::move(trace);
        e.summed = std::move(summed);
        e.dropped = std::move(dropped);
        e.kappas = std::move(kappas);
        e.entered = std::move(entered);
        e.births = std::move(births);
        e.ids = std::move(ids);
        loop.rule = std::move(its_rule);
        loop.budget = std::move(its_budget);
        if (loop.adapts()) loop.set_level(level);
        i = 0;
        each_number([&](const char*, auto& number) { number = std::get<std::decay_t<decltype(number)>>(numbers[i++]); },
                    loop);
        e.restored();
    }
};

}  // namespace gossamer
