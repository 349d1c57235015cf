// Normal posteriors of tasks (inner/variational.py), task by task, in rows u = L^T x.
//
// The rows are also stored as columns, `turned` (d, n4), for triangular solves of all points at once.
// Rows beyond n are zero, have a = b = 0 and count zero times; their weight and push stay zero.
#pragma once

#include "averaged.h"
#include "gram.h"
#include "kernels.h"
#include "space.h"

namespace CONDMETA_ISA {

constexpr int MOST_STEPS = 200;
constexpr double SHORTEST_STEP = 1e-6;  // share of a step

struct VariationalSpace {
    double *pack, *white, *scaled;                                     // (n4, dp)
    double *turned, *solved;                                           // (dp, n4)
    double *L, *A, *Q;                                                 // (dp, dp)
    double *theta, *z, *inverse;                                       // (dp,)
    double *a, *b, *bias, *weight, *push, *new_weight, *new_push, *unit;      // (n4,)
    double *moved, *variance, *loss, *r, *D, *by_weight, *by_push, *times;    // (n4,)

    VariationalSpace(Space& space, int64_t n_max, int64_t d) {
        const int64_t n4 = padded(n_max), dp = padded(d);
        double **tall[] = {&white, &scaled, &turned, &solved}, **square[] = {&L, &A, &Q};
        double** wide[] = {&theta, &z, &inverse};
        double** points[] = {&a,     &b,        &bias, &weight, &push, &new_weight, &new_push, &unit,
                             &moved, &variance, &loss, &r,      &D,    &by_weight,  &by_push,  &times};
        pack = space.take(row_buffer(n_max, d));
        for (double** array : tall) *array = space.take(n4 * dp);
        for (double** array : square) *array = space.take(dp * dp);
        for (double** array : wide) *array = space.take(dp);
        for (double** array : points) *array = space.take(n4);
    }
};

// u = L^T x of every row.
INLINE void whiten(const Rows& rows, const double* L, int64_t d, double* out) {
    for (int64_t i = 0; i < rows.n4; ++i) {
        const double* x = rows.block(i / PAD * PAD) + i % PAD * rows.dp;
        double* to = out + i * rows.dp;
        clear(to, rows.dp);
        for (int64_t k = 0; k < d; ++k)
            for (int64_t j = 0; j <= k; j += W) store(to + j, load(to + j) + x[k] * load(L + k * rows.dp + j));
    }
}

// solved = V^-T turned, with A = V^T diag(1/v) V; then <u, A^-1 u> = sum_j solved_j^2 / v_j.
INLINE void solve_forward(int64_t n4, int64_t d, int64_t dp, const VariationalSpace& at) {
    copy(at.solved, at.turned, d * n4);
    for (int64_t i = 0; i < n4; i += W) store(at.variance + i, vec{});
    for (int64_t j = 0; j < d; ++j) {
        const double* from = at.solved + j * n4;
        const double by = at.inverse[j];
        for (int64_t i = 0; i < n4; i += W) store(at.variance + i, load(at.variance + i) + by * load(from + i) * load(from + i));
        for (int64_t k = j + 1; k < d; ++k) {
            const double f = by * at.A[j * dp + k];
            double* to = at.solved + k * n4;
            for (int64_t i = 0; i < n4; i += W) store(to + i, load(to + i) - f * load(from + i));
        }
    }
}

// From V^-T turned to A^-1 turned.
INLINE void solve_backward(int64_t n4, int64_t d, int64_t dp, const VariationalSpace& at) {
    for (int64_t j = d - 1; j >= 0; --j) {
        double* to = at.solved + j * n4;
        for (int64_t k = j + 1; k < d; ++k) {
            const double f = at.A[j * dp + k];
            const double* from = at.solved + k * n4;
            for (int64_t i = 0; i < n4; i += W) store(to + i, load(to + i) - f * load(from + i));
        }
        for (int64_t i = 0; i < n4; i += W) store(to + i, at.inverse[j] * load(to + i));
    }
}

// l for `weight` and `push`; leaves z, moved, variance, r, D, and the factor of A.
static double variational_value(const Rows& white, int64_t d, const double* weight, const double* push,
                                const VariationalSpace& at) {
    const int64_t dp = white.dp, n4 = white.n4;
    for (int64_t i = 0; i < n4; ++i)
        for (int64_t j = 0; j < dp; j += W) store(at.scaled + i * dp + j, weight[i] * load(white.x + i * dp + j));
    set_diagonal(at.A, dp, d, 1.0);
    gram_upper(at.scaled, white.x, n4, dp, at.A);
    factor(at.A, dp, d, at.inverse);
    combine(white, push, at.z);
    solve(at.A, at.inverse, dp, d, at.z);
    dots(white, at.z, at.moved);
    solve_forward(n4, d, dp, at);
    vec total = {}, trace = {};
    for (int64_t i = 0; i < n4; i += W) {
        const vec a = load(at.a + i), b = load(at.b + i), variance = load(at.variance + i);
        const vec mean = load(at.bias + i) + load(at.moved + i), times = load(at.times + i);
        const Averaged average = averaged_loss(mean, variance);
        total += times * (a * mean - b * average.loss);
        trace += load(weight + i) * variance;
        store(at.loss + i, average.loss);
        store(at.r + i, times * (a - b * average.slope));
        store(at.D + i, times * b * average.curvature);
    }
    double logdet = 0.0;
    for (int64_t j = 0; j < d; ++j) logdet -= __builtin_log(at.inverse[j]);
    return sum(total) - (dot(at.z, at.z, dp) - sum(trace) + logdet) / 2;
}

// Maximises l from at.weight and at.push on; they hold the maximiser at the end.
static double variational_ascend(const Rows& white, int64_t d, double tol, const VariationalSpace& at) {
    const int64_t n4 = white.n4;
    double value = variational_value(white, d, at.weight, at.push, at);
    for (int step = 0; step < MOST_STEPS; ++step) {
        double largest = 0.0, length = 1.0, reached;
        for (int64_t i = 0; i < n4; ++i) {
            at.by_weight[i] = at.D[i] - at.weight[i];
            at.by_push[i] = at.D[i] * at.moved[i] + at.r[i] - at.push[i];
            const double by = larger(size_of(at.by_weight[i]), size_of(at.by_push[i]));
            largest = larger(largest, by / at.unit[i]);
        }
        if (!(largest > tol)) break;
        while (true) {
            for (int64_t i = 0; i < n4; ++i) {
                at.new_weight[i] = at.weight[i] + length * at.by_weight[i];
                at.new_push[i] = at.push[i] + length * at.by_push[i];
            }
            reached = variational_value(white, d, at.new_weight, at.new_push, at);
            // Up to rounding.
            if (!(reached < value - 1e-10 * (1 + size_of(value))) || length <= SHORTEST_STEP) break;
            length /= 2;
        }
        copy(at.weight, at.new_weight, n4);
        copy(at.push, at.new_push, n4);
        value = reached;
    }
    return value;
}

static void variational_task(const VariationalTasks& run, const VariationalArrays& out, int64_t t,
                             const VariationalSpace& at) {
    const int64_t d = run.d, first = run.offsets[t], n = run.offsets[t + 1] - first;
    const Rows rows = make_rows(run.X + first * d, n, d, at.pack);
    const int64_t dp = rows.dp, n4 = rows.n4;
    whiten(rows, at.L, d, at.white);
    Rows white = rows;
    white.x = at.white;
    white.tail = at.white + rows.full * dp;
    for (int64_t i = 0; i < n4; ++i)
        for (int64_t j = 0; j < d; ++j) at.turned[j * n4 + i] = at.white[i * dp + j];
    copy(at.theta, run.theta + t * d, d);
    const double* given[] = {run.a, run.b, run.weight, run.push};
    double* own[] = {at.a, at.b, at.weight, at.push};
    for (int k = 0; k < 4; ++k) {
        copy(own[k], given[k] + first, n);
        fill(own[k] + n, 0.0, n4 - n);
    }
    dots(rows, at.theta, at.bias);
    for (int64_t i = 0; i < n4; ++i) {
        at.times[i] = i >= n ? 0.0 : run.times ? run.times[first + i] : 1.0;
        at.unit[i] = (at.times[i] > 0 ? at.times[i] : 1.0) * larger(at.a[i], 1.0);
        if (i < n) at.bias[i] -= run.e[first + i];
    }
    out.bound[t] = variational_ascend(white, d, run.tol, at);
    copy(out.z + t * d, at.z, d);
    copy(out.weight + first, at.weight, n);
    copy(out.push + first, at.push, n);
    copy(out.r + first, at.r, n);
    copy(out.loss + first, at.loss, n);
    combine(rows, at.r, at.z);
    copy(out.g + t * d, at.z, d);
    solve_backward(n4, d, dp, at);
    for (int64_t k = 0; k < d; ++k) {  // D A^-1 u, back as rows
        const double* from = at.solved + k * n4;
        for (int64_t i = 0; i < n; ++i) at.scaled[i * dp + k] = at.D[i] * from[i];
    }
    for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j < d; ++j) {
            const double x = rows.row(i)[j];
            double* row = at.Q + j * dp;
            for (int64_t k = 0; k <= j; k += W) store(row + k, load(row + k) + x * load(at.scaled + i * dp + k));
        }
}

// Tasks [begin, end); their part of Q goes to `Q` (d, d). Tasks without points stay at zero.
static void variational_range(const VariationalTasks& run, const VariationalArrays& out, int64_t begin, int64_t end,
                              double* Q, double* memory) {
    Space space{memory};
    const int64_t d = run.d, dp = padded(d);
    const VariationalSpace at(space, run.n_max, d);
    double* zeros[] = {at.L, at.Q};
    for (double* array : zeros) clear(array, dp * dp);
    clear(at.theta, dp);
    for (int64_t i = 0; i < d; ++i) copy(at.L + i * dp, run.factor + i * d, d);
    for (int64_t t = begin; t < end; ++t)
        if (run.offsets[t] < run.offsets[t + 1]) variational_task(run, out, t, at);
    for (int64_t i = 0; i < d; ++i)
        for (int64_t j = 0; j <= i; ++j) Q[i * d + j] = at.Q[i * dp + j];
}

static int64_t variational_space(int64_t n_max, int64_t d) {
    Space space{nullptr};
    VariationalSpace(space, n_max, d);
    return space.used;
}

}  // namespace CONDMETA_ISA
