// The points of one task as the online pass reads them, in blocks of four, with everything that does not
// depend on theta: ||x_i||, and the products <x_i, x_j> within a block.
//
// Preparing a block is independent work, so the pass over one task prepares the next one's blocks
// while it waits for its own slopes.
#pragma once

#include "kernels.h"
#include "rows.h"
#include "space.h"

namespace CONDMETA_ISA {

constexpr int64_t AHEAD = 1024;  // how far ahead X is prefetched, in numbers

struct Points {
    Rows rows;
    const double* y;
    double *buffer, *tail_y;  // copies of rows, and of the last labels
    double *norm, *products;  // (n4,), (n4/4, 8)
    quad most;                // largest squared norms so far, by position in the block
    double radius() const { return __builtin_sqrt(largest(most)); }

    Points(Space& space, int64_t n_max, int64_t d) {
        const int64_t n4 = padded(n_max);
        buffer = space.take(row_buffer(n_max, d));
        tail_y = space.take(4);
        norm = space.take(n4);
        products = space.take(n4 / 4 * 8);
    }

    INLINE_MEMBER void read(const double* X, const double* labels, int64_t n, int64_t d) {
        rows = make_rows(X, n, d, buffer);
        y = labels;
        most = quad{};
        for (int64_t i = rows.full; i < rows.n4; ++i) tail_y[i - rows.full] = i < n ? labels[i] : 0.0;
    }

    INLINE_MEMBER const double* labels(int64_t i) const { return i < rows.full ? y + i : tail_y; }
};

// The products of a block with its points a, b, c, d are kept as (0, ab, ac, ad) and (bc, bd, 0, cd).
// NV vectors of features, or as many as there are if NV = 0.
template <int NV>
INLINE void prepare_block(Points& points, int64_t i) {
    const int64_t dp = points.rows.dp;
    const int nv = NV ? NV : int(dp / W);
    const double* x = points.rows.block(i);
    for (int64_t line = 0; line < 4 * dp; line += 8) __builtin_prefetch(x + AHEAD + line);
    const vec none = {};
    vec ab = {}, ac = {}, ad = {}, bc = {}, bd = {}, cd = {}, aa = {}, bb = {}, cc = {}, dd = {};
    for (int j = 0; j < nv; ++j) {
        const vec a = load(x + j * W), b = load(x + dp + j * W);
        const vec c = load(x + 2 * dp + j * W), d = load(x + 3 * dp + j * W);
        ab += a * b, ac += a * c, ad += a * d, bc += b * c, bd += b * d, cd += c * d;
        aa += a * a, bb += b * b, cc += c * c, dd += d * d;
    }
    const quad square = sum4(aa, bb, cc, dd);
    store4(points.products + 2 * i, sum4(none, ab, ac, ad));
    store4(points.products + 2 * i + 4, sum4(bc, bd, none, cd));
    store4(points.norm + i, root(square));
    points.most = larger(square, points.most);
}

template <int NV>
INLINE void prepare_from(Points& points, int64_t i) {
    for (; i < points.rows.n4; i += 4) prepare_block<NV>(points, i);
}

// The points of task t; none if there is no such task.
INLINE void read_points(const Tasks& tasks, int64_t t, Points& points) {
    const int64_t lo = t < tasks.count ? tasks.offsets[t] : 0, hi = t < tasks.count ? tasks.offsets[t + 1] : 0;
    points.read(tasks.X + lo * tasks.d, tasks.y + lo, hi - lo, tasks.d);
}

}  // namespace CONDMETA_ISA
