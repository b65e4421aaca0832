// A column of categories in a fixed width: frequent ones have a place, the rest share hashed ones.
//
// The entries are P places and then some candidates, each with a count that fades: a row at time t adds growth^t, so that
// older ones weigh less without being touched. (All counts are divided by a power of two after every `period` rows, which
// changes no comparison.) A category without an entry takes a free place, else a free candidate, else the candidate with
// the least count, whose count it inherits as its possible error (Space-Saving: Metwally, Agrawal and El Abbadi 2005). A
// candidate that certainly came `LEAST` times lately, and `FACTOR` times as often as the least used place, gets that
// place; who had it becomes the candidate.
#pragma once

#include <cstdint>
#include <utility>

namespace gossamer {

struct Categories {
    static constexpr double LEAST = 3.0, FACTOR = 1.5;
    static constexpr double FOLD = 1.0 / (1ull << 40);

    std::int64_t places = 0, entries = 0;
    double *counts = nullptr, *errors = nullptr;  // (entries,)
    std::int64_t* owners = nullptr;               // (entries,): the code of the category there; -1 for none
    std::int64_t* found = nullptr;                // (codes,): the entry of each code; -1 for none
    double weight = 1.0, growth = 1.0;            // of this row, and from row to row
    std::int64_t row = 0, period = 1;             // rows since the counts were last divided

    std::int64_t least(std::int64_t first, std::int64_t last) const {
        std::int64_t best = first;
        for (std::int64_t e = first; e < last; ++e) {
            if (owners[e] == -1) return e;
            if (counts[e] < counts[best]) best = e;
        }
        return best;
    }

    void learn(std::int64_t code) {
        if (code >= 0) count(code);
        weight *= growth;
        if (++row < period) return;
        row = 0, weight = 1.0;
        for (std::int64_t e = 0; e < entries; ++e) counts[e] *= FOLD, errors[e] *= FOLD;
    }

    void count(std::int64_t code) {
        std::int64_t entry = found[code];
        if (entry < 0) {
            entry = least(0, places);
            if (owners[entry] != -1) entry = least(places, entries);
            const bool taken = owners[entry] >= 0;
            if (taken) found[owners[entry]] = -1;
            errors[entry] = taken ? counts[entry] : 0.0;
            owners[entry] = code;
            found[code] = entry;
        }
        counts[entry] += weight;
        if (entry < places) return;
        const double sure = counts[entry] - errors[entry];
        const std::int64_t place = least(0, places);
        if (sure < LEAST * weight || sure <= FACTOR * counts[place]) return;
        std::swap(owners[entry], owners[place]);
        counts[entry] = std::exchange(counts[place], sure);
        errors[entry] = errors[place] = 0.0;
        found[code] = place;
        if (owners[entry] >= 0) found[owners[entry]] = entry;
    }
};

// codes: (rows,), -1 for a gap; buckets: (codes of this batch,), the hashed place of each, after the others. Writes a 1
// for each row into out, (rows, width), from `first` on; a gap leaves zeros.
inline void encode_categories(Categories& c, const std::int32_t* codes, const std::int64_t* buckets, double* out,
                              std::int64_t rows, std::int64_t width, std::int64_t first, bool learn) {
    for (std::int64_t t = 0; t < rows; ++t, out += width) {
        const std::int64_t code = codes[t];
        if (code >= 0) {
            const std::int64_t entry = c.found[code];
            out[first + (entry >= 0 && entry < c.places ? entry : c.places + buckets[code])] = 1.0;
        }
        if (learn) c.learn(code);
    }
}

}  // namespace gossamer
