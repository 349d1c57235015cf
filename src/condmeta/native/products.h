// Products of small dense matrices, kept by rows. For large ones NumPy's BLAS is faster.
#pragma once

#include "vec.h"

namespace CONDMETA_ISA {

// <a, b> over n numbers, whatever n.
INLINE double inner(const double* a, const double* b, int64_t n) {
    const int64_t whole = n / PAD * PAD;
    double total = dot(a, b, whole);
    for (int64_t i = whole; i < n; ++i) total += a[i] * b[i];
    return total;
}

INLINE void add_scaled(double* to, double by, const double* from, int64_t n) {
    for (int64_t i = 0; i < n; ++i) to[i] += by * from[i];
}

// out (m, n) += A (m, r) B (r, n)
static void add_product(double* out, const double* A, const double* B, int64_t m, int64_t r, int64_t n) {
    for (int64_t i = 0; i < m; ++i)
        for (int64_t l = 0; l < r; ++l) add_scaled(out + i * n, A[i * r + l], B + l * n, n);
}

// out (m, n) += by A^T B, A (r, m), B (r, n)
static void add_transposed_product(double* out, double by, const double* A, const double* B, int64_t m, int64_t r,
                                   int64_t n) {
    for (int64_t l = 0; l < r; ++l)
        for (int64_t i = 0; i < m; ++i) add_scaled(out + i * n, by * A[l * m + i], B + l * n, n);
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
