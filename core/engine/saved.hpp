// The state of a loop as plain values: taken out of it and put back while its gate is held, made Python's when it is not.
#pragma once
#include <algorithm>
#include <cstdint>
#include <stdexcept>
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
    f("spent", e.spent);
    f("room", e.room);
    f("window", e.window);
    f("window_lost", e.window_lost);
    f("inverse_age", e.inverse.age);
    f("known", loop.known);
    f("steps", loop.steps);
    f("updates", loop.updates);
    f("mistakes", loop.mistakes);
}

struct Saved {
    using Number = std::variant<double, std::int64_t>;
    Rows2 raw, trace, summed, dropped;
    Values kappas, entered, inverse;
    std::vector<std::int64_t> births, ids;
    bool with_inverse = false;
    double level = 0;
    std::vector<Number> numbers;  // in the order of each_number

    static Saved of(const Loop& loop) {
        const Expansion& e = loop.expansion;
        Saved s{e.raw, e.trace, e.summed, e.dropped, e.kappas, e.entered, {}, e.births, e.ids, e.inverse.active, 0, {}};
        if (s.with_inverse) s.inverse = e.inverse.triangle();
        s.level = loop.level();
        each_number([&](const char*, const auto& number) { s.numbers.emplace_back(number); }, loop);
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
                    trace.size() == (e.trace.empty() ? 0 : n) && (!with_inverse || inverse.size() == m * (m + 1) / 2);
        for (const Rows2* rows : {&raw, &trace, &summed})
            for (const Values& row : *rows) fits = fits && row.size() == m;
        if (!fits) throw std::invalid_argument("The 'state' parameter of the core must have arrays that fit together.");
        e.raw = std::move(raw);
        e.trace = std::move(trace);
        e.summed = std::move(summed);
        e.dropped = std::move(dropped);
        e.kappas = std::move(kappas);
        e.entered = std::move(entered);
        e.births = std::move(births);
        e.ids = std::move(ids);
        e.inverse.clear();
        if (with_inverse) e.inverse.set_triangle(inverse, static_cast<int>(m));
        if (loop.adapts()) loop.set_level(level);
        i = 0;
        each_number(
            [&](const char*, auto& number) { number = std::get<std::decay_t<decltype(number)>>(numbers[i++]); }, loop);
        e.restored();
    }
};

}  // namespace gossamer
