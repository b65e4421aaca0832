// One instruction set's version of tiles.hpp. Compiled several times with different machine flags: see simd.hpp.
// The file is long because one table of functions comes out of it, and nothing else may (simd.hpp).
#include "simd/tiles.hpp"

#include "simd/simd.hpp"

namespace gossamer {
namespace {

#if defined(__AVX512F__)
constexpr int points_at_once = 8;  // 3 x 8 accumulators of 32 registers
#else
constexpr int points_at_once = 4;  // 3 x 4 accumulators of 16 registers
#endif
constexpr int vectors_per_panel = 3;
constexpr int feature_chunk = 128;  // features and points per sweep: a panel's chunk and
constexpr int point_chunk = 32;     // the points' chunk share the first-level cache
template <class T> constexpr int lanes_of = vectors_per_panel* width<T>;

template <Pair pair, class T> inline V<T> accumulate(V<T> x, V<T> s, V<T> sum) {
    if constexpr (pair == Pair::product) return muladd(x, s, sum);
    V<T> difference = x - s;
    if constexpr (pair == Pair::distance2) return muladd(difference, difference, sum);
    return sum + absolute<T>(difference);
}

// Four rows by four features at a time, turned in registers.
template <class T> inline void turn4(const T* r0, const T* r1, const T* r2, const T* r3, T* out, int lanes) {
    typedef T Q __attribute__((vector_size(4 * sizeof(T)), aligned(sizeof(T))));
    [[maybe_unused]] typedef typename Simd<T>::Index J;  // of the places, for a GCC before 12
    const Q a = *reinterpret_cast<const Q*>(r0), b = *reinterpret_cast<const Q*>(r1);
    const Q c = *reinterpret_cast<const Q*>(r2), e = *reinterpret_cast<const Q*>(r3);
    const Q ab0 = GOSSAMER_SHUFFLE(a, b, 0, 4, 1, 5), ab1 = GOSSAMER_SHUFFLE(a, b, 2, 6, 3, 7);
    const Q ce0 = GOSSAMER_SHUFFLE(c, e, 0, 4, 1, 5), ce1 = GOSSAMER_SHUFFLE(c, e, 2, 6, 3, 7);
    *reinterpret_cast<Q*>(out) = GOSSAMER_SHUFFLE(ab0, ce0, 0, 1, 4, 5);
    *reinterpret_cast<Q*>(out + lanes) = GOSSAMER_SHUFFLE(ab0, ce0, 2, 3, 6, 7);
    *reinterpret_cast<Q*>(out + 2 * lanes) = GOSSAMER_SHUFFLE(ab1, ce1, 0, 1, 4, 5);
    *reinterpret_cast<Q*>(out + 3 * lanes) = GOSSAMER_SHUFFLE(ab1, ce1, 2, 3, 6, 7);
}

template <class T> void pack(const T* rows, std::ptrdiff_t ld, int count, int d, T* panel) {
    constexpr int lanes = lanes_of<T>;
    constexpr int tile = 16;
    const int turned = d / 4 * 4, fours = count / 4 * 4;
    for (int k0 = 0; k0 < d; k0 += tile) {
        const int k1 = k0 + tile < d ? k0 + tile : d;
        for (int r = 0; r < fours; r += 4) {
            const T* row = rows + r * ld;
            int k = k0;
            for (; k < k1 && k < turned; k += 4)
                turn4<T>(row + k, row + ld + k, row + 2 * ld + k, row + 3 * ld + k, panel + k * lanes + r, lanes);
            for (; k < k1; ++k)
                for (int i = 0; i < 4; ++i) panel[k * lanes + r + i] = row[i * ld + k];
        }
        for (int k = k0; k < k1; ++k) {
            for (int r = fours; r < count; ++r) panel[k * lanes + r] = rows[r * ld + k];
            for (int r = count; r < lanes; ++r) panel[k * lanes + r] = 0;
        }
    }
}

template <class T> void norms(const T* panel, int d, T* out) {
    V<T> sum[vectors_per_panel] = {};
    for (int k = 0; k < d; ++k)
        for (int v = 0; v < vectors_per_panel; ++v) {
            const V<T> x = load<T>(panel + k * lanes_of<T> + v * width<T>);
            sum[v] = muladd(x, x, sum[v]);
        }
    for (int v = 0; v < vectors_per_panel; ++v) store<T>(out + v * width<T>, sum[v]);
}

template <class T> T norm(const T* x, int d) {
    T sum = 0;
    for (int k = 0; k < d; ++k) sum = muladd(x[k], x[k], sum);
    return sum;
}

// One panel of rows against N points that share a point panel, over the features [k0, k1).
template <Pair pair, int N, class T>
inline void block_tile(const T* panel, const T* point, int k0, int k1, T* out, std::ptrdiff_t ldo) {
    constexpr int lanes = lanes_of<T>;
    V<T> sum[N][vectors_per_panel];
    for (int j = 0; j < N; ++j)
        for (int v = 0; v < vectors_per_panel; ++v)
            sum[j][v] = k0 == 0 ? V<T>{} : load<T>(out + j * ldo + v * width<T>);
    for (int k = k0; k < k1; ++k) {
        V<T> x[vectors_per_panel];
        for (int v = 0; v < vectors_per_panel; ++v) x[v] = load<T>(panel + k * lanes + v * width<T>);
        for (int j = 0; j < N; ++j) {
            const V<T> s = all<T>(point[k * panel_width<T> + j]);
            for (int v = 0; v < vectors_per_panel; ++v) sum[j][v] = accumulate<pair, T>(x[v], s, sum[j][v]);
        }
    }
    for (int j = 0; j < N; ++j)
        for (int v = 0; v < vectors_per_panel; ++v) store<T>(out + j * ldo + v * width<T>, sum[j][v]);
}

// Several panels of rows against one point: the column of a newcomer.
template <Pair pair, int N, class T> inline void column_tile(const T* packed, const T* point, int d, T* out) {
    constexpr int lanes = lanes_of<T>;
    V<T> sum[N][vectors_per_panel] = {};
    for (int k = 0; k < d; ++k) {
        const V<T> s = all<T>(point[k * panel_width<T>]);
        for (int p = 0; p < N; ++p)
            for (int v = 0; v < vectors_per_panel; ++v) {
                const T* x = packed + static_cast<std::ptrdiff_t>(p) * d * lanes + k * lanes + v * width<T>;
                sum[p][v] = accumulate<pair, T>(load<T>(x), s, sum[p][v]);
            }
    }
    for (int p = 0; p < N; ++p)
        for (int v = 0; v < vectors_per_panel; ++v) store<T>(out + p * lanes + v * width<T>, sum[p][v]);
}

template <class T> inline const T* point_at(const T* points, int j, int d) {
    constexpr int w = panel_width<T>;
    return points + static_cast<std::ptrdiff_t>(j / w) * d * w + j % w;
}

template <Pair pair, class T>
void cross_pair(const T* packed, int panels, int d, const T* points, int j0, int j1, T* out, std::ptrdiff_t ldo) {
    constexpr int lanes = lanes_of<T>;
    const std::ptrdiff_t panel_size = static_cast<std::ptrdiff_t>(d) * lanes;
    int j = j0;
    const auto column = [&](int point) {
        const T* s = point_at(points, point, d);
        int p = 0;
        for (; p + 3 <= panels; p += 3)
            column_tile<pair, 3>(packed + p * panel_size, s, d, out + (point - j0) * ldo + p * lanes);
        // one chain of sums waits for itself: two panels take no longer than one
        for (; p + 2 <= panels; p += 2)
            column_tile<pair, 2>(packed + p * panel_size, s, d, out + (point - j0) * ldo + p * lanes);
        for (; p < panels; ++p)
            column_tile<pair, 1>(packed + p * panel_size, s, d, out + (point - j0) * ldo + p * lanes);
    };
    while (j < j1 && j % points_at_once != 0) column(j++);
    const int whole = j + (j1 - j) / points_at_once * points_at_once;
    for (int k0 = 0; k0 < d && j < whole; k0 += feature_chunk) {
        const int k1 = k0 + feature_chunk < d ? k0 + feature_chunk : d;
        for (int i0 = j; i0 < whole; i0 += point_chunk) {
            const int i1 = i0 + point_chunk < whole ? i0 + point_chunk : whole;
            for (int p = 0; p < panels; ++p)
                for (int i = i0; i < i1; i += points_at_once)
                    block_tile<pair, points_at_once>(packed + p * panel_size, point_at(points, i, d), k0, k1,
                                                     out + (i - j0) * ldo + p * lanes, ldo);
        }
    }
    for (j = whole > j ? whole : j; j < j1; ++j) column(j);
}

template <class T>
void cross(Pair pair, const T* packed, int panels, int d, const T* points, int j0, int j1, T* out, std::ptrdiff_t ldo) {
    switch (pair) {
        case Pair::product: return cross_pair<Pair::product>(packed, panels, d, points, j0, j1, out, ldo);
        case Pair::distance1: return cross_pair<Pair::distance1>(packed, panels, d, points, j0, j1, out, ldo);
        case Pair::distance2: return cross_pair<Pair::distance2>(packed, panels, d, points, j0, j1, out, ldo);
    }
}

template <Pair pair, int N, class T> inline void row_tile(const T* x, int d, const T* points, T* out) {
    constexpr int w = panel_width<T>, parts = w / width<T>;
    V<T> sum[N][parts] = {};
    for (int k = 0; k < d; ++k) {
        const V<T> value = all<T>(x[k]);
        for (int p = 0; p < N; ++p)
            for (int v = 0; v < parts; ++v) {
                const T* s = points + static_cast<std::ptrdiff_t>(p) * d * w + k * w + v * width<T>;
                sum[p][v] = accumulate<pair, T>(value, load<T>(s), sum[p][v]);
            }
    }
    for (int p = 0; p < N; ++p)
        for (int v = 0; v < parts; ++v) store<T>(out + p * w + v * width<T>, sum[p][v]);
}

template <Pair pair, class T> void row_pair(const T* x, int d, const T* points, int m, T* out) {
    constexpr int w = panel_width<T>;
    const std::ptrdiff_t panel_size = static_cast<std::ptrdiff_t>(d) * w;
    const int panels = (m + w - 1) / w;
    int p = 0;
    for (; p + 4 <= panels; p += 4) row_tile<pair, 4>(x, d, points + p * panel_size, out + p * w);
    for (; p < panels; ++p) row_tile<pair, 1>(x, d, points + p * panel_size, out + p * w);
}

template <class T> void row(Pair pair, const T* x, int d, const T* points, int m, T* out) {
    switch (pair) {
        case Pair::product: return row_pair<Pair::product>(x, d, points, m, out);
        case Pair::distance1: return row_pair<Pair::distance1>(x, d, points, m, out);
        case Pair::distance2: return row_pair<Pair::distance2>(x, d, points, m, out);
    }
}

template <class T>
void scatter(const Posting<T>* postings, int count, T x, int j0, int j1, T* out, std::ptrdiff_t ldo) {
    for (int i = 0; i < count; ++i) {
        const int slot = postings[i].slot;
        if (slot < j0 || slot >= j1) continue;
        T& sum = out[(slot - j0) * ldo];
        sum = muladd(x, postings[i].value, sum);
    }
}

// one term of accumulate()
template <Pair pair, class T> inline T add_term(T x, T s, T sum) {
    if constexpr (pair == Pair::product) return muladd(x, s, sum);
    const T difference = x - s;
    if constexpr (pair == Pair::distance2) return muladd(difference, difference, sum);
    return sum + (difference < 0 ? -difference : difference);
}

template <Pair pair, class T>
T merge_pair(const std::int32_t* columns, const T* values, int n, const std::int32_t* other_columns,
             const T* other_values, int m) {
    T sum = 0;
    int i = 0, j = 0;
    while (i < n && j < m) {
        const std::int32_t a = columns[i], b = other_columns[j];
        if (a == b)
            sum = add_term<pair, T>(values[i], other_values[j], sum);
        else if constexpr (pair != Pair::product)
            sum = a < b ? add_term<pair, T>(values[i], 0, sum) : add_term<pair, T>(0, other_values[j], sum);
        i += a <= b;
        j += b <= a;
    }
    if constexpr (pair != Pair::product) {
        for (; i < n; ++i) sum = add_term<pair, T>(values[i], 0, sum);
        for (; j < m; ++j) sum = add_term<pair, T>(0, other_values[j], sum);
    }
    return sum;
}

template <class T>
T merge(Pair pair, const std::int32_t* columns, const T* values, int count, const std::int32_t* other_columns,
        const T* other_values, int other_count) {
    switch (pair) {
        case Pair::product: break;
        case Pair::distance1:
            return merge_pair<Pair::distance1>(columns, values, count, other_columns, other_values, other_count);
        case Pair::distance2:
            return merge_pair<Pair::distance2>(columns, values, count, other_columns, other_values, other_count);
    }
    return merge_pair<Pair::product>(columns, values, count, other_columns, other_values, other_count);
}

template <class T> inline V<T> square_root(V<T> v) {
    V<T> r;
    for (int i = 0; i < width<T>; ++i) r[i] = sizeof(T) == 4 ? __builtin_sqrtf(v[i]) : __builtin_sqrt(v[i]);
    return r;
}

template <Map map, class T> inline V<T> mapped(const MapParams& params, V<T> z) {
    const V<T> gamma = all<T>(static_cast<T>(params.gamma));
    if constexpr (map == Map::identity) return z;
    if constexpr (map == Map::polynomial)
        return raised<T>(muladd(gamma, z, all<T>(static_cast<T>(params.coef0))), params.degree);
    if constexpr (map == Map::gaussian || map == Map::laplace) return exp_negative<T>(-gamma * z);
    const V<T> r = gamma * square_root<T>(z);  // gamma = sqrt(2 nu) / length
    const V<T> decay = exp_negative<T>(-r);
    V<T> sum = all<T>(static_cast<T>(params.coefs[params.degree]));
    for (int j = params.degree - 1; j >= 0; --j) sum = muladd(sum, r, all<T>(static_cast<T>(params.coefs[j])));
    return decay * sum;
}

template <Map map, int N, class T>
inline void map_tile(const MapParams& params, const T* in, const T* norms, T norm, T* out) {
    V<T> z[N];
    for (int v = 0; v < N; ++v) z[v] = load<T>(in + v * width<T>);
    if (norms != nullptr)
        for (int v = 0; v < N; ++v) {
            const V<T> squared = muladd(all<T>(-2), z[v], load<T>(norms + v * width<T>) + all<T>(norm));
            z[v] = squared < 0 ? V<T>{} : squared;
        }
    for (int v = 0; v < N; ++v) z[v] = mapped<map, T>(params, z[v]);
    for (int v = 0; v < N; ++v) store<T>(out + v * width<T>, z[v]);
}

template <Map map, class T>
void map_loop(const MapParams& params, const T* in, const T* norms, T norm, int count, T* out) {
    constexpr int step = vectors_per_panel * width<T>;
    int i = 0;
    for (; i + step <= count; i += step)
        map_tile<map, vectors_per_panel>(params, in + i, norms == nullptr ? nullptr : norms + i, norm, out + i);
    for (; i < count; i += width<T>)
        map_tile<map, 1>(params, in + i, norms == nullptr ? nullptr : norms + i, norm, out + i);
}

template <class T>
void map_values(Map map, const MapParams& params, const T* in, const T* norms, T norm, int count, T* out) {
    switch (map) {
        case Map::identity: return map_loop<Map::identity>(params, in, norms, norm, count, out);
        case Map::polynomial: return map_loop<Map::polynomial>(params, in, norms, norm, count, out);
        case Map::gaussian: return map_loop<Map::gaussian>(params, in, norms, norm, count, out);
        case Map::laplace: return map_loop<Map::laplace>(params, in, norms, norm, count, out);
        case Map::matern: return map_loop<Map::matern>(params, in, norms, norm, count, out);
    }
}

template <class T> void distances(const T* in, const T* norms, T norm, const T* direct, T limit, int count, T* out) {
    for (int i = 0; i < count; i += width<T>) {
        const V<T> total = load<T>(norms + i) + all<T>(norm);
        const V<T> squared = muladd(all<T>(-2), load<T>(in + i), total);
        const V<T> product = squared < 0 ? V<T>{} : squared;
        store<T>(out + i, total > limit ? load<T>(direct + i) : product);
    }
}

template <class T> void waves(const T* in, int count, T height, T* cosines, T* sines) {
    for (int i = 0; i < count; i += width<T>) {
        V<T> cosine, sine;
        turn_by<T>(load<T>(in + i), cosine, sine);
        store<T>(cosines + i, all<T>(height) * cosine);
        store<T>(sines + i, all<T>(height) * sine);
    }
}

template <class T> T largest(const T* values, int count) {
    T best = values[0];
    for (int i = 1; i < count; ++i) best = values[i] > best ? values[i] : best;
    return best;
}

// `width<double>` kernel values as doubles
inline V<double> widen(const double* p) { return load<double>(p); }
inline V<double> widen(const float* p) {
    typedef float H __attribute__((vector_size(vector_bytes / 2), aligned(4)));
    return __builtin_convertvector(*reinterpret_cast<const H*>(p), V<double>);
}

template <int N, class T>
inline void partial_tile(const T* g, std::ptrdiff_t ldo, const double* coefs, int m, int q, double* out, bool add) {
    V<double> sum[N];
    for (int v = 0; v < N; ++v) sum[v] = add ? load<double>(out + v * width<double>) : V<double>{};
    for (int j = q; j < m; j += partial_sums)
        for (int v = 0; v < N; ++v)
            sum[v] = muladd(all<double>(coefs[j]), widen(g + j * ldo + v * width<double>), sum[v]);
    for (int v = 0; v < N; ++v) store<double>(out + v * width<double>, sum[v]);
}

template <class T>
void partial(const T* g, std::ptrdiff_t ldo, const double* coefs, int m, int q, int t0, int t1, double* out, bool add) {
    constexpr int whole = 16 / width<double>;
    int t = t0 / 8 * 8;
    for (; t + 16 <= (t1 + 7) / 8 * 8; t += 16) partial_tile<whole>(g + t, ldo, coefs, m, q, out + t, add);
    if (t < t1) partial_tile<whole / 2>(g + t, ldo, coefs, m, q, out + t, add);
}

template <class T> double dot(const T* g, const double* coefs, int m) {
    constexpr int parts = partial_sums / width<double>;
    V<double> sum[parts] = {};
    int j = 0;
    for (; j + partial_sums <= m; j += partial_sums)
        for (int v = 0; v < parts; ++v)
            sum[v] = muladd(load<double>(coefs + j + v * width<double>), widen(g + j + v * width<double>), sum[v]);
    if (j < m) {  // the last, shorter group, with zeros behind it: 0 * 0 + sum leaves a sum as it is
        double c[partial_sums] = {};
        T k[partial_sums] = {};
        for (int i = 0; j + i < m; ++i) {
            c[i] = coefs[j + i];
            k[i] = g[j + i];
        }
        for (int v = 0; v < parts; ++v)
            sum[v] = muladd(load<double>(c + v * width<double>), widen(k + v * width<double>), sum[v]);
    }
    double sums[partial_sums];
    for (int v = 0; v < parts; ++v) store<double>(sums + v * width<double>, sum[v]);
    return fold(sums, 1);
}

template <int N, class T> inline void combine_tile(const T* g, std::ptrdiff_t ldo, const T* coefs, int m, T* out) {
    V<T> sum[N] = {};
    for (int j = 0; j < m; ++j)
        for (int v = 0; v < N; ++v) sum[v] = muladd(all<T>(coefs[j]), load<T>(g + j * ldo + v * width<T>), sum[v]);
    for (int v = 0; v < N; ++v) store<T>(out + v * width<T>, sum[v]);
}

template <class T> void combine(const T* g, std::ptrdiff_t ldo, const T* coefs, int m, int n, T* out) {
    constexpr int line = panel_width<T>, vectors = line / width<T>;
    int t = 0;
    for (; t + 4 * line <= n; t += 4 * line) combine_tile<4 * vectors>(g + t, ldo, coefs, m, out + t);
    for (; t < n; t += line) combine_tile<vectors>(g + t, ldo, coefs, m, out + t);
}

template <class T> void rank_two(T* q, T a, const T* first, T b, const T* second, int count) {
    int j = 0;
    for (; j + width<T> <= count; j += width<T>) {
        const V<T> less = muladd(all<T>(-b), load<T>(second + j), load<T>(q + j));
        store<T>(q + j, muladd(all<T>(a), load<T>(first + j), less));
    }
    for (; j < count; ++j) q[j] = muladd(a, first[j], muladd(-b, second[j], q[j]));
}

template <int N, class T>
inline void turn_tile(T* q, std::ptrdiff_t ldo, const T* first, const T* second, const T* a, const T* b, const T* coefs,
                      int m, T* out) {
    V<T> sum[N] = {}, one[N], two[N];
    for (int v = 0; v < N; ++v) {
        one[v] = load<T>(first + v * width<T>);
        two[v] = load<T>(second + v * width<T>);
    }
    for (int j = 0; j < m; ++j)
        for (int v = 0; v < N; ++v) {
            T* at = q + j * ldo + v * width<T>;
            const V<T> less = muladd(all<T>(-b[j]), two[v], load<T>(at));
            const V<T> changed = muladd(all<T>(a[j]), one[v], less);
            store<T>(at, changed);
            sum[v] = muladd(all<T>(coefs[j]), changed, sum[v]);
        }
    for (int v = 0; v < N; ++v) store<T>(out + v * width<T>, sum[v]);
}

template <class T>
void turn(T* q, std::ptrdiff_t ldo, const T* first, const T* second, const T* coefs, int m, int n, T* out) {
    constexpr int line = panel_width<T>, vectors = line / width<T>;
    constexpr int lines = vectors == 1 ? 4 : 1;  // three vectors of each in the registers
    int t = 0;
    for (; t + lines * line <= n; t += lines * line)
        turn_tile<lines * vectors>(q + t, ldo, first + t, second + t, first, second, coefs, m, out + t);
    for (; t < n; t += line) turn_tile<vectors>(q + t, ldo, first + t, second + t, first, second, coefs, m, out + t);
}

template <class T> void squares(T* values, const T* first, const T* second, int count) {
    for (int j = 0; j < count; ++j) values[j] = muladd(first[j], first[j], muladd(-second[j], second[j], values[j]));
}

// one vector of a row, changed by the products of the row's factors f with the vectors t
template <int rank, class T> inline V<T> change(V<T> q, const V<T>* t, const T (*f)[3]) {
    if constexpr (rank == 0) return q;
    if constexpr (rank == 3) q = muladd(all<T>(-(*f)[1]), t[1], q);
    q = muladd(all<T>((*f)[0]), t[0], q);
    if constexpr (rank == 3) q = muladd(all<T>((*f)[2]), t[2], q);
    return q;
}

template <int rank, bool product, class T>
inline void reflect_tile(T* rows, std::ptrdiff_t ld, int column, const T* const* terms, const T* k, T* out) {
    constexpr int block = panel_width<T>, parts = block / width<T>, at_once = parts == 1 ? 8 : 4;
    T totals[block];
    for (int first = 0; first < block; first += at_once) {
        T factors[at_once][3] = {};
        for (int r = 0; r < at_once; ++r)
            for (int i = 0; i < rank; ++i) factors[r][i] = terms[i][column + first + r];
        const T* own = k + column + first;
        T* row = rows + first * ld;
        V<T> sum[at_once][parts] = {};
        for (int j = 0; j <= column; j += block)
            for (int v = 0; v < parts; ++v) {
                const int at = j + v * width<T>;
                V<T> t[3], to{}, factor{};
                for (int i = 0; i < rank; ++i) t[i] = load<T>(terms[i] + at);
                if constexpr (product) {
                    if (j < column) factor = load<T>(k + at);  // 0 in the block on the diagonal, which is whole
                    if (j < column || first > 0) to = load<T>(out + at);
                }
                for (int r = 0; r < at_once; ++r) {
                    const V<T> q = change<rank, T>(load<T>(row + r * ld + at), t, &factors[r]);
                    if constexpr (rank > 0) store<T>(row + r * ld + at, q);
                    if constexpr (product) {
                        sum[r][v] = muladd(factor, q, sum[r][v]);
                        to = muladd(all<T>(own[r]), q, to);
                    }
                }
                if constexpr (product) store<T>(out + at, to);
            }
        for (int r = 0; r < at_once && product; ++r) {
            T part[block];
            for (int v = 0; v < parts; ++v) store<T>(part + v * width<T>, sum[r][v]);
            for (int half = block / 2; half > 0; half /= 2)
                for (int i = 0; i < half; ++i) part[i] += part[i + half];
            totals[first + r] = part[0];
        }
    }
    for (int r = 0; r < block && product; ++r) out[column + r] += totals[r];
}

template <class T>
void reflect(T* rows, std::ptrdiff_t ld, int column, const T* const* terms, int rank, const T* k, T* out) {
    if (k == nullptr) {
        if (rank == 1) reflect_tile<1, false>(rows, ld, column, terms, rows, out);
        if (rank == 3) reflect_tile<3, false>(rows, ld, column, terms, rows, out);
    } else {
        if (rank == 0) reflect_tile<0, true>(rows, ld, column, terms, k, out);
        if (rank == 1) reflect_tile<1, true>(rows, ld, column, terms, k, out);
        if (rank == 3) reflect_tile<3, true>(rows, ld, column, terms, k, out);
    }
}

template <class T> T least(const T* values, const T* roots, int count) {
    const auto weight = [&](int i) {
        const T size = values[i] < 0 ? -values[i] : values[i];
        return roots == nullptr ? size : size * roots[i];
    };
    int i = 0;
    T best = weight(0);
    if (count >= width<T>) {
        V<T> smallest = all<T>(best);
        for (; i + width<T> <= count; i += width<T>) {
            V<T> size = absolute<T>(load<T>(values + i));
            if (roots != nullptr) size = size * load<T>(roots + i);
            smallest = size < smallest ? size : smallest;
        }
        for (int l = 0; l < width<T>; ++l) best = smallest[l] < best ? smallest[l] : best;
    }
    for (; i < count; ++i) best = weight(i) < best ? weight(i) : best;
    return best;
}

// x * 0 is 0 for a finite x and NaN for any other
template <class T> bool finite(const T* values, std::size_t count) {
    constexpr std::size_t step = 4 * width<T>;
    V<T> sum[4] = {};
    std::size_t i = 0;
    for (; i + step <= count; i += step)
        for (int v = 0; v < 4; ++v) sum[v] += load<T>(values + i + v * width<T>) * 0;
    T rest = 0;
    for (; i < count; ++i) rest += values[i] * 0;
    for (int v = 0; v < 4; ++v)
        for (int l = 0; l < width<T>; ++l) rest += sum[v][l];
    return rest == 0;
}

// the row with the largest squared norm, or the first whose norm is not finite; any order of summation will do
template <class T> std::size_t longest(const T* rows, std::size_t n, int d, T* norm) {
    std::size_t best = 0;
    *norm = -1;
    for (std::size_t i = 0; i < n; ++i) {
        const T* x = rows + i * d;
        V<T> sum[4] = {};
        int k = 0;
        for (; k + 4 * width<T> <= d; k += 4 * width<T>)
            for (int v = 0; v < 4; ++v) {
                const V<T> part = load<T>(x + k + v * width<T>);
                sum[v] = muladd(part, part, sum[v]);
            }
        T total = 0;
        for (; k < d; ++k) total += x[k] * x[k];
        const V<T> folded = (sum[0] + sum[1]) + (sum[2] + sum[3]);
        for (int l = 0; l < width<T>; ++l) total += folded[l];
        if (total <= *norm) continue;
        *norm = total;
        best = i;
        if (!(total - total == 0)) break;
    }
    return best;
}

template <class T> constexpr Tiles<T> table() {
    return {isa_name,    lanes_of<T>,   pack<T>,      norms<T>,   norm<T>,    cross<T>,   row<T>,    scatter<T>,
            merge<T>,    map_values<T>, distances<T>, waves<T>,   largest<T>, partial<T>, dot<T>,    combine<T>,
            rank_two<T>, turn<T>,       squares<T>,   reflect<T>, least<T>,   finite<T>,  longest<T>};
}

}  // namespace

extern const Tiles<float> GOSSAMER_PASTE(tiles32_, GOSSAMER_ISA_NAME);
extern const Tiles<double> GOSSAMER_PASTE(tiles64_, GOSSAMER_ISA_NAME);
const Tiles<float> GOSSAMER_PASTE(tiles32_, GOSSAMER_ISA_NAME) = table<float>();
const Tiles<double> GOSSAMER_PASTE(tiles64_, GOSSAMER_ISA_NAME) = table<double>();

}  // namespace gossamer
