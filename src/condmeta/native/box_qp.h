// The dual of a piecewise loss, a quadratic program in a box:
//
//     min over low <= a <= high of   1/2 ||X^T a||^2 / c + 1/2 sum_i q_i a_i^2 + <r, a>
//
// X (n, d), r = y - X theta, c = lam n. Mehrotra's interior point (interior.h) finds which slopes are at a
// bound; finish.h makes them exact. finish.h is tried as soon as the path is close enough for a good guess,
// and again further along if the guess was wrong. The point with the smallest duality gap is returned.
#pragma once

#include "finish.h"
#include "interior.h"

namespace CONDMETA_ISA {

constexpr int MAX_STEPS = 100;
constexpr int MAX_SWAPS = 30;
constexpr int EARLY_SWAPS = 4;
constexpr double EARLY = 1e-4;  // first try of the finish, relative to the loss at theta
constexpr double LATE = 1e-6;   // last try, relative to the target
constexpr double ROUNDING = 1e-12;  // a gap small enough to stop, relative to the loss at theta

// Keeps a as the answer if its gap is the smallest so far.
INLINE void offer(const BoxQP& qp, const double* a, const double* g, double* answer, double* best) {
    const double gap = qp.gap(a, g);
    if (!(gap < *best)) return;
    *best = gap;
    copy(answer, a, qp.n());
}

// Guesses the bounds from the interior point, iterates them in at.trial and offers the result as the answer.
// Returns whether the bounds converged.
static bool finish(const BoxQP& qp, const BatchSpace& at, double slack, int max_swaps, double* best) {
    double r_max = 0.0;
    for (int64_t i = 0; i < qp.n(); ++i) r_max = larger(r_max, size_of(qp.r[i]));
    for (int64_t i = 0; i < qp.n(); ++i) {
        const double width = qp.high[i] - qp.low[i], all = at.lower[i] + at.upper[i] + r_max;
        const bool at_low = at.above[i] * all < at.lower[i] * width;
        const bool at_high = at.below[i] * all < at.upper[i] * width;
        at.where[i] = at_low ? -1 : at_high ? 1 : 0;
        at.trial[i] = at.a[i];
    }
    fill(at.trial + qp.n(), 0.0, qp.system.rows.n4 - qp.n());
    if (!settle(qp, at, slack, max_swaps)) return false;
    offer(qp, at.trial, at.g, at.answer, best);
    return true;
}

// The rounding error of a gradient.
INLINE double gradient_slack(const BoxQP& qp) {
    const Rows& rows = qp.system.rows;
    double r_max = 0.0, x_max = 0.0;
    for (int64_t i = 0; i < rows.n; ++i) {
        r_max = larger(r_max, size_of(qp.r[i]));
        x_max = larger(x_max, dot(rows.row(i), rows.row(i), rows.dp));
    }
    return 1e-12 * (r_max + x_max * qp.count / qp.system.c);
}

// Leaves the answer in at.answer. `target` bounds n times the gap; `scale` is the summed loss at theta.
static void solve_box_qp(const BoxQP& qp, double target, double scale, const BatchSpace& at) {
    const double slack = gradient_slack(qp), enough = larger(target, ROUNDING * scale);
    double next_try = larger(target, EARLY * scale), best = __builtin_inf();
    fill(at.answer, 0.0, qp.n());
    start_interior(qp, at);
    for (int iteration = 0; iteration < MAX_STEPS; ++iteration) {
        const double total = complementarity(at, qp.n());
        if (!(total < __builtin_inf())) break;
        if (total <= next_try) {
            offer(qp, at.a, at.g, at.answer, &best);
            if (finish(qp, at, slack, total <= target ? MAX_SWAPS : EARLY_SWAPS, &best) && best <= enough) return;
            if (total <= LATE * target) return;
            next_try = total * 1e-2;
            qp.gradient(at.a, at.g);
        }
        if (!(interior_step(qp, at, total) >= 1e-10)) break;
    }
    offer(qp, at.a, at.g, at.answer, &best);
    finish(qp, at, slack, MAX_SWAPS, &best);
}

}  // namespace CONDMETA_ISA
