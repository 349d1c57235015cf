// Algorithm 1 over T tasks for groups of lanes (grid.py: grid_train).
//
//     theta_t = -meta_step phi1_t A   (at_average: (t theta_t + meta_step phi1_t B) / (t - 1)),
//     g_t = X^T s / n,   A += phi1_t g_t^T,   B += q_t phi1_t g_t^T,   q_t = t or t(t+1)/2
//
// One sweep over A and B adds the gradient of task t and reads theta_{t+1}.
#pragma once

#include "grid_pass.h"

namespace CONDMETA_ISA {

// A and B (k1, d, GROUP), and phi1 of the task before (`old`) and of this one.
struct Sweep {
    double *A, *B;
    const double *old_phi, *phi;  // (k1,)
    double weight;                // q of the task before
    const double* g;              // its gradient (d, GROUP)
    int64_t k1, d;
};

// F features from f on: A += old g, B += weight old g; a = phi A, b = phi B.
template <int F, bool with_b>
INLINE void sweep_features(const Sweep& at, int64_t f, double* a_out, double* b_out) {
    vec g[F * C], a[F * C] = {}, b[F * C] = {};
    for (int v = 0; v < F * C; ++v) g[v] = load(at.g + f * GROUP + v * W);
    const int64_t step = at.d * GROUP;
    double *A = at.A + f * GROUP, *B = at.B + f * GROUP;
    for (int64_t r = 0; r < at.k1; ++r, A += step, B += step) {
        const double old = at.old_phi[r], now = at.phi[r], weighted = at.weight * old;
        for (int v = 0; v < F * C; ++v) {
            const vec here = load(A + v * W) + old * g[v], there = load(B + v * W) + weighted * g[v];
            store(A + v * W, here);
            store(B + v * W, there);
            a[v] += now * here;
            if (with_b) b[v] += now * there;
        }
    }
    for (int v = 0; v < F * C; ++v) {
        store(a_out + f * GROUP + v * W, a[v]);
        if (with_b) store(b_out + f * GROUP + v * W, b[v]);
    }
}

template <bool with_b>
INLINE void sweep(const Sweep& at, double* a_out, double* b_out) {
    int64_t f = 0;
    for (; f + 2 <= at.d; f += 2) sweep_features<2, with_b>(at, f, a_out, b_out);
    for (; f < at.d; ++f) sweep_features<1, with_b>(at, f, a_out, b_out);
}

// Turn the s / lam that grid_pass leaves in U back into s: exactly, for losses with two slopes, because
// sums of such gradients (integers, on integer data) may cancel to zero, which decides a tie.
INLINE void restore_slopes(const GridTask& task, const Loss& loss, const double* lam, double* U) {
    const bool steps = kind_of(loss) == STEP;
    for (int64_t i = 0; i < task.n; ++i) {
        const double high = high_at(loss, task.y[i]), low = low_at(loss, task.y[i]);
        double* row = U + (task.d + i) * GROUP;
        for (int c = 0; c < GROUP; ++c) {
            const double s = row[c] * lam[c];
            row[c] = !steps ? s : s > 0 ? high : s < 0 ? low : s;
        }
    }
}

// g = X^T s / n; s below theta in U.
INLINE void gradient_of(const GridTask& task, const double* X, const double* U, double* g) {
    in_blocks(task.d, [&](auto size, int64_t f) {
        constexpr int P = decltype(size)::value;
        vec sum[P][C] = {};
        multiply<P>(X + f, task.d, U + task.d * GROUP, GROUP, task.n, sum);
        for (int p = 0; p < P; ++p)
            for (int c = 0; c < C; ++c) store(g + (f + p) * GROUP + c * W, sum[p][c] / double(task.n));
    });
}

struct TrainSpace {
    GridTask task;
    LaneTable table;
    double *A, *B, *U, *g, *b, *phi, *old_phi, *lam, *step;

    TrainSpace(Space& space, int64_t n_max, int64_t d, int64_t k1)
        : task(space, d, n_max, 0), table(space, n_max, GROUP) {
        A = space.take(k1 * d * GROUP);
        B = space.take(k1 * d * GROUP);
        U = space.take((d + n_max) * GROUP);
        g = space.take(d * GROUP);
        b = space.take(d * GROUP);
        phi = space.take(k1);
        old_phi = space.take(k1);
        lam = space.take(GROUP);
        step = space.take(GROUP);
    }
};

// theta of the t-th task into the top of U, after the gradient before it is added.
template <bool with_b>
INLINE void next_theta(const TrainSpace& at, const Sweep& sums, double t) {
    sweep<with_b>(sums, at.U, at.b);
    for (int64_t f = 0; f < sums.d; ++f)
        for (int c = 0; c < C; ++c) {
            const int64_t here = f * GROUP + c * W;
            const vec step = load(at.step + c * W);
            vec theta = -step * load(at.U + here);
            if (with_b && t > 1) theta = (t * theta + step * load(at.b + here)) / (t - 1);
            store(at.U + here, theta);
        }
}

// The lanes from `first` on.
static void train_lanes(const Tasks& tasks, const GridTrain& run, int64_t first, TrainSpace& at) {
    const int64_t d = tasks.d, L = run.lanes, k1 = run.k + 1;
    take_lanes(run.lam, 1, L, first, GROUP, at.lam);
    take_lanes(run.meta_step, 1, L, first, GROUP, at.step);
    take_lanes(run.grad_sum, k1 * d, L, first, GROUP, at.A);
    take_lanes(run.weighted_sum, k1 * d, L, first, GROUP, at.B);
    for (int c = 0; c < GROUP; ++c) at.table.by_lam[c] = 1.0 / at.lam[c];
    fill(at.g, 0.0, d * GROUP);
    fill(at.old_phi, 0.0, k1);
    double t = run.seen, weight = 0.0;
    for (int64_t i = 0;; ++i) {
        const bool last = i == tasks.count;
        for (int64_t r = 0; r < run.k; ++r) at.phi[r] = last ? 0.0 : run.Phi[i * run.k + r];
        at.phi[run.k] = 1.0;
        t += 1;
        const Sweep sums{at.A, at.B, at.old_phi, at.phi, weight, at.g, k1, d};
        if (run.at_average)
            next_theta<true>(at, sums, t);
        else
            next_theta<false>(at, sums, t);
        if (last) break;
        read_support(at.task, tasks, i);
        fill_table(at.table, at.task, tasks.loss);
        grid_pass<false>(at.task, at.table, tasks.loss, at.U);
        restore_slopes(at.task, tasks.loss, at.lam, at.U);
        gradient_of(at.task, tasks.X + tasks.offsets[i] * d, at.U, at.g);
        if (run.gradients) put_lanes(at.g, d, L, first, GROUP, run.gradients + i * d * L);
        weight = run.linear ? t * (t + 1) / 2 : t;
        swap(at.phi, at.old_phi);
    }
    put_lanes(at.A, k1 * d, L, first, GROUP, run.grad_sum);
    put_lanes(at.B, k1 * d, L, first, GROUP, run.weighted_sum);
}

static void grid_train(const Tasks& tasks, const GridTrain& run, int64_t begin, int64_t end, double* memory) {
    Space space{memory};
    TrainSpace at(space, tasks.n_max, tasks.d, run.k + 1);
    for (int64_t block = begin; block < end; ++block) train_lanes(tasks, run, block * GROUP, at);
}

static int64_t grid_train_space(int64_t n_max, int64_t d, int64_t k) {
    Space space{nullptr};
    TrainSpace(space, n_max, d, k + 1);
    return space.used;
}

}  // namespace CONDMETA_ISA
