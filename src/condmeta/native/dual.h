// The dual point of one task under biased regularisation, for any loss.
//
// Point i counts m_i times, n in all. The solution is m a, in the box m [low, high] with the curvatures q / m:
//
//     squared     (diag(q / m) + X X^T / (lam n)) (m a) = X theta - y
//     logistic    Newton on the primal (logistic.h)
//     the others  a quadratic program in a box (box_qp.h); a dead zone doubles its points: |a| = p + m
//                 with a = p - m, rows X and -X, p, m >= 0
//
//     gap = (1/n) sum_i m_i [l(z_i) + l*(a_i) - a_i z_i],   z = X A,  A = theta - X^T (m a) / (lam n)
#pragma once

#include "box_qp.h"
#include "logistic.h"

namespace CONDMETA_ISA {

static void solve_squared(const Rows& rows, int64_t d, const double* y, double c, const Loss& loss,
                          const BatchSpace& at) {
    const Shifted system(rows, d, c, at);
    for (int64_t i = 0; i < rows.n4; ++i) at.weight[i] = i < rows.n ? at.times[i] / loss.curvature : 0.0;
    for (int64_t i = 0; i < rows.n; ++i) at.rhs[i] = at.z[i] - y[i];
    system.factor_with(at.weight);
    system.solve_with(at.weight, at.rhs, at.slopes);
}

// X over -X.
INLINE Rows doubled_rows(const Rows& rows, double* buffer) {
    const int64_t n = 2 * rows.n, size = rows.n * rows.dp;
    for (int64_t i = 0; i < size; ++i) {
        buffer[i] = rows.x[i];
        buffer[size + i] = -rows.x[i];
    }
    fill(buffer + 2 * size, 0.0, (padded(n) - n) * rows.dp);
    const int64_t full = n / PAD * PAD;
    return {buffer, buffer + full * rows.dp, full, n, padded(n), rows.dp};
}

// `scale` is the summed loss at theta.
static void solve_piecewise(const Rows& rows, int64_t d, const double* y, double c, double count, const Loss& loss,
                            double tol, double scale, const BatchSpace& at) {
    const int64_t n = rows.n;
    const bool doubled = loss.dead_zone > 0;
    for (int64_t i = 0; i < n; ++i) {
        const double r = y[i] - at.z[i], low = at.times[i] * low_at(loss, y[i]);
        at.r[i] = r + loss.dead_zone;
        at.low[i] = doubled ? 0.0 : low;
        at.high[i] = at.times[i] * high_at(loss, y[i]);
        at.q[i] = loss.curvature / at.times[i];
        if (doubled) at.r[n + i] = loss.dead_zone - r, at.low[n + i] = 0.0, at.high[n + i] = -low, at.q[n + i] = at.q[i];
    }
    const Rows used = doubled ? doubled_rows(rows, at.twice) : rows;
    const Shifted system(used, d, c, at);
    fill(at.weight + used.n, 0.0, used.n4 - used.n);
    solve_box_qp(BoxQP{system, doubled ? 2 * count : count, loss.curvature > 0, at.q, at.r, at.low, at.high}, tol * scale, scale, at);
    for (int64_t i = 0; i < n; ++i) at.slopes[i] = doubled ? at.answer[i] - at.answer[n + i] : at.answer[i];
}

// Gap of at.slopes, m a (zero beyond n), at its weight vector, which is left in at.wide; X^T (m a) goes to at.wide2
// and a to at.a.
template <Kind kind>
static double gap_of_slopes(const Rows& rows, const double* y, double c, double count, const Loss& loss,
                            const BatchSpace& at) {
    const double* z = at.z;
    combine(rows, at.slopes, at.wide2);
    for (int64_t j = 0; j < rows.dp; ++j) at.wide[j] = at.bias[j] - at.wide2[j] / c;
    dots(rows, at.wide, at.z);
    double total = 0.0;
    for (int64_t i = 0; i < rows.n; ++i) {
        const double a = at.a[i] = within<kind>(loss, at.slopes[i] / at.times[i], y[i]);
        const double term = value<kind>(loss, z[i], y[i]) + conjugate<kind>(loss, a, y[i]) - a * z[i];
        total += term < 0.0 ? 0.0 : at.times[i] * term;
    }
    return total / count;
}

template <Kind kind>
static double solve_kind(const Rows& rows, int64_t d, const double* y, double lam, const Loss& loss, double tol,
                         const BatchSpace& at) {
    const int64_t n = rows.n;
    double count = 0.0, scale = 0.0;
    for (int64_t i = 0; i < n; ++i) count += at.times[i];
    const double c = lam * count;
    dots(rows, at.bias, at.z);
    for (int64_t i = 0; i < n; ++i) scale += at.times[i] * value<kind>(loss, at.z[i], y[i]);
    fill(at.slopes, 0.0, rows.n4);
    if (kind == LOGISTIC) solve_logistic(rows, d, y, lam, count, at);
    else if (is_unbounded(loss)) solve_squared(rows, d, y, c, loss, at);
    else if (scale != 0.0) solve_piecewise(rows, d, y, c, count, loss, tol, scale, at);  // else theta is the minimiser
    const double gap = gap_of_slopes<kind>(rows, y, c, count, loss, at);
    // With all slopes zero the gap is the mean loss at theta: no larger gap is returned. NaN stays NaN.
    if (gap <= scale / count) return gap;
    fill(at.slopes, scale - scale, n);
    return gap_of_slopes<kind>(rows, y, c, count, loss, at);
}

// at.a = a, at.slopes = m a (n4,), at.wide = A and at.wide2 = X^T (m a) (dp,) for the theta in at.bias; m in at.times.
// Returns the gap.
static double solve_weighted(const Rows& rows, int64_t d, const double* y, double lam, const Loss& loss, double tol,
                             const BatchSpace& at) {
    switch (kind_of(loss)) {
        case STEP: return solve_kind<STEP>(rows, d, y, lam, loss, tol, at);
        case CURVED: return solve_kind<CURVED>(rows, d, y, lam, loss, tol, at);
        default: return solve_kind<LOGISTIC>(rows, d, y, lam, loss, tol, at);
    }
}

// The same if every point counts once.
static double solve_dual(const Rows& rows, int64_t d, const double* y, double lam, const Loss& loss, double tol,
                         const BatchSpace& at) {
    fill(at.times, 1.0, rows.n);
    return solve_weighted(rows, d, y, lam, loss, tol, at);
}

}  // namespace CONDMETA_ISA
