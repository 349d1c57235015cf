// Sums over a support by kernel evaluations, the one inner loop of the kernel form of Algorithm 1:
//
//     out_i += sum_j (k(s_i, s_j) + 1) c_j       rows i four at a time, support j in blocks of TILE
//
// Support points are the SIMD lanes of a kernel tile (4, TILE); the features of c are those of the sum. The
// distance is summed from differences: its expansion in norms would lose digits far from the origin. The terms
// of a row, and their order, do not depend on the rows around it.
#pragma once

#include "exponential.h"
#include "kernels.h"
#include "space.h"

namespace CONDMETA_ISA {

constexpr int64_t TILE = 64;
enum KernelKind { LINEAR = 0, GAUSSIAN = 1, LAPLACE = 2 };

// The support as the tiles read it: blocks of TILE points, transposed (p, TILE), and rows of c (dp,).
struct Support {
    double *turned, *weights;

    Support(Space& space, int64_t count, int64_t p, int64_t d) {
        const int64_t blocks = (count + TILE - 1) / TILE;
        turned = space.take(blocks * p * TILE);
        weights = space.take(blocks * TILE * padded(d));
    }
    INLINE_MEMBER double* block(int64_t j, int64_t p) const { return turned + j / TILE * p * TILE; }
};

// Points beyond the last of a block are zeros: their tiles are finite, and never added.
INLINE void turn_points(const double* S, int64_t count, int64_t p, const Support& support) {
    for (int64_t j = 0; j < count; j += TILE) {
        double* to = support.block(j, p);
        clear(to, p * TILE);
        for (int64_t i = 0; i < TILE && j + i < count; ++i)
            for (int64_t c = 0; c < p; ++c) to[c * TILE + i] = S[(j + i) * p + c];
    }
}

INLINE void put_weights(const double* from, int64_t j, int64_t d, const Support& support) {
    const int64_t dp = padded(d);
    copy(support.weights + j * dp, from, d);
    fill(support.weights + j * dp + d, 0.0, dp - d);
}

template <int kind>
INLINE vec kernel_value(vec sum, double scale) {
    if (kind == LINEAR) return sum;
    return exponential(-scale * (kind == LAPLACE ? root(sum) : sum));
}

// tile (R, TILE) = k(s_r, s_j) + 1 of R rows and a block of the support.
template <int kind, int R>
INLINE void kernel_tile(const double* const* s, const double* turned, int64_t p, double scale, double* tile) {
    for (int64_t j = 0; j < TILE; j += 2 * W) {
        vec sum[R][2] = {};
        for (int64_t c = 0; c < p; ++c) {
            const vec u[2] = {load(turned + c * TILE + j), load(turned + c * TILE + j + W)};
            for (int r = 0; r < R; ++r)
                for (int v = 0; v < 2; ++v) {
                    const vec e = kind == LINEAR ? u[v] : s[r][c] - u[v];
                    sum[r][v] += kind == LINEAR ? s[r][c] * e : e * e;
                }
        }
        for (int r = 0; r < R; ++r)
            for (int v = 0; v < 2; ++v)
                store(tile + r * TILE + j + v * W, 1.0 + kernel_value<kind>(sum[r][v], scale));
    }
}

template <int R>
static void fill_tile(const KernelRow& kernel, const double* const* s, const double* turned, int64_t p, double* tile) {
    switch (kernel.kind) {
        case LINEAR: return kernel_tile<LINEAR, R>(s, turned, p, kernel.scale, tile);
        case GAUSSIAN: return kernel_tile<GAUSSIAN, R>(s, turned, p, kernel.scale, tile);
        default: return kernel_tile<LAPLACE, R>(s, turned, p, kernel.scale, tile);
    }
}

template <int R, int V>
INLINE void add_strip(const double* tile, int64_t count, const double* weights, int64_t dp, double* out) {
    vec acc[R][V];
    for (int r = 0; r < R; ++r)
        for (int v = 0; v < V; ++v) acc[r][v] = load(out + r * dp + v * W);
    for (int64_t j = 0; j < count; ++j, weights += dp) {
        vec x[V];
        for (int v = 0; v < V; ++v) x[v] = load(weights + v * W);
        for (int r = 0; r < R; ++r)
            for (int v = 0; v < V; ++v) acc[r][v] += tile[r * TILE + j] * x[v];
    }
    for (int r = 0; r < R; ++r)
        for (int v = 0; v < V; ++v) store(out + r * dp + v * W, acc[r][v]);
}

// out (R, dp) += the first `count` columns of the tile times the rows of weights (count, dp).
template <int R>
static void add_tile(const double* tile, int64_t count, const double* weights, int64_t dp, double* out) {
    int64_t c = 0;
    for (; dp - c >= 3 * W && dp - c != 4 * W; c += 3 * W) add_strip<R, 3>(tile, count, weights + c, dp, out + c);
    for (; dp - c >= 2 * W; c += 2 * W) add_strip<R, 2>(tile, count, weights + c, dp, out + c);
    if (c < dp) add_strip<R, 1>(tile, count, weights + c, dp, out + c);
}

// out (rows, dp), rows a multiple of 4, += the sums over the support points [0, count), whole blocks but for
// the last. Rows i >= `last` of S repeat it.
static void add_support(const KernelRow& kernel, const double* S, int64_t first, int64_t rows, int64_t last,
                        const Support& support, int64_t count, int64_t p, int64_t dp, double* tile, double* out) {
    for (int64_t j = 0; j < count; j += TILE) {
        const int64_t here = count - j < TILE ? count - j : TILE;
        for (int64_t i = 0; i < rows; i += 4) {
            const double* s[4];
            for (int64_t r = 0; r < 4; ++r) s[r] = S + (first + i + r < last ? first + i + r : last - 1) * p;
            fill_tile<4>(kernel, s, support.block(j, p), p, tile);
            add_tile<4>(tile, here, support.weights + j * dp, dp, out + i * dp);
        }
    }
}

}  // namespace CONDMETA_ISA
