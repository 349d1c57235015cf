// Logistic loss: damped Newton steps on the primal in v = w - theta, to rounding.
//
//     F(v) = (1/n) sum_i m_i l(z_i, y_i) + lam/2 ||v||^2,   z = X (theta + v),   p_i = |l'(z_i)|
//     (S^T S + lam I) step = X^T (m l') / n + lam v,   S = diag(sqrt(m p (1-p) / n)) X
//     n <= d:   step = (g - S^T (S S^T + lam I)^-1 S g) / lam,   g the right side
//
// Point i counts m_i times (at.times), n in all. theta is in at.bias; m l' at the minimiser goes to at.slopes.
#pragma once

#include "loss.h"
#include "shifted.h"

namespace CONDMETA_ISA {

constexpr int MAX_NEWTON = 1000;

// F(v), with z left in at.z and theta + v in at.wide.
INLINE double logistic_objective(const double* theta, const double* v, const Rows& rows, const double* y,
                                 double lam, double count, const BatchSpace& at) {
    double total = 0.0;
    for (int64_t j = 0; j < rows.dp; ++j) at.wide[j] = theta[j] + v[j];
    dots(rows, at.wide, at.z);
    for (int64_t i = 0; i < rows.n; ++i) total += at.times[i] * softplus(-y[i] * at.z[i]);
    return total / count + lam / 2 * dot(v, v, rows.dp);
}

// at.wide: the right side in, the Newton step out.
static void newton_step(const Rows& rows, int64_t d, double lam, double count, const BatchSpace& at) {
    const int64_t n = rows.n, dp = rows.dp;
    for (int64_t i = 0; i < rows.n4; ++i) {
        const double p = i < n ? size_of(at.a[i]) : 0.0;
        const double weight = i < n ? __builtin_sqrt(at.times[i] * (p * (1 - p)) / count) : 0.0;
        for (int64_t j = 0; j < dp; ++j) at.scaled[i * dp + j] = i < n ? weight * rows.row(i)[j] : 0.0;
    }
    if (n > d) {
        set_diagonal(at.matrix, dp, d, lam);
        gram_upper(at.scaled, at.scaled, n, dp, at.matrix);
        factor(at.matrix, dp, d, at.inverse);
        solve(at.matrix, at.inverse, dp, d, at.wide);
        return;
    }
    Rows S = rows;
    S.x = at.scaled;
    S.tail = at.scaled + S.full * dp;
    const int64_t p = rows.n4;
    gram_of_points(S, p, 1.0, at.turned, at.matrix);
    for (int64_t i = 0; i < n; ++i) at.matrix[i * p + i] += lam;
    factor(at.matrix, p, n, at.inverse);
    dots(S, at.wide, at.step);
    solve(at.matrix, at.inverse, p, n, at.step);
    combine(S, at.step, at.wide2);
    for (int64_t j = 0; j < dp; ++j) at.wide[j] = (at.wide[j] - at.wide2[j]) / lam;
}

static void solve_logistic(const Rows& rows, int64_t d, const double* y, double lam, double count,
                           const BatchSpace& at) {
    const int64_t n = rows.n, dp = rows.dp;
    const double* theta = at.bias;
    double *v = at.side, *trial = at.wide3;
    fill(v, 0.0, dp);
    fill(at.a + n, 0.0, rows.n4 - n);
    double value = logistic_objective(theta, v, rows, y, lam, count, at);
    for (int iteration = 0; iteration < MAX_NEWTON; ++iteration) {
        for (int64_t i = 0; i < n; ++i) at.a[i] = at.times[i] * logistic_slope(at.z[i], y[i]) / count;
        combine(rows, at.a, at.wide);
        for (int64_t i = 0; i < n; ++i) at.a[i] *= count / at.times[i];
        for (int64_t j = 0; j < dp; ++j) at.wide[j] += lam * v[j];
        newton_step(rows, d, lam, count, at);
        double* step = at.wide2;
        copy(step, at.wide, dp);
        double length = 1.0, reached;
        while (true) {
            for (int64_t j = 0; j < dp; ++j) trial[j] = v[j] - length * step[j];
            reached = logistic_objective(theta, trial, rows, y, lam, count, at);
            if (reached <= value + 1e-13 * value || length < 1e-10) break;  // up to rounding
            length /= 2;
        }
        double step_max = 0.0, v_max = 0.0;
        for (int64_t j = 0; j < dp; ++j) {
            v[j] = trial[j];
            step_max = larger(step_max, size_of(step[j]));
            v_max = larger(v_max, size_of(v[j]));
        }
        value = reached;
        // Quadratic convergence: a step of 1e-9 leaves an error of 1e-18.
        if (step_max <= 1e-9 * (1e-3 + v_max) || length < 1e-10) break;
    }
    for (int64_t i = 0; i < n; ++i) at.slopes[i] = at.times[i] * logistic_slope(at.z[i], y[i]);
}

}  // namespace CONDMETA_ISA
