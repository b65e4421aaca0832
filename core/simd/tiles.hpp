// The arithmetic that must be fast, compiled once per instruction set and chosen at run time.
//
// Every number here is made in an order that does not depend on how rows are grouped: a product or distance runs
// over the features from first to last, a score over sixteen interleaved partial sums. A row therefore gets the same
// bits alone, in a block, or in another block, which is what makes the law of batches exact.
#pragma once
#include <cstddef>
#include <cstdint>

namespace gossamer {

// Support points are kept in panels of one cache line: point j, feature k is at panel[j / width][k][j % width].
template <class T> constexpr int panel_width = 64 / static_cast<int>(sizeof(T));

// Partial sums of a score: slot j belongs to sum j % partial_sums.
constexpr int partial_sums = 16;

// What is accumulated over the features of a pair: x.s, sum |x - s|, or sum (x - s)^2.
enum class Pair : int { product, distance1, distance2 };
constexpr Pair all_pairs[] = {Pair::product, Pair::distance1, Pair::distance2};

constexpr int most_matern = 16;

// What is made of it. For `gaussian` and `matern` the argument is the squared distance.
enum class Map : int { identity, polynomial, gaussian, laplace, matern };

struct MapParams {
    double gamma = 1.0;
    double coef0 = 0.0;
    int degree = 1;
    double coefs[most_matern + 1] = {};  // of matern: e^-r sum_j coefs[j] r^j
};

// A non-zero of a support point, in the list of its column (engine/sparse_points.hpp).
template <class T> struct Posting {
    int slot;
    T value;
};

template <class T> struct Tiles {
    const char* name;
    int lanes;  // rows in a packed panel of X

    // rows (count x d, row stride ld) -> panel (d x lanes), the missing rows zero
    void (*pack)(const T* rows, std::ptrdiff_t ld, int count, int d, T* panel);

    // squared norms of a packed panel's rows, and of one row: the bits of a product of a row with itself
    void (*norms)(const T* panel, int d, T* out);
    T (*norm)(const T* x, int d);

    // out[(j - j0) * ldo + row] for the points j in [j0, j1) and the rows of `panels` consecutive panels
    void (*cross)(Pair pair, const T* packed, int panels, int d, const T* points, int j0, int j1, T* out,
                  std::ptrdiff_t ldo);

    // out[j] for one row and the points [0, m); out has room for m rounded up to a panel
    void (*row)(Pair pair, const T* x, int d, const T* points, int m, T* out);

    // The same of sparse rows, with the same bits. out[(slot - j0) * ldo] += x * value for the postings of a column with slots
    // in [j0, j1); and the pair of two rows, over the columns of either.
    void (*scatter)(const Posting<T>* postings, int count, T x, int j0, int j1, T* out, std::ptrdiff_t ldo);
    T(*merge)
    (Pair pair, const std::int32_t* columns, const T* values, int count, const std::int32_t* other_columns,
     const T* other_values, int other_count);

    // out[i] = map(in[i]); for distances made of products, first in[i] <- max(0, norms[i] + norm - 2 in[i])
    void (*map)(Map map, const MapParams& params, const T* in, const T* norms, T norm, int count, T* out);

    // squared distances where some are too close to be made of products:
    // out[i] = norms[i] + norm > limit ? direct[i] : max(0, norms[i] + norm - 2 in[i])
    void (*distances)(const T* in, const T* norms, T norm, const T* direct, T limit, int count, T* out);

    // cosines[i] = height * cos(in[i]), sines[i] = height * sin(in[i]), count rounded up to a vector; beyond the range in
    // which a phase means something, where its rounding is as large as itself, the phase is taken as 0
    void (*waves)(const T* in, int count, T height, T* cosines, T* sines);

    T (*largest)(const T* values, int count);

    // out[t] (+)= sum over j = q, q + 16, ... < m of coefs[j] * g[j * ldo + t], for t in [t0, t1) rounded out to 8;
    // `add` goes on from what is in out
    void (*partial)(const T* g, std::ptrdiff_t ldo, const double* coefs, int m, int q, int t0, int t1, double* out,
                    bool add);

    // the same sixteen sums for one row g[0, m), folded
    double (*dot)(const T* g, const double* coefs, int m);

    // out[t] = sum over j < m of coefs[j] * g[j * ldo + t], for t < n rounded up to a cache line
    void (*combine)(const T* g, std::ptrdiff_t ldo, const T* coefs, int m, int n, T* out);

    // q[j] += a first[j] - b second[j]
    void (*rank_two)(T* q, T a, const T* first, T b, const T* second, int count);

    // rank_two of every row of a matrix, q[j] by first[j] and second[j], and then combine, in one pass
    void (*turn)(T* q, std::ptrdiff_t ldo, const T* first, const T* second, const T* coefs, int m, int n, T* out);

    // the diagonal of that: values[j] += first[j]^2 - second[j]^2
    void (*squares)(T* values, const T* first, const T* second, int count);

    // A block of panel_width rows of a symmetric matrix of which the lower triangle and the whole blocks on the diagonal
    // are kept, ld apart, from its first column to the block on the diagonal, which begins at `column`. It takes
    // t0 t0' (rank 1) and - t1 t1' + t2 t2' (rank 3), and then its part of out = matrix k is added, unless k is null;
    // the part of the block on the diagonal is the first that out has there. All vectors are padded with zeros.
    void (*reflect)(T* rows, std::ptrdiff_t ld, int column, const T* const* terms, int rank, const T* k, T* out);

    // min of |values[i]| * roots[i], or of |values[i]| where roots is null
    T (*least)(const T* values, const T* roots, int count);

    bool (*finite)(const T* values, std::size_t count);

    // the row of the largest squared norm of n rows of d, or the first whose norm is not finite; and that norm
    std::size_t (*longest)(const T* rows, std::size_t n, int d, T* norm);
};

// The sixteen partial sums, stride apart, folded in the one order used everywhere.
static inline double fold(const double* sums, std::ptrdiff_t stride) {
    double r[partial_sums];
    for (int q = 0; q < partial_sums; ++q) r[q] = sums[q * stride];
    for (int half = partial_sums / 2; half > 0; half /= 2)
        for (int q = 0; q < half; ++q) r[q] += r[q + half];
    return r[0];
}

// The best set this machine can run, or the one named by GOSSAMER_ISA (baseline, avx2, avx512).
template <class T> const Tiles<T>& tiles();

}  // namespace gossamer
