// Symmetric products and the factor of a symmetric matrix, p x p with p a multiple of 4, row-major,
// upper triangle.
//
//     gram_upper:  G += sum_i s_i f_i^T          F, S (m, p); S is F with its rows weighted
//     factor:      G = V^T diag(1/v) V in place, v_j = V_jj   (right-looking, no square roots)
//     solve:       b <- G^-1 b
#pragma once

#include "rows.h"

namespace CONDMETA_ISA {

// Four rows by C vectors of columns of G: 4 C running sums in registers.
template <int C>
INLINE void gram_tile(const double* S, const double* F, int64_t m, int64_t p, int64_t r, int64_t c, double* G) {
    vec acc[4][C] = {};
    for (int64_t i = 0; i < m; ++i) {
        const double* s = S + i * p + r;
        const double* f = F + i * p + c;
        vec x[C];
        for (int j = 0; j < C; ++j) x[j] = load(f + j * W);
        for (int k = 0; k < 4; ++k)
            for (int j = 0; j < C; ++j) acc[k][j] += s[k] * x[j];
    }
    for (int k = 0; k < 4; ++k)
        for (int j = 0; j < C; ++j) {
            double* at = G + (r + k) * p + c + j * W;
            store(at, load(at) + acc[k][j]);
        }
}

static void gram_upper(const double* S, const double* F, int64_t m, int64_t p, double* G) {
    for (int64_t r = 0; r < p; r += 4) {
        int64_t c = r;
        for (; c + 3 * W <= p; c += 3 * W) gram_tile<3>(S, F, m, p, r, c, G);
        for (; c + 2 * W <= p; c += 2 * W) gram_tile<2>(S, F, m, p, r, c, G);
        for (; c < p; c += W) gram_tile<1>(S, F, m, p, r, c, G);
    }
}

INLINE void set_diagonal(double* G, int64_t p, int64_t used, double value) {
    fill(G, 0.0, p * p);
    for (int64_t j = 0; j < used; ++j) G[j * p + j] = value;
}

// The first `used` of p rows; `inverse` (p,) gets 1/v, and 0 for a pivot that is not positive. Entries before
// the diagonal in its vector are set to 0: `solve` uses whole vectors.
static void factor(double* G, int64_t p, int64_t used, double* inverse) {
    for (int64_t j = 0; j < used; ++j) {
        double* row = G + j * p;
        inverse[j] = row[j] > 0.0 ? 1.0 / row[j] : 0.0;
        for (int64_t i = j + 1; i < used; ++i) {
            const double f = row[i] * inverse[j];
            double* to = G + i * p;
            for (int64_t c = i / W * W; c < p; c += W) store(to + c, load(to + c) - f * load(row + c));
        }
        for (int64_t c = j / W * W; c <= j; ++c) row[c] = 0.0;
    }
}

// b (p,) goes in as the right side and comes out as the solution.
static void solve(const double* V, const double* inverse, int64_t p, int64_t used, double* b) {
    for (int64_t j = 0; j < used; ++j) {
        const double f = b[j] * inverse[j];
        for (int64_t c = (j + 1) / W * W; c < p; c += W) store(b + c, load(b + c) - f * load(V + j * p + c));
        b[j] = f;
    }
    for (int64_t j = used - 1; j >= 0; --j) {
        vec acc = {};
        for (int64_t c = (j + 1) / W * W; c < p; c += W) acc += load(V + j * p + c) * load(b + c);
        b[j] -= inverse[j] * sum(acc);
    }
}

// The (d, p) transpose of (n, dp) rows, p = n padded with zeros.
INLINE void transpose(const Rows& rows, int64_t p, double* out) {
    fill(out, 0.0, rows.dp * p);
    for (int64_t i = 0; i < rows.n; ++i) {
        const double* x = rows.row(i);
        for (int64_t j = 0; j < rows.dp; ++j) out[j * p + i] = x[j];
    }
}

// G (p, p) = scale X X^T of the rows, both triangles; `turned` holds (dp, p) numbers.
static void gram_of_points(const Rows& rows, int64_t p, double scale, double* turned, double* G) {
    transpose(rows, p, turned);
    fill(G, 0.0, p * p);
    gram_upper(turned, turned, rows.dp, p, G);
    for (int64_t i = 0; i < p; ++i)
        for (int64_t j = i; j < p; ++j) G[j * p + i] = G[i * p + j] *= scale;
}

}  // namespace CONDMETA_ISA
