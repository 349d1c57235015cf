// Small matrix products with SIMD lanes as columns: the inner loop of all grid kernels.
//
//     e[p] += sum_j coef[j, p] U[j]       coef (depth, P) numbers shared by all lanes,
//                                         U (depth, GROUP) lanes; P points at once, in registers
//
// Grid points, or steps of a curve, are columns; a group is C vectors of them, as many as leave room for a
// block of 5 points in 16 registers.
#pragma once

#include "vec.h"

namespace CONDMETA_ISA {

constexpr int C = 2, BLOCK = 5;
constexpr int GROUP = C * W;

typedef int64_t vec_bits __attribute__((vector_size(8 * CONDMETA_WIDTH)));

#if CONDMETA_WIDTH == 2
INLINE vec root(vec a) { return vec{__builtin_sqrt(a[0]), __builtin_sqrt(a[1])}; }
#endif

template <int P>
struct Size {
    static constexpr int value = P;
};

// work(Size<P>, i) for the points i..i+P of each block.
template <class Work>
INLINE void in_blocks(int64_t n, Work work) {
    int64_t i = 0;
    for (; i + BLOCK <= n; i += BLOCK) work(Size<BLOCK>{}, i);
    switch (n - i) {
        case 4: return work(Size<4>{}, i);
        case 3: return work(Size<3>{}, i);
        case 2: return work(Size<2>{}, i);
        case 1: return work(Size<1>{}, i);
    }
}

template <int P>
INLINE void multiply(const double* coef, int64_t coef_step, const double* U, int64_t U_step, int64_t depth,
                     vec (&e)[P][C]) {
    for (int64_t j = 0; j < depth; ++j, coef += coef_step, U += U_step) {
        vec u[C];
        for (int c = 0; c < C; ++c) u[c] = load(U + c * W);
        for (int p = 0; p < P; ++p)
            for (int c = 0; c < C; ++c) e[p][c] += coef[p] * u[c];
    }
}

// Columns [from, from + width) of the rows of a (rows, L) array, one row after another; beyond L the last
// column is repeated, and the results of the copies are dropped.
INLINE void take_lanes(const double* array, int64_t rows, int64_t L, int64_t from, int64_t width, double* to) {
    for (int64_t r = 0; r < rows; ++r, array += L, to += width)
        for (int64_t c = 0; c < width; ++c) to[c] = array[from + c < L ? from + c : L - 1];
}

INLINE void put_lanes(const double* from, int64_t rows, int64_t L, int64_t at, int64_t width, double* array) {
    const int64_t here = at + width <= L ? width : L - at;
    for (int64_t r = 0; r < rows; ++r, array += L, from += width) copy(array + at, from, here);
}

}  // namespace CONDMETA_ISA
