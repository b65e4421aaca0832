// Semiseparable kernels of one number, and the moments that a search tree over their keys keeps (ALGORITHMS 11).
//
// With a = min(p, q), r = |p - q| a kernel is a weighted sum of terms
//   decay   e^-u sum_j c_j u^j, u = theta r               (Exponential, Matern)
//   ramp    sum_j b_j a^(2z+1-j) r^j = w times the integral of (p-t)^z (q-t)^z over t in [0, a], p, q >= 0
//   power   w (p q)^z
// A node over keys in [lo, hi] keeps moments of its coefficients alpha, from which f is read at any x outside of it:
//   left (x >= hi)   decay  sum alpha u^l e^-u with u = theta (hi - p); ramp  sum alpha p^(2z+1-j) (hi - p)^l, l <= j <= z
//   right (x < lo)   decay  sum alpha u^l e^-u with u = theta (p - lo); ramp  sum alpha (p - lo)^l, l <= z
//   total            power  sum alpha p^z
// Anchored at the node's own ends, nothing overflows, and all that is added for one sign of alpha has one sign.
#pragma once
#include <cmath>

namespace gossamer {

constexpr int largest_order = 64;

struct Term {
    enum class Kind : int { decay, ramp, power } kind = Kind::decay;
    int order = 0;
    double theta = 1;                      // decay only
    double coefs[largest_order + 1] = {};  // decay c_j, ramp b_j, power w in coefs[0]
    int left = 0, right = 0, total = 0;    // where its moments begin

    int left_count() const {
        return kind == Kind::decay ? order + 1 : kind == Kind::ramp ? (order + 1) * (order + 2) / 2 : 0;
    }
    int right_count() const { return kind == Kind::power ? 0 : order + 1; }
};

struct Pascal {
    double c[largest_order + 1][largest_order + 1];
};
extern const Pascal pascal;
static inline const double* binomials(int n) { return pascal.c[n]; }  // C(n, k), n <= largest_order

constexpr int leaf_size = 32;  // entries of a leaf
constexpr int fan = 16;        // children of a node

// The arithmetic of a tree, compiled once per instruction set. `terms` are those of one coordinate; moments are numbered
// left, right, total. Coefficients and moments have a block per coefficient row.
struct OneDim {
    // out[i] += k(x, s[i]) for i < n rounded up to 16
    void (*add32)(const Term* terms, int count, float x, const float* s, int n, float* out);
    void (*add64)(const Term* terms, int count, double x, const double* s, int n, double* out);

    // out[r] += sum_i coefs[r * leaf_size + i] k(x, keys[i]), the power terms left out
    void (*leaf)(const Term* terms, int count, double x, const double* keys, int n, const double* coefs, int rows,
                 double* out);
    // out[r] += the sum of f_r(x) over all children but c; moments[(r * stride + k) * fan + child], the first `used` of them
    void (*read)(const Term* terms, int count, double x, const double* lo, const double* hi, int c, int n,
                 const double* moments, int used, int stride, int rows, double* scratch, double* out);
    // moments of a leaf's entries: out[(r * stride + k) * fan]
    void (*gather)(const Term* terms, int count, double lo, double hi, const double* keys, int n, const double* coefs,
                   int stride, int rows, double* out);
    // moments of a node from those of its children: out[(r * stride + k) * fan]
    void (*lift)(const Term* terms, int count, double lo, double hi, const double* los, const double* his, int n,
                 const double* moments, int stride, int rows, double* scratch, double* out);
};

// Of the instruction set that tiles() chose.
const OneDim& onedim();

static inline double power_of(double base, int exponent) {
    double result = 1;
    for (; exponent > 0; exponent >>= 1) {
        if (exponent & 1) result *= base;
        base *= base;
    }
    return result;
}

// k(p, q) of one term
static inline double value(const Term& term, double p, double q) {
    const double a = p < q ? p : q, r = std::abs(p - q);
    if (term.kind == Term::Kind::power) return term.coefs[0] * power_of(p * q, term.order);
    double sum = 0;
    if (term.kind == Term::Kind::decay) {
        const double u = std::fmin(term.theta * r, 750.0);  // e^-750 is 0, and no power of it overflows
        for (int j = term.order; j >= 0; --j) sum = sum * u + term.coefs[j];
        return std::exp(-u) * sum;
    }
    for (int j = term.order; j >= 0; --j) sum = sum * r + term.coefs[j] * power_of(a, term.order - j);
    return sum * power_of(a, term.order + 1);
}

}  // namespace gossamer
