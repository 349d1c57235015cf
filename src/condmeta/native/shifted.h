// The linear system of every dual step, through the smaller of the two Gram matrices:
//
//     (X X^T / c + diag(1/w)) s = b            X (n, d), w (n,) > 0, b (n,)
//     n <= d:   factor X X^T / c + diag(1/w)
//     n >  d:   s = w b - w X H^-1 X^T (w b),   H = c I + X^T diag(w) X
//
// For n > d, w_i = 0 leaves point i out: s_i = 0.
#pragma once

#include "batch_space.h"
#include "gram.h"

namespace CONDMETA_ISA {

// Row i of X times w_i.
INLINE void scale_rows(const double* x, const double* w, int64_t n, int64_t p, double* out) {
    for (int64_t i = 0; i < n; ++i, x += p, out += p) {
        const double by = w[i];
        for (int64_t j = 0; j < p; j += W) store(out + j, by * load(x + j));
    }
}

struct Shifted {
    const Rows& rows;
    const BatchSpace& at;
    double c;
    int64_t d, p;
    bool by_points;

    Shifted(const Rows& rows, int64_t d, double c, const BatchSpace& at)
        : rows(rows), at(at), c(c), d(d), p(padded(rows.n < d ? rows.n : d)), by_points(rows.n <= d) {
        if (by_points) gram_of_points(rows, p, 1.0 / c, at.turned, at.gram);
    }

    // out = X X^T a / c; a is zero beyond n.
    void apply(const double* a, double* out) const {
        if (by_points) {
            fill(out, 0.0, p);
            for (int64_t i = 0; i < rows.n; ++i)
                for (int64_t j = 0; j < p; j += W) store(out + j, load(out + j) + a[i] * load(at.gram + i * p + j));
            return;
        }
        combine(rows, a, at.wide);
        for (int64_t j = 0; j < rows.dp; ++j) at.wide[j] /= c;
        dots(rows, at.wide, out);
    }

    void factor_with(const double* w) const {
        if (by_points) {
            copy(at.matrix, at.gram, p * p);
            for (int64_t i = 0; i < rows.n; ++i) at.matrix[i * p + i] += 1.0 / w[i];
            factor(at.matrix, p, rows.n, at.inverse);
            return;
        }
        scale_rows(rows.x, w, rows.n, p, at.scaled);
        set_diagonal(at.matrix, p, d, c);
        gram_upper(at.scaled, rows.x, rows.n, p, at.matrix);
        factor(at.matrix, p, d, at.inverse);
    }

    // s (n4,) from b (n,) and the w of the factor; s may not be b.
    void solve_with(const double* w, const double* b, double* s) const {
        fill(s + rows.n, 0.0, rows.n4 - rows.n);
        if (by_points) {
            copy(s, b, rows.n);
            solve(at.matrix, at.inverse, p, rows.n, s);
            return;
        }
        for (int64_t i = 0; i < rows.n; ++i) s[i] = w[i] * b[i];
        combine(rows, s, at.wide);
        solve(at.matrix, at.inverse, p, d, at.wide);
        for (int64_t i = 0; i < rows.n4; i += 4) {
            const quad moved = dots_of_block(rows.block(i), at.wide, rows.dp);
            store4(s + i, load4(s + i) - load4(w + i) * moved);
        }
    }
};

}  // namespace CONDMETA_ISA
