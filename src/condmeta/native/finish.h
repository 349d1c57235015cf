// The exact solution of a box-constrained quadratic program (see box_qp.h), from a guess of the active bounds.
//
// With some slopes at their bounds the free ones solve
//
//     (F F^T / c + diag(q)) delta = -g_free,   F the free rows of X, g the gradient,
//
// then a free slope that leaves the box goes to its bound, and a slope at a bound becomes free if its gradient
// points inside, until nothing changes: then the optimality conditions hold to rounding. A row of F that
// depends on others (duplicates, more free points than features) keeps its slope.
#pragma once

#include "interior.h"

namespace CONDMETA_ISA {

constexpr double DEPENDENT = 1e-13;  // squared distance of a row from the others' span, relative

// Factors F F^T / c + diag(q) row by row, leaving out rows that depend on those before. Their positions
// are at.index[0..m), their rows are in at.scaled. Returns m.
static int64_t factor_free(const BoxQP& qp, const BatchSpace& at) {
    const Rows& rows = qp.system.rows;
    const int64_t p = qp.system.p, dp = rows.dp;
    const double c = qp.system.c;
    int64_t m = 0;
    fill(at.matrix, 0.0, p * p);
    for (int64_t i = 0; i < rows.n && m < p; ++i) {
        if (at.where[i]) continue;
        const double* x = rows.row(i);
        double* column = at.side;
        const double own = dot(x, x, dp) / c + qp.q[i];
        for (int64_t j = 0; j < m; j += 4) store4(column + j, dots_of_block(at.scaled + j * dp, x, dp) / c);
        double left = own;
        for (int64_t j = 0; j < m; ++j) {
            const double f = column[j] * at.inverse[j];
            left -= f * column[j];
            for (int64_t k = (j + 1) / W * W; k < m; k += W)
                store(column + k, load(column + k) - f * load(at.matrix + j * p + k));
        }
        if (!(left > DEPENDENT * own)) continue;
        for (int64_t j = 0; j < m; ++j) at.matrix[j * p + m] = column[j];
        copy(at.scaled + m * dp, x, dp);
        at.inverse[m] = 1.0 / left;
        at.index[m++] = i;
        if (m % 4 == 1) fill(at.scaled + m * dp, 0.0, 3 * dp);
    }
    return m;
}

// One correction of the free slopes of `a` by the gradient g.
static void correct_free(const BoxQP& qp, const BatchSpace& at, int64_t m, bool by_features, double* a) {
    if (by_features) {
        for (int64_t i = 0; i < qp.n(); ++i) at.rhs[i] = -at.g[i];
        qp.system.solve_with(at.weight, at.rhs, at.step);
        for (int64_t i = 0; i < qp.n(); ++i) a[i] += at.step[i];
        return;
    }
    for (int64_t j = 0; j < m; ++j) at.side[j] = -at.g[at.index[j]];
    for (int64_t j = m; j < qp.system.p; ++j) at.side[j] = 0.0;
    solve(at.matrix, at.inverse, qp.system.p, m, at.side);
    for (int64_t j = 0; j < m; ++j) a[at.index[j]] += at.side[j];
}

// Largest |g| among the free slopes; NaN if any is.
INLINE double worst_free(const BoxQP& qp, const BatchSpace& at) {
    double worst = 0.0;
    for (int64_t i = 0; i < qp.n(); ++i) {
        const double size = at.where[i] ? 0.0 : size_of(at.g[i]);
        worst = size <= worst ? worst : size;
    }
    return worst;
}

// at.where (-1 low, 1 high, 0 free) and at.trial go in as the guess; `slack` is the rounding error of
// a gradient. Returns whether the sets converged; at.trial is then the minimiser.
static bool settle(const BoxQP& qp, const BatchSpace& at, double slack, int max_swaps) {
    double* a = at.trial;
    const bool by_features = qp.curved && !qp.system.by_points;
    for (int swap = 0; swap < max_swaps; ++swap) {
        for (int64_t i = 0; i < qp.n(); ++i)
            a[i] = at.where[i] < 0 ? qp.low[i] : at.where[i] > 0 ? qp.high[i] : a[i];
        int64_t m = 0;
        if (by_features) {
            for (int64_t i = 0; i < qp.n(); ++i) at.weight[i] = at.where[i] ? 0.0 : 1.0 / qp.q[i];
            qp.system.factor_with(at.weight);
        } else {
            m = factor_free(qp, at);
        }
        qp.gradient(a, at.g);
        double worst = __builtin_inf();
        for (int again = 0; again < 3 && worst > slack; ++again) {
            correct_free(qp, at, m, by_features, a);
            qp.gradient(a, at.g);
            worst = worst_free(qp, at);
        }
        if (!(worst < __builtin_inf())) return false;
        bool moved = false;
        for (int64_t i = 0; i < qp.n(); ++i) {
            const int64_t was = at.where[i];
            const bool inside = was < 0 ? at.g[i] < -slack : at.g[i] > slack;
            if (was == 0) at.where[i] = a[i] < qp.low[i] ? -1 : a[i] > qp.high[i] ? 1 : 0;
            else if (inside) at.where[i] = 0;
            moved |= at.where[i] != was;
        }
        if (!moved) return worst <= 1e3 * slack;
    }
    return false;
}

}  // namespace CONDMETA_ISA
