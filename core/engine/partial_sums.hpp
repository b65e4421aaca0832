// The scores of a block's rows as sixteen partial sums per row and output: slot i is in sum i % 16. When a slot changes,
// only its own partial sum is made again, for the rows still to come.
#pragma once
#include <cstddef>

#include "engine/expansion.hpp"
#include "simd/tiles.hpp"

namespace gossamer {

// Kernel values stand in g, slots down, rows of the block across, ld apart. A single row (ld 1 or 0) needs no sums.
class PartialSums {
public:
    template <class T> void begin(const Expansion& e, const T* g, std::ptrdiff_t ld, int rows) {
        ld_ = ld;
        rows_ = rows;
        all(e, g, 0);
    }

    // the sum of a row of coefficients at row t of the block
    double at(int coefs, int t) const { return fold(sums_.data() + start(coefs, 0) + t, ld_); }

    // the partial sums that a slot is in, made again for the rows from `from` on
    template <class T> void slot(const Expansion& e, const T* g, int slot, int from) {
        if (ld_ <= 1 || from >= rows_) return;
        const int q = slot % partial_sums;
        each(e, q, [&](const Values& coefs, double* sums) {
            tiles<T>().partial(g, ld_, coefs.data(), e.size(), q, from, rows_, sums, false);
        });
    }

    // one more term at the end of the partial sums of the last slot: the same bits, in less time
    template <class T> void extend(const Expansion& e, const T* g, int slot, int from) {
        if (ld_ <= 1 || from >= rows_) return;
        each(e, slot % partial_sums, [&](const Values& coefs, double* sums) {
            tiles<T>().partial(g + slot * ld_, ld_, coefs.data() + slot, 1, 0, from, rows_, sums, true);
        });
    }

    template <class T> void all(const Expansion& e, const T* g, int from) {
        if (ld_ <= 1) return;
        sums_.resize((e.raw.size() + e.trace.size()) * partial_sums * ld_);
        for (int q = 0; q < partial_sums; ++q) slot(e, g, q, from);
    }

private:
    Values sums_;  // [(coefficient row * 16 + partial sum) * ld + row of the block]
    std::ptrdiff_t ld_ = 0;
    int rows_ = 0;

    std::ptrdiff_t start(int coefs, int q) const {
        return (static_cast<std::ptrdiff_t>(coefs) * partial_sums + q) * ld_;
    }
    template <class F> void each(const Expansion& e, int q, F&& f) {
        int row = 0;
        for (const Rows2* rows : {&e.raw, &e.trace})
            for (const Values& coefs : *rows) f(coefs, sums_.data() + start(row++, q));
    }
};

}  // namespace gossamer
