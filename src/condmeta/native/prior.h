// The prior of meta/ridge.py for few tasks: J and its gradient in the coordinates of a frame (meta/prior.py), and the
// ascent in these coordinates. Names are those of the Python twins.
#pragma once

#include "ascent.h"
#include "posterior.h"

namespace CONDMETA_ISA {

constexpr double GROWN = 2.0, SHRUNK = 0.25;  // changes of the basis after which a new frame is laid

struct PriorSpace {
    double *moved_W, *by_W, *map;                            // (k1, d), the last one scratch
    double *turned_L, *turned_B;                      // (d, d): L^T and B^T of the frame
    double *moved_L, *inverse, *R, *by_L, *square;    // (d, d), the last one scratch
    double *theta, *g;                                       // (T, d)
    double *s2, *rss, *loglik;                               // (T,)
    double* posterior;

    PriorSpace(Space& space, int64_t T, int64_t d, int64_t k1) {
        double **maps[] = {&moved_W, &by_W, &map}, **squares[] = {&turned_L, &turned_B, &moved_L, &inverse, &R, &by_L, &square},
               **rows[] = {&theta, &g}, **numbers[] = {&s2, &rss, &loglik};
        for (double** array : maps) *array = space.take(k1 * d);
        for (double** array : squares) *array = space.take(d * d);
        for (double** array : rows) *array = space.take(T * d);
        for (double** array : numbers) *array = space.take(T);
        posterior = space.take(posterior_space(d));
    }
};

// W + C (V L^T, v B^T), L + B diag(E) + L (E - diag(E)) and s2 at coordinates x.
INLINE double move_prior(const PriorFrame& frame, const PriorSpace& at, const double* x) {
    const int64_t d = frame.d, k1 = frame.k1, n_diagonal = frame.metric == IDENTITY ? 1 : d;
    const double *diagonal = x + k1 * d, *below = diagonal + n_diagonal;
    const int64_t last = (k1 - 1) * d;
    fill(at.map, 0.0, k1 * d);
    add_product(at.map, 1.0, x, at.turned_L, k1 - 1, d, d);
    add_product(at.map + last, 1.0, x + last, at.turned_B, 1, d, d);
    copy(at.moved_W, frame.W, k1 * d);
    add_product(at.moved_W, 1.0, frame.C, at.map, k1, k1, d);
    for (int64_t i = 0; i < d; ++i)
        for (int64_t j = 0; j < d; ++j) {
            const double growth = frame.unit_diagonal * diagonal[frame.metric == IDENTITY ? 0 : j];
            at.moved_L[i * d + j] = frame.L[i * d + j] + frame.B[i * d + j] * growth;
        }
    if (frame.metric == FULL)
        for (int64_t i = 0; i < d; ++i)
            for (int64_t m = 1; m <= i; ++m)  // row m of E
                add_scaled(at.moved_L + i * d, frame.unit_below * frame.L[i * d + m], below + m * (m - 1) / 2, m);
    const double growth = frame.unit_noise * x[frame.p - 1];
    return frame.s2 * __builtin_exp(smaller(growth, 500.0));
}

// Subtracts (kappa/2) tr(M^T H^-1 M) from J, which is returned, and from its derivatives.
INLINE double add_ridge(const PriorFrame& frame, const PriorSpace& at, double value) {
    const int64_t d = frame.d, k = frame.k1 - 1;
    for (int64_t a = 0; a < k; ++a)  // V = M L^-T
        for (int64_t i = 0; i < d; ++i) at.map[a * d + i] = inner(at.moved_W + a * d, at.inverse + i * d, i + 1);
    fill(at.square, 0.0, d * d);
    add_transposed_product(at.square, 1.0, at.map, at.map, d, k, d);
    add_transposed_product(at.by_L, frame.kappa, at.inverse, at.square, d, d, d);
    value -= frame.kappa / 2 * inner(at.map, at.map, k * d);
    add_product(at.by_W, -frame.kappa, at.map, at.inverse, k, d, d);
    return value;
}

// The gradient (p,) in the coordinates, from the gradient in W, L and log s2.
INLINE void pull(const PriorFrame& frame, const PriorSpace& at, double by_log_s2, double* gradient) {
    const int64_t d = frame.d, k1 = frame.k1;
    fill(gradient, 0.0, frame.p);
    fill(at.map, 0.0, k1 * d);
    add_transposed_product(at.map, 1.0, frame.C, at.by_W, k1, k1, d);
    const int64_t last = (k1 - 1) * d;
    add_product(gradient, 1.0, at.map, frame.L, k1 - 1, d, d);
    add_product(gradient + last, 1.0, at.map + last, frame.B, 1, d, d);
    fill(at.square, 0.0, d * d);  // the derivative by E
    add_transposed_product(at.square, 1.0, frame.L, at.by_L, d, d, d);
    double *diagonal = gradient + k1 * d, *below = diagonal + (frame.metric == IDENTITY ? 1 : d);
    for (int64_t i = 0; i < d; ++i) {
        const int64_t ii = i * d + i;
        const double by_scale = at.square[ii] + (frame.B[ii] - frame.L[ii]) * at.by_L[ii];
        diagonal[frame.metric == IDENTITY ? 0 : i] += frame.unit_diagonal * by_scale;
    }
    for (int64_t i = 1; frame.metric == FULL && i < d; ++i)
        add_scaled(below + i * (i - 1) / 2, frame.unit_below, at.square + i * d, i);
    gradient[frame.p - 1] = frame.unit_noise * by_log_s2;
}

// Whether the units of a new frame would be about the same.
INLINE bool units_hold(const PriorFrame& frame, const double* x) {
    const double* diagonal = x + frame.k1 * frame.d;
    bool all = true;
    for (int64_t i = 0; i < (frame.metric == IDENTITY ? 1 : frame.d); ++i) {
        const double change = 1.0 + frame.unit_diagonal * diagonal[i];
        all = all && change < GROWN && change > SHRUNK;
    }
    return all;
}

// J at coordinates x (p,), and its gradient (p,).
INLINE double evaluate_prior(const PriorTasks& tasks, const PriorFrame& frame, const PriorSpace& at, const double* x,
                             double* gradient) {
    const int64_t T = tasks.T, d = frame.d, k1 = frame.k1;
    const double s2 = move_prior(frame, at, x);
    fill(at.s2, s2, T);
    fill(at.theta, 0.0, T * d);
    add_product(at.theta, 1.0, tasks.Phi1, at.moved_W, T, k1, d);
    const PosteriorTasks run{tasks.gram, tasks.moment, tasks.square, tasks.count, at.theta,
                             at.moved_L, at.s2,        d,            frame.metric == FULL, 0, 0.0};
    fill(at.R, 0.0, d * d);
    posterior_range(run, {at.g, at.rss, at.loglik, nullptr}, 0, T, at.R, at.posterior);
    double value = 0.0, rss = 0.0, points = 0.0;
    for (int64_t t = 0; t < T; ++t) {
        value += at.loglik[t];
        rss += at.rss[t];
        points += tasks.count[t];
    }
    fill(at.by_W, 0.0, k1 * d);
    add_transposed_product(at.by_W, 1.0, tasks.Phi1, at.g, k1, T, d);
    fill(at.square, 0.0, d * d);
    fill(at.by_L, 0.0, d * d);
    add_transposed_product(at.square, 1.0, at.g, at.g, d, T, d);
    add_product(at.by_L, 1.0, at.square, at.moved_L, d, d, d);
    invert_triangle(at.inverse, at.moved_L, d);
    add_transposed_product(at.by_L, -1.0, at.inverse, at.R, d, d, d);
    if (frame.kappa > 0.0) value = add_ridge(frame, at, value);
    pull(frame, at, (rss / s2 - points) / 2, gradient);
    return value;
}

static int64_t prior_space(int64_t T, int64_t d, int64_t k1, int64_t p) {
    Space space{nullptr};
    PriorSpace(space, T, d, k1);
    AscentSpace(space, p);
    return space.used;
}

static Steps climb_prior(const PriorTasks& tasks, const PriorFrame& frame, const Climb& climb, double* memory) {
    Space space{memory};
    const PriorSpace at(space, tasks.T, frame.d, frame.k1);
    for (int64_t i = 0; i < frame.d; ++i)
        for (int64_t j = 0; j < frame.d; ++j) {
            at.turned_L[j * frame.d + i] = frame.L[i * frame.d + j];
            at.turned_B[j * frame.d + i] = frame.B[i * frame.d + j];
        }
    const auto evaluate = [&](const double* x, double* gradient) {
        return evaluate_prior(tasks, frame, at, x, gradient);
    };
    const auto holds = [&](const double* x) { return units_hold(frame, x); };
    return ascend(evaluate, holds, climb, frame.p, AscentSpace(space, frame.p));
}

}  // namespace CONDMETA_ISA
