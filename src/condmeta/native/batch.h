// Biased regularisation, one task: the dual point a, then all that is read off it.
//
//     g = X^T a / n,   A = theta - g / lam,   gap = (1/n) sum_i [l(z_i) + l*(a_i) - a_i z_i],  z = X A
//
// A dead zone doubles the points: |a| = p + m with a = p - m, rows X and -X, p, m >= 0.
#pragma once

#include "box_qp.h"
#include "logistic.h"

namespace CONDMETA_ISA {

// Slopes to at.slopes, for losses with a row of numbers.
static void solve_row_loss(const Rows& rows, int64_t d, const double* y, double lam, const Loss& loss, double tol,
                           const BatchSpace& at) {
    const int64_t n = rows.n;
    const double c = lam * double(n);
    dots(rows, at.bias, at.z);
    if (is_unbounded(loss)) {
        const Shifted system(rows, d, c, at);
        for (int64_t i = 0; i < rows.n4; ++i) at.weight[i] = i < n ? 1.0 / loss.curvature : 0.0;
        for (int64_t i = 0; i < n; ++i) at.rhs[i] = at.z[i] - y[i];
        system.factor_with(at.weight);
        system.solve_with(at.weight, at.rhs, at.slopes);
        return;
    }
    double at_theta = 0.0;
    for (int64_t i = 0; i < n; ++i)
        at_theta += loss.curvature > 0 ? value<CURVED>(loss, at.z[i], y[i]) : value<STEP>(loss, at.z[i], y[i]);
    fill(at.slopes, 0.0, rows.n4);
    if (at_theta == 0.0) return;  // theta fits every point: it is the minimiser
    const bool doubled = loss.dead_zone > 0;
    for (int64_t i = 0; i < n; ++i) {
        const double r = y[i] - at.z[i], low = low_at(loss, y[i]), high = high_at(loss, y[i]);
        at.r[i] = r + loss.dead_zone;
        at.low[i] = doubled ? 0.0 : low;
        at.high[i] = high;
        if (doubled) at.r[n + i] = loss.dead_zone - r, at.low[n + i] = 0.0, at.high[n + i] = -low;
    }
    Rows used = rows;
    if (doubled) {
        used.n = 2 * n;
        used.n4 = padded(2 * n);
        used.full = used.n / PAD * PAD;
        used.x = at.twice;
        used.tail = at.twice + used.full * rows.dp;
        for (int64_t i = 0; i < n * rows.dp; ++i) at.twice[i] = rows.x[i], at.twice[n * rows.dp + i] = -rows.x[i];
        fill(at.twice + 2 * n * rows.dp, 0.0, (used.n4 - used.n) * rows.dp);
    }
    const Shifted system(used, d, c, at);
    fill(at.weight + used.n, 0.0, used.n4 - used.n);
    const BoxQP qp{system, loss.curvature, at.r, at.low, at.high};
    solve_box_qp(qp, tol * at_theta, at);
    for (int64_t i = 0; i < n; ++i) at.slopes[i] = doubled ? at.a[i] - at.a[n + i] : at.a[i];
}

// at.slopes (n4,) and at.wide2 = X^T a (dp,) for the theta in at.bias.
static void solve_dual(const Rows& rows, int64_t d, const double* y, double lam, const Loss& loss, double tol,
                       const BatchSpace& at) {
    if (kind_of(loss) == LOGISTIC) {
        solve_logistic(at.bias, rows, d, y, lam, at);
        copy(at.slopes, at.a, rows.n);
    } else {
        solve_row_loss(rows, d, y, lam, loss, tol, at);
    }
    fill(at.slopes + rows.n, 0.0, rows.n4 - rows.n);
    combine(rows, at.slopes, at.wide2);
}

template <Kind kind>
static double certified_gap(const double* a, const double* z, const double* y, int64_t n, const Loss& loss) {
    double total = 0.0;
    for (int64_t i = 0; i < n; ++i) {
        const double term = value<kind>(loss, z[i], y[i]) + conjugate<kind>(loss, a[i], y[i]) - a[i] * z[i];
        total += term < 0.0 ? 0.0 : term;
    }
    return total / double(n);
}

// Tasks [begin, end).
static void batch_range(const Tasks& tasks, const BatchArrays& out, int64_t begin, int64_t end, double* memory) {
    Space space{memory};
    const int64_t d = tasks.d, dp = padded(d);
    const BatchSpace at(space, tasks.n_max, d, tasks.loss.dead_zone > 0);
    fill(at.bias, 0.0, dp);
    for (int64_t t = begin; t < end; ++t) {
        const int64_t lo = tasks.offsets[t], n = tasks.offsets[t + 1] - lo;
        const double *theta = out.theta + t * d, *y = tasks.y + lo;
        double *coef = out.coef + t * d, *gradient = out.gradient + t * d;
        copy(coef, theta, d);
        fill(gradient, 0.0, d);
        out.gap[t] = 0.0;
        if (n == 0) continue;
        const Rows rows = make_rows(tasks.X + lo * d, n, d, at.pack);
        copy(at.bias, theta, d);
        solve_dual(rows, d, y, tasks.lam, tasks.loss, out.tol, at);
        for (int64_t j = 0; j < d; ++j) {
            gradient[j] = at.wide2[j] / double(n);
            coef[j] = theta[j] - gradient[j] / tasks.lam;
            at.bias[j] = coef[j];
        }
        dots(rows, at.bias, at.z);
        copy(out.slopes + lo, at.slopes, n);
        const Kind kind = kind_of(tasks.loss);
        out.gap[t] = kind == STEP     ? certified_gap<STEP>(at.slopes, at.z, y, n, tasks.loss)
                     : kind == CURVED ? certified_gap<CURVED>(at.slopes, at.z, y, n, tasks.loss)
                                      : certified_gap<LOGISTIC>(at.slopes, at.z, y, n, tasks.loss);
    }
}

}  // namespace CONDMETA_ISA
