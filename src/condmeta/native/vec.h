// A SIMD vector of W doubles, by GCC's and Clang's vector extensions: the same code for SSE2, AVX2,
// AVX-512VL and NEON. Each instruction set has its own namespace, and no header of the C++ library is used:
// no function compiled here has a shared name.
#pragma once

#include <stdint.h>

#define INLINE static inline __attribute__((always_inline))
#define INLINE_MEMBER inline __attribute__((always_inline))

namespace CONDMETA_ISA {

constexpr int W = CONDMETA_WIDTH;  // 2 or 4 doubles
constexpr int64_t PAD = 4;         // features and points are padded with zeros to multiples of 4

typedef double vec __attribute__((vector_size(8 * CONDMETA_WIDTH)));
typedef double loose_vec __attribute__((vector_size(8 * CONDMETA_WIDTH), aligned(8), may_alias));
typedef double quad __attribute__((vector_size(32)));  // one number for each of 4 points
typedef double pair __attribute__((vector_size(16)));
typedef double loose_quad __attribute__((vector_size(32), aligned(8), may_alias));

INLINE int64_t padded(int64_t n) { return (n + PAD - 1) / PAD * PAD; }

INLINE vec load(const double* p) { return *(const loose_vec*)p; }
INLINE void store(double* p, vec v) { *(loose_vec*)p = v; }
INLINE quad load4(const double* p) { return *(const loose_quad*)p; }
INLINE void store4(double* p, quad v) { *(loose_quad*)p = v; }

INLINE double larger(double a, double b) { return a > b ? a : b; }
INLINE double smaller(double a, double b) { return a < b ? a : b; }
INLINE double size_of(double a) { return __builtin_fabs(a); }

constexpr int64_t ALL_BUT_SIGN = 0x7fffffffffffffff;
typedef int64_t quad_bits __attribute__((vector_size(32)));
typedef int64_t pair_bits __attribute__((vector_size(16)));
INLINE quad size_of(quad a) { return (quad)((quad_bits)a & ALL_BUT_SIGN); }
INLINE quad larger(quad a, quad b) { return a > b ? a : b; }
INLINE pair size_of(pair a) { return (pair)((pair_bits)a & ALL_BUT_SIGN); }
INLINE pair larger(pair a, pair b) { return a > b ? a : b; }
INLINE pair smaller(pair a, pair b) { return a < b ? a : b; }
INLINE double largest(quad a) { return larger(larger(a[0], a[1]), larger(a[2], a[3])); }

INLINE quad root(quad a) {
#if defined(__AVX__) && !defined(__clang__)  // GCC does not merge the four
    return __builtin_ia32_sqrtpd256(a);
#else
    return quad{__builtin_sqrt(a[0]), __builtin_sqrt(a[1]), __builtin_sqrt(a[2]), __builtin_sqrt(a[3])};
#endif
}

INLINE pair first_pair(quad a) { return pair{a[0], a[1]}; }
INLINE pair second_pair(quad a) { return pair{a[2], a[3]}; }
INLINE pair both_first(pair a) { return pair{a[0], a[0]}; }
INLINE pair both_second(pair a) { return pair{a[1], a[1]}; }

#if CONDMETA_WIDTH == 4
#if defined(__GNUC__) && !defined(__clang__)
#define CONDMETA_MIX(a, b, i, j, k, l) __builtin_shuffle(a, b, quad_bits{i, j, k, l})
#else
#define CONDMETA_MIX(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l)
#endif
INLINE double sum(vec a) { return (a[0] + a[2]) + (a[1] + a[3]); }

// (sum a, sum b, sum c, sum d): two levels of additions, no scalar code.
INLINE quad sum4(vec a, vec b, vec c, vec d) {
    const vec ab = CONDMETA_MIX(a, b, 0, 4, 2, 6) + CONDMETA_MIX(a, b, 1, 5, 3, 7);
    const vec cd = CONDMETA_MIX(c, d, 0, 4, 2, 6) + CONDMETA_MIX(c, d, 1, 5, 3, 7);
    return CONDMETA_MIX(ab, cd, 0, 1, 4, 5) + CONDMETA_MIX(ab, cd, 2, 3, 6, 7);
}
#undef CONDMETA_MIX
#else
INLINE double sum(vec a) { return a[0] + a[1]; }

INLINE quad sum4(vec a, vec b, vec c, vec d) {
    return quad{a[0], b[0], c[0], d[0]} + quad{a[1], b[1], c[1], d[1]};
}
#endif

// <a, b> over n numbers, n a multiple of PAD.
INLINE double dot(const double* a, const double* b, int64_t n) {
    vec even = {}, odd = {};
    int64_t i = 0;
    for (; i + 2 * W <= n; i += 2 * W) {
        even += load(a + i) * load(b + i);
        odd += load(a + i + W) * load(b + i + W);
    }
    for (; i < n; i += W) even += load(a + i) * load(b + i);
    return sum(even + odd);
}

INLINE void copy(double* to, const double* from, int64_t n) {
    for (int64_t i = 0; i < n; ++i) to[i] = from[i];
}

INLINE void fill(double* to, double value, int64_t n) {
    for (int64_t i = 0; i < n; ++i) to[i] = value;
}

// Zeros; n a multiple of PAD.
INLINE void clear(double* to, int64_t n) {
    for (int64_t i = 0; i < n; i += W) store(to + i, vec{});
}

template <class T>
INLINE void swap(T& a, T& b) {
    T c = a;
    a = b;
    b = c;
}

// Whether every number is finite: x - x is 0 for those and NaN for the others. n a multiple of PAD.
INLINE bool all_finite(const double* a, int64_t n) {
    vec zero = {};
    for (int64_t i = 0; i < n; i += W) zero += load(a + i) - load(a + i);
    return sum(zero) == 0.0;
}

}  // namespace CONDMETA_ISA
