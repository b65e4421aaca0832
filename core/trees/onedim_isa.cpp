// One instruction set's version of onedim.hpp. Compiled several times with different machine flags: see simd.hpp.
#include "trees/onedim.hpp"

#include "simd/simd.hpp"

namespace gossamer {
namespace {

typedef V<double> D;
typedef Term::Kind Kind;
constexpr int lanes = width<double>;
constexpr double far = 750;  // e^-750 is 0, and no power of it overflows

template <int n> struct Fixed {
    constexpr operator int() const { return n; }
};

// Most kernels are of low order: with the order known, the compiler unrolls the loops over it.
template <class F> inline void by_order(int order, F&& f) {
    switch (order) {
        case 0: return f(Fixed<0>{});
        case 1: return f(Fixed<1>{});
        case 2: return f(Fixed<2>{});
        default: return f(order);
    }
}

template <class T> inline V<T> lower(V<T> a, V<T> b) { return a < b ? a : b; }

template <class T> inline V<T> horner(const double* coefs, int order, V<T> u) {
    V<T> sum = all<T>(static_cast<T>(coefs[order]));
    for (int j = order - 1; j >= 0; --j) sum = muladd(sum, u, all<T>(static_cast<T>(coefs[j])));
    return sum;
}

// k(p, q) of one term, see value() in onedim.hpp
template <class T, class Order> inline V<T> values(const Term& term, Order order, V<T> p, V<T> q) {
    if (term.kind == Kind::power) return all<T>(static_cast<T>(term.coefs[0])) * raised<T>(p * q, order);
    const V<T> a = lower<T>(p, q), r = absolute<T>(p - q);
    if (term.kind == Kind::decay) {
        const V<T> u = lower<T>(all<T>(static_cast<T>(term.theta)) * r, all<T>(static_cast<T>(far)));
        return exp_negative<T>(-u) * horner<T>(term.coefs, order, u);
    }
    V<T> sum = all<T>(static_cast<T>(term.coefs[order])), high = a;  // a^(z-j) goes up as j goes down
    for (int j = order - 1; j >= 0; --j) {
        sum = muladd(sum, r, high * all<T>(static_cast<T>(term.coefs[j])));
        high = high * a;
    }
    return sum * high;
}

template <class T> void add(const Term* terms, int count, T x, const T* s, int n, T* out) {
    for (int k = 0; k < count; ++k)
        by_order(terms[k].order, [&](auto order) {
            for (int i = 0; i < n; i += width<T>)
                store<T>(out + i, load<T>(out + i) + values<T>(terms[k], order, all<T>(x), load<T>(s + i)));
        });
}

typedef Simd<double>::I Mask;

inline D numbered(int first) {  // first, first + 1, ...
    D lane;
    for (int l = 0; l < lanes; ++l) lane[l] = l;
    return lane + all<double>(first);
}

inline D chosen(Mask mask, D v) { return mask ? v : D{}; }  // also where v is not finite

// C(n, k) for n up to a term's order
template <class Order> inline double binomial(Order, int n, int k) { return binomials(n)[k]; }
inline double binomial(Fixed<0>, int, int) { return 1; }
inline double binomial(Fixed<1>, int, int) { return 1; }

// Eight partial sums, in as many vectors as they need: every instruction set adds in the same order, to the same bits.
struct Sums {
    static constexpr int count = 8, vectors = count / lanes;
    D part[vectors] = {};

