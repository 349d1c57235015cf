// The dual of a piecewise loss, a quadratic program in a box:
//
//     min over low <= a <= high of   1/2 ||X^T a||^2 / c + q/2 ||a||^2 + <r, a>
//
// X (n, d), r = y - X theta, c = lam n. Mehrotra's interior point finds which slopes stand at a bound;
// finish.h then makes them exact. It is tried as soon as the path is close enough for a good guess,
// and again further along if the guess was wrong.
#pragma once

#include "finish.h"

namespace CONDMETA_ISA {

constexpr int MAX_STEPS = 100;
constexpr int MAX_SWAPS = 30;

// Guess the bounds from the interior point and let them settle; the answer goes to at.a.
static bool finish(const BoxQP& qp, const BatchSpace& at, double r_max, double slack, int max_swaps) {
    for (int64_t i = 0; i < qp.n(); ++i) {
        const double width = qp.high[i] - qp.low[i], all = at.lower[i] + at.upper[i] + r_max;
        const bool at_low = (at.a[i] - qp.low[i]) * all < at.lower[i] * width;
        const bool at_high = (qp.high[i] - at.a[i]) * all < at.upper[i] * width;
        at.where[i] = at_low ? -1 : at_high ? 1 : 0;
        at.trial[i] = at.a[i];
    }
    fill(at.trial + qp.n(), 0.0, qp.system.rows.n4 - qp.n());
    if (!settle(qp, at, slack, max_swaps)) return false;
    copy(at.a, at.trial, qp.n());
    return true;
}

// Changes of the multipliers for a step of a, and 1 / the longest length that keeps all positive.
INLINE double multiplier_steps(const BoxQP& qp, const BatchSpace& at, bool corrected, double centre) {
    double shortest = 1.0;
    const double *step = at.step, *above = at.above, *below = at.below, *lower = at.lower, *upper = at.upper;
    double *d_lower = at.d_lower, *d_upper = at.d_upper;
#pragma omp simd reduction(max : shortest)
    for (int64_t i = 0; i < qp.n(); ++i) {
        double fix_lower = 0.0, fix_upper = 0.0;
        if (corrected) fix_lower = d_lower[i], fix_upper = d_upper[i];
        const double ia = 1.0 / above[i], ib = 1.0 / below[i];
        d_lower[i] = fix_lower * ia - lower[i] - lower[i] * step[i] * ia;
        d_upper[i] = fix_upper * ib - upper[i] + upper[i] * step[i] * ib;
        const double on_a = larger(-step[i] * ia, step[i] * ib);
        const double on_m = larger(-d_lower[i] / lower[i], -d_upper[i] / upper[i]);
        shortest = larger(shortest, larger(on_a, on_m));
    }
    (void)centre;
    return shortest;
}

// Leaves the answer in at.a; `target` bounds the complementarity sum, n times the gap.
static void solve_box_qp(const BoxQP& qp, double target, const BatchSpace& at) {
    const int64_t n = qp.n();
    double r_max = 0.0, x_max = 0.0, start = 0.0;
    for (int64_t i = 0; i < qp.system.rows.n4; ++i) at.a[i] = i < n ? (qp.low[i] + qp.high[i]) / 2 : 0.0;
    qp.gradient(at.a, at.g);
    for (int64_t i = 0; i < n; ++i) {
        r_max = larger(r_max, size_of(qp.r[i]));
        x_max = larger(x_max, dot(qp.system.rows.row(i), qp.system.rows.row(i), qp.system.rows.dp));
        start += size_of(at.g[i]) / double(n);
    }
    start = larger(start, 2.2250738585072014e-308);
    const double slack = 1e-12 * (r_max + x_max * double(n) / qp.system.c);
    for (int64_t i = 0; i < n; ++i) {
        at.lower[i] = larger(at.g[i], 0.0) + start;
        at.upper[i] = larger(-at.g[i], 0.0) + start;
    }
    double next_try = larger(target, TRY1 * target / 1e-6);
    for (int iteration = 0; iteration < MAX_STEPS; ++iteration) {
        double total = 0.0;
#pragma omp simd reduction(+ : total)
        for (int64_t i = 0; i < n; ++i) {
            at.above[i] = at.a[i] - qp.low[i];
            at.below[i] = qp.high[i] - at.a[i];
            total += at.above[i] * at.lower[i] + at.below[i] * at.upper[i];
        }
        if (!(total < __builtin_inf())) return;
        if (total <= next_try) {
            if (finish(qp, at, r_max, slack, total <= target ? MAX_SWAPS : SWAPS)) return;
            if (total <= 1e-6 * target) return;
            next_try = total * NEXT;
            qp.gradient(at.a, at.g);
        }
        for (int64_t i = 0; i < n; ++i) {
            at.weight[i] = 1.0 / (qp.q + at.lower[i] / at.above[i] + at.upper[i] / at.below[i]);
            at.rhs[i] = -at.g[i];
        }
        qp.system.factor_with(at.weight);
        qp.system.solve_with(at.weight, at.rhs, at.step);
        double length = 1.0 / multiplier_steps(qp, at, false, 0.0);
        double after = 0.0;
#pragma omp simd reduction(+ : after)
        for (int64_t i = 0; i < n; ++i) {
            after += (at.above[i] + length * at.step[i]) * (at.lower[i] + length * at.d_lower[i]);
            after += (at.below[i] - length * at.step[i]) * (at.upper[i] + length * at.d_upper[i]);
        }
        const double ratio = after / total, centre = ratio * ratio * ratio * total / (2.0 * double(n));
        for (int64_t i = 0; i < n; ++i) {
            const double fix_lower = centre - at.step[i] * at.d_lower[i];
            const double fix_upper = centre + at.step[i] * at.d_upper[i];
            at.d_lower[i] = fix_lower;
            at.d_upper[i] = fix_upper;
            at.rhs[i] = -at.g[i] + fix_lower / at.above[i] - fix_upper / at.below[i];
        }
        qp.system.solve_with(at.weight, at.rhs, at.step);
        length = 0.995 / multiplier_steps(qp, at, true, centre);
        for (int64_t i = 0; i < n; ++i) {
            at.a[i] = smaller(larger(at.a[i] + length * at.step[i], qp.low[i]), qp.high[i]);
            at.lower[i] += length * at.d_lower[i];
            at.upper[i] += length * at.d_upper[i];
        }
        qp.gradient(at.a, at.g);
        if (!(length >= 1e-10)) return;
    }
}

}  // namespace CONDMETA_ISA
