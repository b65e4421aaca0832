// Vectors of the instruction set that a file is compiled for. Included only by the files that are compiled several times
// with different machine flags: nothing with external linkage but their tables may come out of them, so no standard
// library templates, and everything here is in an unnamed namespace.
#pragma once
#include <cstdint>

#ifdef __FMA__
#include <immintrin.h>
#elif defined(__ARM_FEATURE_FMA) && defined(__aarch64__)
#include <arm_neon.h>
#endif

#ifndef GOSSAMER_ISA_NAME
#define GOSSAMER_ISA_NAME baseline
#endif
#define GOSSAMER_PASTE2(a, b) a##b
#define GOSSAMER_PASTE(a, b) GOSSAMER_PASTE2(a, b)
#define GOSSAMER_STRING2(a) #a
#define GOSSAMER_STRING(a) GOSSAMER_STRING2(a)

namespace gossamer {
namespace {

#if defined(__aarch64__)
constexpr const char* isa_name = "neon";  // the baseline there
#else
constexpr const char* isa_name = GOSSAMER_STRING(GOSSAMER_ISA_NAME);
#endif

#if defined(__AVX512F__)
constexpr int vector_bytes = 64;
#elif defined(__AVX__)
constexpr int vector_bytes = 32;
#else
constexpr int vector_bytes = 16;
#endif

template <class T> struct Simd;
template <> struct Simd<float> {
    typedef float V __attribute__((vector_size(vector_bytes)));
    typedef float U __attribute__((vector_size(vector_bytes), aligned(4)));  // the same, anywhere in memory
    typedef std::int32_t I __attribute__((vector_size(vector_bytes)));
    typedef std::int32_t Index __attribute__((vector_size(16)));
};
template <> struct Simd<double> {
    typedef double V __attribute__((vector_size(vector_bytes)));
    typedef double U __attribute__((vector_size(vector_bytes), aligned(8)));
    typedef std::int64_t I __attribute__((vector_size(vector_bytes)));
    typedef std::int64_t Index __attribute__((vector_size(32)));
};
template <class T> constexpr int width = vector_bytes / static_cast<int>(sizeof(T));

template <class T> using V = typename Simd<T>::V;

template <class T> inline V<T> load(const T* p) { return *reinterpret_cast<const typename Simd<T>::U*>(p); }
template <class T> inline void store(T* p, V<T> v) { *reinterpret_cast<typename Simd<T>::U*>(p) = v; }
template <class T> inline V<T> all(T x) { return x - V<T>{}; }

// a * b + c, rounded once where the machine can: said outright, so that no compiler can contract two callers differently.
template <class A> inline A muladd(A a, A b, A c) { return a * b + c; }
#if defined(__FMA__) || (defined(__ARM_FEATURE_FMA) && defined(__aarch64__))
inline double muladd(double a, double b, double c) { return __builtin_fma(a, b, c); }
inline float muladd(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
#if defined(__aarch64__)
inline V<float> muladd(V<float> a, V<float> b, V<float> c) {
    return (V<float>)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
}
inline V<double> muladd(V<double> a, V<double> b, V<double> c) {
    return (V<double>)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b);
}
#elif defined(__AVX512F__)
inline V<float> muladd(V<float> a, V<float> b, V<float> c) {
    return (V<float>)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
}
inline V<double> muladd(V<double> a, V<double> b, V<double> c) {
    return (V<double>)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
}
#else
inline V<float> muladd(V<float> a, V<float> b, V<float> c) {
    return (V<float>)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
}
inline V<double> muladd(V<double> a, V<double> b, V<double> c) {
    return (V<double>)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
}
#endif
#endif

// The entries of a and b (those of b counted on behind a's) that stand at the given places.
#if defined(__clang__) || __GNUC__ >= 12
#define GOSSAMER_SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define GOSSAMER_SHUFFLE(a, b, ...) __builtin_shuffle(a, b, J{__VA_ARGS__})
#endif

template <class T> inline V<T> absolute(V<T> v) { return v < 0 ? -v : v; }

// base^exponent
template <class T> inline V<T> raised(V<T> base, int exponent) {
    V<T> result = all<T>(1);
    for (; exponent > 0; exponent >>= 1) {
        if (exponent & 1) result = result * base;
        if (exponent > 1) base = base * base;
    }
    return result;
}

// exp(x) for x <= 0: x = n ln 2 + r, |r| <= ln(2)/2, a Taylor polynomial in r (its even and its odd terms side by
// side, since latency is what costs), and n added to the exponent. Below the smallest normal number the result is 0.
template <class T> struct ExpParts;
template <> struct ExpParts<double> {
    static constexpr double shift = 0x1.8p52, lowest = -708.0, log2e = 0x1.71547652b82fep0;
    static constexpr double ln2_high = 0x1.62e42fefa39efp-1, ln2_low = 0x1.abc9e3b39803fp-56;
    static constexpr int mantissa = 52, terms = 7;
    static constexpr double even[terms] = {1.0 / 479001600, 1.0 / 3628800, 1.0 / 40320, 1.0 / 720, 1.0 / 24, 0.5, 1.0};
    static constexpr double odd[terms] = {1.0 / 6227020800.0, 1.0 / 39916800, 1.0 / 362880, 1.0 / 5040,
                                          1.0 / 120,          1.0 / 6,        1.0};
};
template <> struct ExpParts<float> {
    static constexpr float shift = 0x1.8p23f, lowest = -87.0f, log2e = 0x1.715476p0f;
    static constexpr float ln2_high = 0x1.62e4p-1f, ln2_low = 0x1.7f7d1cp-20f;
    static constexpr int mantissa = 23, terms = 4;
    static constexpr float even[terms] = {1.0f / 720, 1.0f / 24, 0.5f, 1.0f};
    static constexpr float odd[terms] = {1.0f / 5040, 1.0f / 120, 1.0f / 6, 1.0f};
};

template <class T> inline V<T> exp_negative(V<T> x) {
    typedef ExpParts<T> E;
    typedef typename Simd<T>::I I;
    const V<T> lowest = all<T>(E::lowest);
    const V<T> clamped = x < lowest ? lowest : x;
    const V<T> shifted = muladd(clamped, all<T>(E::log2e), all<T>(E::shift));
    const V<T> n = shifted - all<T>(E::shift);
    V<T> r = muladd(n, all<T>(-E::ln2_high), clamped);
    r = muladd(n, all<T>(-E::ln2_low), r);
    const V<T> r2 = r * r;
    V<T> even = all<T>(E::even[0]), odd = all<T>(E::odd[0]);
    for (int i = 1; i < E::terms; ++i) {
        even = muladd(even, r2, all<T>(E::even[i]));
        odd = muladd(odd, r2, all<T>(E::odd[i]));
    }
    const V<T> p = muladd(odd, r, even);
    const I bits = reinterpret_cast<I>(p) + (reinterpret_cast<I>(shifted) << E::mantissa);
    return x < lowest ? V<T>{} : reinterpret_cast<V<T>>(bits);
}

// cos(x) and sin(x): x = n pi/2 + r, |r| <= pi/4, with pi/2 in parts so short that n times each is exact; Taylor
// polynomials in r; and the quarter of the turn that n stands for. A phase of more than `most` quarters counts as 0.
template <class T> struct TurnParts;
template <> struct TurnParts<double> {
    static constexpr double shift = 0x1.8p52, most = 0x1p30, quarters = 0x1.45f306dc9c883p-1;
    static constexpr int parts = 3, terms = 8;
    static constexpr double quarter[parts] = {0x1.921fb544p0, 0x1.0b4611a6p-34, 0x1.3198a2e037073p-69};
    static constexpr double even[terms] = {1.0 / 20922789888000.0,
                                           -1.0 / 87178291200.0,
                                           1.0 / 479001600,
                                           -1.0 / 3628800,
                                           1.0 / 40320,
                                           -1.0 / 720,
                                           1.0 / 24,
                                           -0.5};
    static constexpr double odd[terms] = {1.0 / 355687428096000.0,
                                          -1.0 / 1307674368000.0,
                                          1.0 / 6227020800.0,
                                          -1.0 / 39916800,
                                          1.0 / 362880,
                                          -1.0 / 5040,
                                          1.0 / 120,
                                          -1.0 / 6};
};
template <> struct TurnParts<float> {
    static constexpr float shift = 0x1.8p23f, most = 0x1p21f, quarters = 0x1.45f306p-1f;
    static constexpr int parts = 4, terms = 5;
    static constexpr float quarter[parts] = {0x1.92p0f, 0x1.fb4p-12f, 0x1.444p-24f, 0x1.68c234p-39f};
    static constexpr float even[terms] = {-1.0f / 3628800, 1.0f / 40320, -1.0f / 720, 1.0f / 24, -0.5f};
    static constexpr float odd[terms] = {-1.0f / 39916800, 1.0f / 362880, -1.0f / 5040, 1.0f / 120, -1.0f / 6};
};

template <class T> inline void turn_by(V<T> x, V<T>& cosine, V<T>& sine) {
    typedef TurnParts<T> P;
    typedef typename Simd<T>::I I;
    const V<T> size = absolute<T>(x) * all<T>(P::quarters);
    const V<T> phase = size <= all<T>(P::most) ? x : V<T>{};  // also where it is not a number
    const V<T> shifted = muladd(phase, all<T>(P::quarters), all<T>(P::shift));
    const V<T> n = shifted - all<T>(P::shift);
    V<T> r = phase;
    for (int i = 0; i < P::parts; ++i) r = muladd(n, all<T>(-P::quarter[i]), r);
    const V<T> r2 = r * r;
    V<T> even = all<T>(P::even[0]), odd = all<T>(P::odd[0]);
    for (int i = 1; i < P::terms; ++i) {
        even = muladd(even, r2, all<T>(P::even[i]));
        odd = muladd(odd, r2, all<T>(P::odd[i]));
    }
    const V<T> c = muladd(even, r2, all<T>(1)), s = muladd(odd * r2, r, r);
    const I quarter = reinterpret_cast<I>(shifted);
    const I odd_quarter = (quarter & 1) != 0;
    const V<T> along = odd_quarter ? s : c, across = odd_quarter ? c : s;
    cosine = ((quarter + 1) & 2) != 0 ? -along : along;
    sine = (quarter & 2) != 0 ? -across : across;
}

}  // namespace
}  // namespace gossamer
