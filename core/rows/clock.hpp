// Timestamps as points on circles: the time of the day, the day of the week, the day of the year. Scalar sines and
// cosines, one row after the other: the bits do not depend on the batch. A day of the week is one of seven points, as
// weekdays and weekends differ from one midnight to the next.
#pragma once

#include <cmath>
#include <cstdint>

namespace gossamer {

struct Circles {
    std::int64_t day = -1, week = -1, year = -1;  // where the sine goes, the cosine after it; -1 leaves a circle out
};

inline void put_circle(double* place, double share) {
    constexpr double turn = 6.283185307179586476925286766559;
    place[0] = std::sin(turn * share);
    place[1] = std::cos(turn * share);
}

// The days from 1970-01-01 to the first of January of the year of a day, and the length of that year (proleptic
// Gregorian calendar; years that begin in March make leap days the last of a year).
inline std::int64_t year_start(std::int64_t days, std::int64_t& length) {
    const std::int64_t z = days + 719468, era = (z >= 0 ? z : z - 146096) / 146097, of_era = z - era * 146097;
    const std::int64_t y = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    const std::int64_t of_year = of_era - (365 * y + y / 4 - y / 100);
    const std::int64_t year = y + era * 400 + (of_year >= 306 ? 1 : 0), before = year - 1;
    const auto down = [](std::int64_t a, std::int64_t b) { return (a >= 0 ? a : a - b + 1) / b; };
    length = (year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)) ? 366 : 365;
    return 365 * before + down(before, 4) - down(before, 100) + down(before, 400) - 719162;
}

// seconds: (rows,), local seconds since 1970, NaN for a gap, which leaves zeros: the middle of each circle.
inline void encode_clock(const double* seconds, double* out, std::int64_t rows, std::int64_t width, Circles c) {
    constexpr double day = 86400.0;
    for (std::int64_t t = 0; t < rows; ++t, out += width) {
        const double now = seconds[t];
        if (!(std::fabs(now) < 1e14)) continue;  // NaN, and what no calendar has
        const double days = std::floor(now / day), of_day = (now - days * day) / day;
        if (c.day >= 0) put_circle(out + c.day, of_day);
        if (c.week >= 0) {
            const double since_monday = days + 3.0;  // 1970-01-01 was a Thursday
            put_circle(out + c.week, (since_monday - 7.0 * std::floor(since_monday / 7.0)) / 7.0);
        }
        if (c.year >= 0) {
            std::int64_t length = 365;
            const auto whole = static_cast<std::int64_t>(days);
            const std::int64_t start = year_start(whole, length);
            put_circle(out + c.year, (static_cast<double>(whole - start) + of_day) / static_cast<double>(length));
        }
    }
}

// log(1 + the seconds since the row before), negative where time goes back, NaN where it is unknown. With `together`, each
// row comes after `last`, not after the row before it. Returns the time of the last row that has one.
inline double encode_gaps(const double* seconds, double* out, std::int64_t rows, double last, bool together) {
    for (std::int64_t t = 0; t < rows; ++t) {
        const double away = seconds[t] - last;
        out[t] = std::copysign(std::log1p(std::fabs(away)), away);
        if (!together && !std::isnan(seconds[t])) last = seconds[t];
    }
    return last;
}

// A number on a circle of this period.
inline void encode_cycle(const double* values, double* out, std::int64_t rows, std::int64_t width, std::int64_t first,
                         double period) {
    for (std::int64_t t = 0; t < rows; ++t, out += width) {
        const double turns = values[t] / period;
        if (std::fabs(turns) < 1e15) put_circle(out + first, turns - std::floor(turns));
    }
}

}  // namespace gossamer
