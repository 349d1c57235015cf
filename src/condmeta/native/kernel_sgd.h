// Algorithm 1 by kernel evaluations:
//
//     theta_t = -meta_step sum_{j<t} (k(s_t, s_j) + 1) g_j
//
// Blocks of TILE tasks, counted from the first task ever: one dense product, four rows at a time, adds the
// finished blocks to the thetas of a block; the tasks of the block itself follow one by one. The order of the
// additions then does not depend on how a stream is cut into calls.
#pragma once

#include "dual.h"
#include "kernel_tile.h"
#include "online.h"

namespace CONDMETA_ISA {

struct KernelSpace {
    double *tile, *sums, *theta, *g;

    KernelSpace(Space& space, int64_t d) {
        tile = space.take(4 * TILE);
        sums = space.take(TILE * padded(d));
        theta = space.take(padded(d));
        g = space.take(padded(d));
    }
};

static int64_t kernel_pass(const Tasks& tasks, const KernelArrays& run, double* memory) {
    Space space{memory};
    const int64_t d = tasks.d, dp = padded(d), p = run.p, total = run.start + tasks.count;
    const Support support(space, total, p, d);
    const KernelSpace at(space, d);
    const int64_t shared = space.used;
    Points points(space, tasks.n_max, d), next(space, tasks.n_max, d);
    space.used = shared;
    const BatchSpace batch(space, tasks.n_max, d, tasks.loss.dead_zone > 0);
    turn_points(run.S, total, p, support);
    for (int64_t j = 0; j < run.start; ++j) put_weights(run.G + j * d, j, d, support);
    if (!run.batch) {
        read_points(tasks, 0, points);
        prepare_from<0>(points, 0);
    }
    for (int64_t i = run.start, block = -1; i < total; ++i) {
        const int64_t t = i - run.start, begin = i / TILE * TILE, here = i / 4 * 4;
        if (begin != block) {  // sums of rows `here`, ... over the finished blocks
            block = begin;
            const int64_t end = begin + TILE < total ? begin + TILE : total;
            clear(at.sums, TILE * dp);
            add_support(run.kernel, run.S, here, padded(end - here), total, support, begin, p, dp, at.tile,
                        at.sums + (here - begin) * dp);
        }
        double* sum = at.sums + (i - begin) * dp;
        const double* row = run.S + i * p;
        fill_tile<1>(run.kernel, &row, support.block(i, p), p, at.tile);
        add_tile<1>(at.tile, i - begin, support.weights + begin * dp, dp, sum);
        for (int64_t j = 0; j < dp; j += W) store(at.theta + j, -run.meta_step * load(sum + j));
        const int64_t lo = tasks.offsets[t], n = tasks.offsets[t + 1] - lo;
        bool finite = true;
        if (run.batch) {
            const Rows rows = make_rows(tasks.X + lo * d, n, d, batch.pack);
            copy(batch.bias, at.theta, dp);
            solve_dual(rows, d, tasks.y + lo, tasks.lam, tasks.loss, run.tol, batch);
            copy(at.g, batch.wide2, dp);
            finite = all_finite(at.g, dp);
        } else {
            double radius = 0.0;
            clear(at.g, dp);
            read_points(tasks, t + 1, next);
            finite = online_task<false>(at.theta, points, next, tasks.lam, tasks.loss, at.g, nullptr, &radius, 0);
            swap(points, next);
        }
        if (!finite) return t;
        const double share = 1.0 / double(n);
        for (int64_t j = 0; j < d; ++j) run.G[i * d + j] = at.g[j] * share;
        put_weights(run.G + i * d, i, d, support);
    }
    return -1;
}

static int64_t kernel_space(int64_t n_max, int64_t d, int64_t p, int64_t total, bool doubled) {
    Space space{nullptr}, one{nullptr}, other{nullptr};
    Support(space, total, p, d);
    KernelSpace(space, d);
    Points(one, n_max, d);
    Points(one, n_max, d);
    BatchSpace(other, n_max, d, doubled);
    return space.used + (one.used > other.used ? one.used : other.used);
}

// The support that `kernel_theta` reads, once for all threads.
static void kernel_support(const KernelTheta& run, double* memory) {
    Space space{memory};
    const Support support(space, run.count, run.p, run.d);
    turn_points(run.S, run.count, run.p, support);
    for (int64_t j = 0; j < run.count; ++j) put_weights(run.weights + j * run.d, j, run.d, support);
}

static int64_t kernel_support_space(int64_t count, int64_t p, int64_t d) {
    Space space{nullptr};
    Support(space, count, p, d);
    return space.used;
}

// Rows [begin, end) in blocks of TILE.
static void kernel_theta(const KernelTheta& run, double* shared, int64_t begin, int64_t end, double* memory) {
    Space in{shared}, space{memory};
    const int64_t d = run.d, dp = padded(d);
    const Support support(in, run.count, run.p, d);
    const KernelSpace at(space, d);
    for (int64_t i = begin; i < end; i += TILE) {
        const int64_t rows = end - i < TILE ? end - i : TILE;
        clear(at.sums, TILE * dp);
        add_support(run.kernel, run.rows, i, padded(rows), end, support, run.count, run.p, dp, at.tile, at.sums);
        for (int64_t r = 0; r < rows; ++r) copy(run.out + (i + r) * d, at.sums + r * dp, d);
    }
}

static int64_t kernel_theta_space(int64_t d) {
    Space space{nullptr};
    KernelSpace(space, d);
    return space.used;
}

}  // namespace CONDMETA_ISA