    void add(int i, D a, D b) { part[i % vectors] = muladd(a, b, part[i % vectors]); }  // vector i of a long product
    void add(int i, D a) { part[i % vectors] += a; }
    double total() const {
        double sum = 0;
        for (int v = 0; v < vectors; ++v)
            for (int l = 0; l < lanes; ++l) sum += part[v][l];
        return sum;
    }
};

void leaf(const Term* terms, int count, double x, const double* keys, int n, const double* coefs, int rows,
          double* out) {
    constexpr int vectors = leaf_size / lanes;
    const int used = (n + Sums::count - 1) / Sums::count * Sums::vectors;
    D w[vectors] = {};
    for (int k = 0; k < count; ++k)
        if (terms[k].kind != Kind::power)
            by_order(terms[k].order, [&](auto order) {
                for (int v = 0; v < used; ++v)
                    w[v] += values<double>(terms[k], order, all<double>(x), load<double>(keys + v * lanes));
            });
    for (int r = 0; r < rows; ++r) {  // the coefficients behind the last entry are 0
        Sums sum;
        for (int v = 0; v < used; ++v) sum.add(v, w[v], load<double>(coefs + r * leaf_size + v * lanes));
        out[r] += sum.total();
    }
}

// w[k * fan + i]: the weight of moment k of child i in f(x)
template <class Order>
inline void read_decay(const Term& term, Order order, D distance, Mask left, Mask right, double* w) {
    const D u = lower<double>(all<double>(term.theta) * distance, all<double>(far));
    const D e = exp_negative<double>(-u);
    for (int l = 0; l <= order; ++l) {
        D q = all<double>(term.coefs[order] * binomial(order, order, l));
        for (int j = order - 1; j >= l; --j) q = muladd(q, u, all<double>(term.coefs[j] * binomial(order, j, l)));
        store<double>(w + (term.left + l) * fan, chosen(left, e * q));
        store<double>(w + (term.right + l) * fan, chosen(right, e * q));
    }
}

template <class Order>
inline void read_ramp(const Term& term, Order order, double x, D distance, Mask left, Mask right, double* w) {
    double* to = w + term.left * fan;
    for (int j = 0; j <= order; ++j) {
        D power = chosen(left, all<double>(term.coefs[j]));
        for (int l = j; l >= 0; --l) {
            store<double>(to + (j * (j + 1) / 2 + l) * fan, power * binomial(order, j, l));
            power = power * distance;
        }
    }
    to = w + term.right * fan;
    const double high = power_of(x, order + 1);
    for (int l = 0; l <= order; ++l) {  // sum over j >= l of b_j C(j, l) x^(2z+1-j) distance^(j-l)
        double rest = 1;
        D sum = {};
        for (int j = order; j >= l; --j) {
            sum = muladd(sum, distance, all<double>(term.coefs[j] * binomial(order, j, l) * rest));
            rest *= x;
        }
        store<double>(to + l * fan, chosen(right, sum * high));
    }
}

void read(const Term* terms, int count, double x, const double* lo, const double* hi, int c, int n,
          const double* moments, int used, int stride, int rows, double* w, double* out) {
    for (int k = 0; k < count; ++k) {
        const Term& term = terms[k];
        if (term.kind == Kind::power) continue;
        by_order(term.order, [&](auto order) {
            for (int i = 0; i < fan; i += lanes) {
                const D child = numbered(i);
                const Mask left = child < all<double>(c);
                const Mask right = (child > all<double>(c)) & (child < all<double>(n));
                const D distance =
                    chosen(left, all<double>(x) - load<double>(hi + i)) + chosen(right, load<double>(lo + i) - x);
                if (term.kind == Kind::decay)
                    read_decay(term, order, distance, left, right, w + i);
                else
                    read_ramp(term, order, x, distance, left, right, w + i);
            }
        });
    }
    for (int r = 0; r < rows; ++r) {
        const double* m = moments + static_cast<std::ptrdiff_t>(r) * stride * fan;
        Sums sum;
        for (int i = 0; i < used * fan; i += lanes) sum.add(i / lanes, load<double>(w + i), load<double>(m + i));
        out[r] += sum.total();
    }
}

// the moments of one term of a leaf's entries; put(moment, weights of the entries), whose coefficients behind n are 0
template <class Order, class Put>
inline void gather_term(const Term& term, Order order, double lo, double hi, const double* keys, int n, Put&& put) {
    constexpr int vectors = leaf_size / lanes;
    D key[vectors], w[vectors], step[vectors];
    for (int v = 0; v < vectors; ++v)
        key[v] = chosen(numbered(v * lanes) < all<double>(n), load<double>(keys + v * lanes));
    const auto multiply = [&](D* a, const D* b) {
        for (int v = 0; v < vectors; ++v) a[v] = a[v] * b[v];
    };
    if (term.kind == Kind::power) {
        for (int v = 0; v < vectors; ++v) w[v] = raised<double>(key[v], order);
        put(term.total, w);
        return;
    }
    // distances from an anchor, in the term's own measure; of the entries behind n too, as long as they are numbers
    const auto measure = [&](bool left) {
        for (int v = 0; v < vectors; ++v) {
            step[v] = chosen(numbered(v * lanes) < all<double>(n), left ? all<double>(hi) - key[v] : key[v] - lo);
            if (term.kind == Kind::decay) step[v] = lower<double>(all<double>(term.theta) * step[v], all<double>(far));
        }
    };
    const auto powers = [&](int first, int count) {
        for (int l = 0; l < count; ++l) {
            if (l > 0) multiply(w, step);
            put(first + l, w);
        }
    };
    measure(true);
    if (term.kind == Kind::ramp) {
        D high[vectors];  // key^(2z+1-j)
        for (int v = 0; v < vectors; ++v) high[v] = raised<double>(key[v], order + 1);
        for (int j = order; j >= 0; --j) {
            for (int v = 0; v < vectors; ++v) w[v] = high[v];
            powers(term.left + j * (j + 1) / 2, j + 1);
            if (j > 0) multiply(high, key);
        }
    } else {
        for (int v = 0; v < vectors; ++v) w[v] = exp_negative<double>(-step[v]);
        powers(term.left, order + 1);
    }
    measure(false);
    for (int v = 0; v < vectors; ++v) w[v] = term.kind == Kind::decay ? exp_negative<double>(-step[v]) : all<double>(1);
    powers(term.right, order + 1);
}

void gather(const Term* terms, int count, double lo, double hi, const double* keys, int n, const double* coefs,
            int stride, int rows, double* out) {
    const auto put = [&](int moment, const D* w) {
        for (int r = 0; r < rows; ++r) {
            Sums sum;
            for (int v = 0; v < leaf_size / lanes; ++v)
                sum.add(v, w[v], load<double>(coefs + r * leaf_size + v * lanes));
            out[(static_cast<std::ptrdiff_t>(r) * stride + moment) * fan] = sum.total();
        }
    };
    for (int k = 0; k < count; ++k)
        by_order(terms[k].order, [&](auto order) { gather_term(terms[k], order, lo, hi, keys, n, put); });
}

// out[l * fan] = sum over the children i and a <= l of C(l, a) powers[(l - a) * fan + i] m[a * fan + i]
template <class Order> inline void shift(const double* powers, Order order, const double* m, double* out) {
    for (int l = 0; l <= order; ++l) {
        Sums sum;
        for (int a = 0; a <= l; ++a) {
            const double c = binomial(order, l, a);
            for (int i = 0; i < fan; i += lanes)
                sum.add(i / lanes, c * load<double>(powers + (l - a) * fan + i), load<double>(m + a * fan + i));
        }
        out[l * fan] = sum.total();
    }
}

// the moments of one term of a node; m and out: those of the first coefficient row
template <class Order>
inline void lift_term(const Term& term, Order order, double lo, double hi, const double* los, const double* his, int n,
                      const double* m, std::ptrdiff_t row, int rows, double* powers, double* out) {
    for (int side = 0; side < 2; ++side) {
        const bool left = side == 0;
        for (int i = 0; i < fan; i += lanes) {
            const Mask used = numbered(i) < all<double>(n);
            D d = chosen(used, left ? all<double>(hi) - load<double>(his + i) : load<double>(los + i) - lo);
            D power = all<double>(1);
            if (term.kind == Kind::decay) {
                d = lower<double>(all<double>(term.theta) * d, all<double>(far));
                power = exp_negative<double>(-d);
            }
            power = chosen(used, power);
            for (int l = 0; l <= order; ++l) {
                store<double>(powers + l * fan + i, power);
                power = power * d;
            }
        }
        for (int r = 0; r < rows; ++r) {
            if (term.kind == Kind::ramp && left) {
                for (int j = 0; j <= order; ++j) {
                    const std::ptrdiff_t at = r * row + (term.left + j * (j + 1) / 2) * fan;
                    shift(powers, j, m + at, out + at);
                }
            } else {
                const std::ptrdiff_t at = r * row + (left ? term.left : term.right) * fan;
                shift(powers, order, m + at, out + at);
            }
        }
    }
}

void lift(const Term* terms, int count, double lo, double hi, const double* los, const double* his, int n,
          const double* moments, int stride, int rows, double* powers, double* out) {
    const std::ptrdiff_t row = static_cast<std::ptrdiff_t>(stride) * fan;
    for (int k = 0; k < count; ++k) {
        const Term& term = terms[k];
        if (term.kind != Kind::power) {
            by_order(term.order,
                     [&](auto order) { lift_term(term, order, lo, hi, los, his, n, moments, row, rows, powers, out); });
            continue;
        }
        for (int r = 0; r < rows; ++r) {
            Sums sum;
            for (int i = 0; i < fan; i += lanes)
                sum.add(i / lanes, load<double>(moments + r * row + term.total * fan + i));
            out[r * row + term.total * fan] = sum.total();
        }
    }
}

}  // namespace

extern const OneDim GOSSAMER_PASTE(onedim_, GOSSAMER_ISA_NAME);
const OneDim GOSSAMER_PASTE(onedim_, GOSSAMER_ISA_NAME) = {add<float>, add<double>, leaf, read, gather, lift};

}  // namespace gossamer
