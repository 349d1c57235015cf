// Mehrotra's predictor and corrector for the quadratic program of box_qp.h.
//
//     above = a - low,  below = high - a,   multipliers lower, upper > 0,   g = lower - upper at the end
//     (X X^T / c + diag(q + lower/above + upper/below)) step = -g + fix_lower/above - fix_upper/below
//
// Distances to the bounds are updated, not recomputed from a: they keep their digits.
#pragma once

#include "shifted.h"

namespace CONDMETA_ISA {

struct BoxQP {
    const Shifted& system;
    double count;                      // sum of the weights of points
    bool curved;                       // whether q > 0
    const double *q, *r, *low, *high;  // (n,)

    INLINE_MEMBER int64_t n() const { return system.rows.n; }

    // g = X X^T a / c + q a + r
    void gradient(const double* a, double* g) const {
        const int64_t count = n();
        const double *by = q, *shift = r;
        system.apply(a, g);
#pragma omp simd
        for (int64_t i = 0; i < count; ++i) g[i] += by[i] * a[i] + shift[i];
    }

    // The duality gap of a with gradient g: <g, a> minus the minimum of <g, .> over the box.
    double gap(const double* a, const double* g) const {
        const int64_t count = n();
        const double *bottom = low, *top = high;
        double total = 0.0;
#pragma omp simd reduction(+ : total)
        for (int64_t i = 0; i < count; ++i)
            total += larger(g[i], 0.0) * (a[i] - bottom[i]) + larger(-g[i], 0.0) * (top[i] - a[i]);
        return total;
    }
};

static void start_interior(const BoxQP& qp, const BatchSpace& at) {
    const int64_t n = qp.n();
    fill(at.a, 0.0, qp.system.rows.n4);
    for (int64_t i = 0; i < n; ++i) {
        at.a[i] = (qp.low[i] + qp.high[i]) / 2;
        at.above[i] = at.below[i] = (qp.high[i] - qp.low[i]) / 2;
    }
    qp.gradient(at.a, at.g);
    double start = 2.2250738585072014e-308;
    for (int64_t i = 0; i < n; ++i) start += size_of(at.g[i]) / double(n);
    for (int64_t i = 0; i < n; ++i) {
        at.lower[i] = larger(at.g[i], 0.0) + start;
        at.upper[i] = larger(-at.g[i], 0.0) + start;
    }
}

INLINE double complementarity(const BatchSpace& at, int64_t n) {
    const double *above = at.above, *below = at.below, *lower = at.lower, *upper = at.upper;
    double total = 0.0;
#pragma omp simd reduction(+ : total)
    for (int64_t i = 0; i < n; ++i) total += above[i] * lower[i] + below[i] * upper[i];
    return total;
}

// Changes of the multipliers for at.step; at.d_lower and at.d_upper are the fixes of the corrector on input.
// Returns the longest step length in (0, 1] that keeps everything positive.
INLINE double multiplier_steps(const BatchSpace& at, int64_t n) {
    const double *step = at.step, *above = at.above, *below = at.below, *lower = at.lower, *upper = at.upper;
    double *d_lower = at.d_lower, *d_upper = at.d_upper, shortest = 1.0;
#pragma omp simd reduction(max : shortest)
    for (int64_t i = 0; i < n; ++i) {
        const double by_above = 1.0 / above[i], by_below = 1.0 / below[i];
        const double dl = (d_lower[i] - lower[i] * step[i]) * by_above - lower[i];
        const double du = (d_upper[i] + upper[i] * step[i]) * by_below - upper[i];
        const double on_a = larger(-step[i] * by_above, step[i] * by_below);
        const double on_m = larger(-dl / lower[i], -du / upper[i]);
        d_lower[i] = dl;
        d_upper[i] = du;
        shortest = larger(shortest, larger(on_a, on_m));
    }
    return 1.0 / shortest;
}

// The complementarity sum after a step of this length.
INLINE double complementarity_after(const BatchSpace& at, int64_t n, double length) {
    const double *step = at.step, *above = at.above, *below = at.below, *lower = at.lower, *upper = at.upper;
    const double *d_lower = at.d_lower, *d_upper = at.d_upper;
    double total = 0.0;
#pragma omp simd reduction(+ : total)
    for (int64_t i = 0; i < n; ++i) {
        total += (above[i] + length * step[i]) * (lower[i] + length * d_lower[i]);
        total += (below[i] - length * step[i]) * (upper[i] + length * d_upper[i]);
    }
    return total;
}

// One step; g is the gradient at a before and after. Returns the step length.
static double interior_step(const BoxQP& qp, const BatchSpace& at, double total) {
    const int64_t n = qp.n();
    const double *low = qp.low, *high = qp.high, *q = qp.q;
    double *a = at.a, *g = at.g, *above = at.above, *below = at.below, *lower = at.lower, *upper = at.upper;
    double *weight = at.weight, *rhs = at.rhs, *step = at.step, *d_lower = at.d_lower, *d_upper = at.d_upper;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) {
        weight[i] = 1.0 / (q[i] + lower[i] / above[i] + upper[i] / below[i]);
        rhs[i] = -g[i];
        d_lower[i] = d_upper[i] = 0.0;
    }
    qp.system.factor_with(weight);
    qp.system.solve_with(weight, rhs, step);
    double length = multiplier_steps(at, n);
    const double ratio = complementarity_after(at, n, length) / total;
    const double centre = ratio * ratio * ratio * total / (2.0 * double(n));
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) {
        d_lower[i] = centre - step[i] * d_lower[i];
        d_upper[i] = centre + step[i] * d_upper[i];
        rhs[i] = d_lower[i] / above[i] - d_upper[i] / below[i] - g[i];
    }
    qp.system.solve_with(weight, rhs, step);
    length = 0.995 * multiplier_steps(at, n);
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) {
        const double move = length * step[i];
        a[i] = smaller(larger(a[i] + move, low[i]), high[i]);
        above[i] += move;
        below[i] -= move;
        lower[i] += length * d_lower[i];
        upper[i] += length * d_upper[i];
    }
    qp.gradient(a, g);
    return length;
}

}  // namespace CONDMETA_ISA
