// Algorithm 1, one task after another, on two sums (feature-major, rows of d numbers):
//
//     theta = -meta_step sum_j phi1_j A_j,   phi1 = (Phi(s_t), 1)
//     A_j += phi1_j g,   B_j += q_t phi1_j g,   q_t = t or t(t+1)/2
//
// A is read once for each task: the pass that adds the update of task t also computes theta of task t+1. B is
// needed only at the end (except for `at_average`), so the updates of four tasks wait and are added together.
// The additions to an entry are the same, in the same order, for any grouping: a stream cut into several calls
// ends in the same bits.
#pragma once

#include "dual.h"
#include "online.h"

namespace CONDMETA_ISA {

constexpr int WAITING = 4;

struct SgdSpace {
    double *A, *B, *theta, *sum, *g, *phi, *next_phi, *phi_sum, *waiting_g, *waiting_phi;

    SgdSpace(Space& space, int64_t d, int64_t k1) {
        const int64_t dp = padded(d);
        A = space.take(k1 * dp);
        B = space.take(k1 * dp);
        double** wide[] = {&theta, &sum, &g};
        for (double** array : wide) *array = space.take(dp);
        double** maps[] = {&phi, &next_phi, &phi_sum};
        for (double** array : maps) *array = space.take(padded(k1));
        waiting_g = space.take(WAITING * dp);
        waiting_phi = space.take(WAITING * padded(k1));
    }
};

// C vectors of columns: A_j += phi_j g, sum = sum_j next_phi_j A_j.
template <int C>
INLINE void advance_columns(double* A, int64_t k1, int64_t dp, const double* phi, const double* g,
                            const double* next_phi, double* sum) {
    vec step[C], acc[C] = {};
    for (int c = 0; c < C; ++c) step[c] = load(g + c * W);
    for (int64_t j = 0; j < k1; ++j) {
        double* row = A + j * dp;
        const double here = phi[j], there = next_phi[j];
        for (int c = 0; c < C; ++c) {
            const vec a = load(row + c * W) + here * step[c];
            store(row + c * W, a);
            acc[c] += there * a;
        }
    }
    for (int c = 0; c < C; ++c) store(sum + c * W, acc[c]);
}

// B_j += sum of the waiting phi_j g, in order.
template <int C>
INLINE void add_columns(double* B, int64_t k1, int64_t dp, const double* phi, const double* g, int waiting) {
    const int64_t kp = padded(k1);
    for (int64_t j = 0; j < k1; ++j) {
        vec acc[C];
        for (int c = 0; c < C; ++c) acc[c] = load(B + j * dp + c * W);
        for (int t = 0; t < waiting; ++t)
            for (int c = 0; c < C; ++c) acc[c] += phi[t * kp + j] * load(g + t * dp + c * W);
        for (int c = 0; c < C; ++c) store(B + j * dp + c * W, acc[c]);
    }
}

#define CONDMETA_STRIPS(call)                                       \
    int64_t c = 0;                                                  \
    for (; dp - c > 6 * W || dp - c == 4 * W; c += 4 * W) call(4);  \
    if (dp - c == 6 * W) call(6);                                   \
    if (dp - c == 5 * W) call(5);                                   \
    if (dp - c == 3 * W) call(3);                                   \
    if (dp - c == 2 * W) call(2);                                   \
    if (dp - c == 1 * W) call(1);

static void advance(double* A, int64_t k1, int64_t dp, const double* phi, const double* g, const double* next_phi,
                    double* sum) {
#define CONDMETA_CALL(C) advance_columns<C>(A + c, k1, dp, phi, g + c, next_phi, sum + c)
    CONDMETA_STRIPS(CONDMETA_CALL)
#undef CONDMETA_CALL
}

static void add_waiting(double* B, int64_t k1, int64_t dp, const double* phi, const double* g, int waiting) {
#define CONDMETA_CALL(C) add_columns<C>(B + c, k1, dp, phi, g + c, waiting)
    CONDMETA_STRIPS(CONDMETA_CALL)
#undef CONDMETA_CALL
}
#undef CONDMETA_STRIPS

// phi1 of task t, zeros beyond k+1; any numbers if there is no such task.
INLINE void load_phi(const SgdArrays& state, int64_t t, int64_t count, double* phi) {
    if (t < count) copy(phi, state.Phi + t * state.k, state.k);
    phi[state.k] = 1.0;
}

// Adds g = u / n and q phi1 to the waiting list, and phi1 to its sum.
INLINE void wait(const SgdSpace& at, int64_t kp, int64_t dp, int waiting, double share, double q) {
    double *g = at.g, *waiting_g = at.waiting_g + waiting * dp;
    for (int64_t j = 0; j < dp; j += W) {
        const vec v = load(g + j) * share;
        store(g + j, v);
        store(waiting_g + j, v);
    }
    double *phi = at.phi, *phi_sum = at.phi_sum, *waiting_phi = at.waiting_phi + waiting * kp;
    for (int64_t j = 0; j < kp; j += W) {
        const vec v = load(phi + j);
        store(waiting_phi + j, v * q);
        store(phi_sum + j, load(phi_sum + j) + v);
    }
}

INLINE int64_t next_task(const Tasks& tasks, int64_t t) {
    while (t < tasks.count && tasks.offsets[t] == tasks.offsets[t + 1]) ++t;
    return t;
}

// theta of the task with phi, from the sums over A and, for `at_average`, B.
INLINE void form_theta(const SgdArrays& state, const SgdSpace& at, int64_t k1, int64_t dp, double step) {
    for (int64_t j = 0; j < dp; j += W) store(at.theta + j, -state.meta_step * load(at.sum + j));
    if (!state.at_average || !(step > 1)) return;
    fill(at.sum, 0.0, dp);
    for (int64_t i = 0; i < k1; ++i)
        for (int64_t j = 0; j < dp; ++j) at.sum[j] += at.phi[i] * at.B[i * dp + j];
    for (int64_t j = 0; j < dp; ++j)
        at.theta[j] = (step * at.theta[j] + state.meta_step * at.sum[j]) / (step - 1);
}

static void copy_map(double* to, int64_t to_stride, const double* from, int64_t from_stride, int64_t k1, int64_t d) {
    for (int64_t j = 0; j < k1; ++j) copy(to + j * to_stride, from + j * from_stride, d);
}

static int64_t sgd_pass(const Tasks& tasks, const SgdArrays& state, double* memory) {
    Space space{memory};
    const int64_t d = tasks.d, dp = padded(d), k1 = state.k + 1, kp = padded(k1);
    SgdSpace at(space, d, k1);
    const int64_t shared = space.used;
    Points points(space, tasks.n_max, d), next(space, tasks.n_max, d);
    space.used = shared;
    const BatchSpace batch(space, tasks.n_max, d, tasks.loss.dead_zone > 0);
    clear(at.A, k1 * dp);
    clear(at.B, k1 * dp);
    double* maps[] = {at.phi, at.next_phi, at.phi_sum};
    for (double* array : maps) clear(array, kp);
    copy(at.phi_sum, state.phi_sum, k1);
    copy_map(at.A, dp, state.grad_sum, d, k1, d);
    copy_map(at.B, dp, state.weighted_sum, d, k1, d);
    int waiting = 0;
    int64_t t = next_task(tasks, 0), failed = -1;
    if (!state.batch) {
        read_points(tasks, t, points);
        prepare_from<0>(points, 0);
    }
    load_phi(state, t, tasks.count, at.phi);
    clear(at.g, dp);
    advance(at.A, k1, dp, at.phi, at.g, at.phi, at.sum);
    while (t < tasks.count) {
        const double step = at.phi_sum[state.k] + 1;
        const int64_t lo = tasks.offsets[t], n = tasks.offsets[t + 1] - lo;
        const int64_t after = next_task(tasks, t + 1);
        form_theta(state, at, k1, dp, step);
        bool finite = true;
        if (state.batch) {
            const Rows rows = make_rows(tasks.X + lo * d, n, d, batch.pack);
            copy(batch.bias, at.theta, dp);
            solve_dual(rows, d, tasks.y + lo, tasks.lam, tasks.loss, state.tol, batch);
            copy(at.g, batch.wide2, dp);
            finite = all_finite(at.g, dp);
        } else {
            double radius = 0.0;
            clear(at.g, dp);
            read_points(tasks, after, next);
            finite = online_task<false>(at.theta, points, next, tasks.lam, tasks.loss, at.g, nullptr, &radius, 0);
        }
        if (!finite) {
            failed = t;
            break;
        }
        const double share = 1.0 / double(n), q = state.linear ? step * (step + 1) / 2 : step;
        wait(at, kp, dp, waiting, share, q);
        load_phi(state, after, tasks.count, at.next_phi);
        advance(at.A, k1, dp, at.phi, at.g, at.next_phi, at.sum);
        if (++waiting == WAITING || state.at_average) {
            add_waiting(at.B, k1, dp, at.waiting_phi, at.waiting_g, waiting);
            waiting = 0;
        }
        swap(at.phi, at.next_phi);
        swap(points, next);
        t = after;
    }
    add_waiting(at.B, k1, dp, at.waiting_phi, at.waiting_g, waiting);
    copy(state.phi_sum, at.phi_sum, k1);
    copy_map(state.grad_sum, d, at.A, dp, k1, d);
    copy_map(state.weighted_sum, d, at.B, dp, k1, d);
    return failed;
}

}  // namespace CONDMETA_ISA
