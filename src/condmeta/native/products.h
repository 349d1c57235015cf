// Products of small dense matrices, stored by rows. For large ones NumPy's BLAS is faster.
#pragma once

#include "vec.h"

namespace CONDMETA_ISA {

// <a, b> over n numbers, for any n.
INLINE double inner(const double* a, const double* b, int64_t n) {
    const int64_t whole = n / PAD * PAD;
    double total = dot(a, b, whole);
    for (int64_t i = whole; i < n; ++i) total += a[i] * b[i];
    return total;
}

INLINE void add_scaled(double* to, double by, const double* from, int64_t n) {
    for (int64_t i = 0; i < n; ++i) to[i] += by * from[i];
}

// N vectors of a row of a product: out += by sum_l a_l B_l; the numbers a_l are `stride` apart, B has rows of n.
template <int N>
INLINE void add_vectors(double* out, double by, const double* a, int64_t stride, const double* B, int64_t r,
                        int64_t n) {
    vec total[N] = {};
    for (int64_t l = 0; l < r; ++l)
        for (int c = 0; c < N; ++c) total[c] += a[l * stride] * load(B + l * n + c * W);
    for (int c = 0; c < N; ++c) store(out + c * W, load(out + c * W) + by * total[c]);
}

INLINE void add_row(double* out, double by, const double* a, int64_t stride, const double* B, int64_t r, int64_t n) {
    int64_t j = 0;
    for (; j + 4 * W <= n; j += 4 * W) add_vectors<4>(out + j, by, a, stride, B + j, r, n);
    for (; j + W <= n; j += W) add_vectors<1>(out + j, by, a, stride, B + j, r, n);
    for (; j < n; ++j) {
        double total = 0.0;
        for (int64_t l = 0; l < r; ++l) total += a[l * stride] * B[l * n + j];
        out[j] += by * total;
    }
}

// out (m, n) += by A B, A (m, r), B (r, n)
static void add_product(double* out, double by, const double* A, const double* B, int64_t m, int64_t r, int64_t n) {
    for (int64_t i = 0; i < m; ++i) add_row(out + i * n, by, A + i * r, 1, B, r, n);
}

// out (m, n) += by A^T B, A (r, m), B (r, n)
static void add_transposed_product(double* out, double by, const double* A, const double* B, int64_t m, int64_t r,
                                   int64_t n) {
    for (int64_t i = 0; i < m; ++i) add_row(out + i * n, by, A + i, m, B, r, n);
}

// The inverse (d, d) of a lower triangular L.
static void invert_triangle(double* out, const double* L, int64_t d) {
    fill(out, 0.0, d * d);
    for (int64_t i = 0; i < d; ++i) {
        double* row = out + i * d;
        for (int64_t k = 0; k < i; ++k) add_scaled(row, -L[i * d + k], out + k * d, k + 1);
        for (int64_t j = 0; j < i; ++j) row[j] /= L[i * d + i];
        row[i] = 1.0 / L[i * d + i];
    }
}

}  // namespace CONDMETA_ISA
