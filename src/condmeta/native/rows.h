// The points of one task, four at a time, with d features padded to a stride of dp.
//
//     dots:     out_i = <x_i, v>              out (n4,), v (dp,)
//     combine:  out   = sum_i a_i x_i         out (dp,), a (n4,), zero beyond n
//
// n4 is n padded; rows beyond n are zero. If d is a multiple of 4, full blocks are read in place and only
// the last n mod 4 rows are copied.
#pragma once

#include "vec.h"

namespace CONDMETA_ISA {

struct Rows {
    const double* x;     // (n, dp)
    const double* tail;  // the last block, with zero rows beyond n
    int64_t full;        // rows in full blocks
    int64_t n, n4, dp;

    INLINE_MEMBER const double* block(int64_t i) const { return i < full ? x + i * dp : tail; }
    INLINE_MEMBER const double* row(int64_t i) const { return x + i * dp; }
};

INLINE int64_t row_buffer(int64_t n, int64_t d) { return (d == padded(d) ? PAD : padded(n)) * padded(d); }

// `buffer` holds row_buffer(n, d) numbers.
INLINE Rows make_rows(const double* X, int64_t n, int64_t d, double* buffer) {
    Rows rows;
    rows.n = n;
    rows.n4 = padded(n);
    rows.dp = padded(d);
    rows.full = n / PAD * PAD;
    const bool in_place = rows.dp == d;
    rows.x = in_place ? X : buffer;
    rows.tail = in_place ? buffer : buffer + rows.full * rows.dp;
    double* to = buffer;
    for (int64_t i = in_place ? rows.full : 0; i < n; ++i, to += rows.dp) {
        copy(to, X + i * d, d);
        fill(to + d, 0.0, rows.dp - d);
    }
    if (rows.full < n) fill(to, 0.0, (rows.n4 - n) * rows.dp);
    return rows;
}

// Four dot products with one vector.
INLINE quad dots_of_block(const double* x, const double* v, int64_t dp) {
    vec a = {}, b = {}, c = {}, d = {};
    for (int64_t j = 0; j < dp; j += W) {
        const vec at = load(v + j);
        a += load(x + j) * at;
        b += load(x + dp + j) * at;
        c += load(x + 2 * dp + j) * at;
        d += load(x + 3 * dp + j) * at;
    }
    return sum4(a, b, c, d);
}

INLINE void dots(const Rows& rows, const double* v, double* out) {
    const Rows here = rows;  // a copy that no store can change
    for (int64_t i = 0; i < here.n4; i += 4) store4(out + i, dots_of_block(here.block(i), v, here.dp));
}

// Strips of C vectors of features, kept in registers over all points.
template <int C>
INLINE void combine_strip(const Rows& rows, const double* a, int64_t j, double* out) {
    const int64_t dp = rows.dp, n4 = rows.n4;
    vec acc[C] = {}, more[C] = {};
    for (int64_t i = 0; i < n4; i += 4) {
        const double* x = rows.block(i) + j;
        const double a0 = a[i], a1 = a[i + 1], a2 = a[i + 2], a3 = a[i + 3];
        for (int c = 0; c < C; ++c) {
            acc[c] += a0 * load(x + c * W) + a1 * load(x + dp + c * W);
            more[c] += a2 * load(x + 2 * dp + c * W) + a3 * load(x + 3 * dp + c * W);
        }
    }
    for (int c = 0; c < C; ++c) store(out + j + c * W, acc[c] + more[c]);
}

INLINE void combine(const Rows& points, const double* a, double* out) {
    const Rows rows = points;
    int64_t j = 0;
    for (; j + 4 * W <= rows.dp; j += 4 * W) combine_strip<4>(rows, a, j, out);
    for (; j < rows.dp; j += W) combine_strip<1>(rows, a, j, out);
}

}  // namespace CONDMETA_ISA
