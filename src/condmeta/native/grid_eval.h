// Held-out tasks solved and evaluated for a whole grid (grid.py: grid_score and grid_curves).
#pragma once

#include "grid_pass.h"

namespace CONDMETA_ISA {

constexpr int64_t TASKS = 128;          // evaluation tasks with sums in memory at once
constexpr int64_t NUMBERS = 24 * 1024;  // numbers of gradients in memory at once: they fit the second-level cache

// Cells [begin, end) of the tasks times groups of lanes.
static void grid_score(const Tasks& tasks, const Tasks& query, const GridScore& run, int64_t begin, int64_t end,
                       double* memory) {
    Space space{memory};
    const int64_t d = tasks.d, groups = (run.lanes + GROUP - 1) / GROUP;
    GridTask task(space, d, tasks.n_max, query.n_max);
    const LaneTable table(space, tasks.n_max, GROUP);
    double *U = space.take((d + tasks.n_max) * GROUP), *errors = space.take(GROUP);
    int64_t known = -1;
    for (int64_t cell = begin; cell < end; ++cell) {
        const int64_t v = cell / groups, first = cell % groups * GROUP;
        if (v != known) {
            read_support(task, tasks, v);
            read_query(task, query, v);
            known = v;
        }
        take_lanes(run.lam, 1, run.lanes, first, GROUP, table.by_lam);
        for (int c = 0; c < GROUP; ++c) table.by_lam[c] = 1.0 / table.by_lam[c];
        fill_table(table, task, tasks.loss);
        take_lanes(run.theta + v * d * run.lanes, d, run.lanes, first, GROUP, U);
        grid_pass<false>(task, table, tasks.loss, U);
        judge(task, tasks.loss, U, errors);
        put_lanes(errors, 1, run.lanes, first, GROUP, run.errors + v * run.lanes);
    }
}

static int64_t grid_score_space(int64_t n_max, int64_t m_max, int64_t d) {
    Space space{nullptr};
    GridTask(space, d, n_max, m_max);
    LaneTable(space, n_max, GROUP);
    space.take((d + n_max) * GROUP);
    space.take(GROUP);
    return space.used;
}

INLINE int64_t kept_steps(int64_t d) {
    const int64_t steps = NUMBERS / ((d > 0 ? d : 1) * W) / C * C;
    return steps > 8 * C ? steps : 8 * C;
}

struct CurveSpace {
    GridTask task;
    LaneTable table;
    double *moves, *sums, *U, *errors, *step;

    CurveSpace(Space& space, int64_t n_max, int64_t m_max, int64_t d)
        : task(space, d, n_max, m_max), table(space, n_max, W) {
        moves = space.take(kept_steps(d) * d * W);
        sums = space.take(TASKS * 2 * d * W);
        U = space.take((d + n_max) * GROUP);
        errors = space.take(GROUP);
        step = space.take(W);
    }
};

// How the map moves at a step: A += by_a move, B += by_b move, theta = a A - b B.
struct CurveStep {
    double by_a, by_b, a, b;
};

INLINE CurveStep step_of(const GridCurves& run, int64_t index, double kk) {
    const double t = double(index + 1), q = run.linear ? t * (t + 1) / 2 : t;
    return {kk, kk * q, run.at_average ? (t + 1) / t : 1.0, run.at_average ? 1 / t : 1 / q};
}

// theta (d) of C steps into the top of U, one vector of lanes each; moves (d, W) each, sums (2, d, W).
INLINE void follow(const CurveStep* steps, const double* const* moves, int64_t d, double* sums, double* U) {
    for (int64_t f = 0; f < d; ++f) {
        vec A = load(sums + f * W), B = load(sums + (d + f) * W);
        for (int s = 0; s < C; ++s) {
            const vec move = load(moves[s] + f * W);
            A += steps[s].by_a * move;
            B += steps[s].by_b * move;
            store(U + f * GROUP + s * W, steps[s].a * A - steps[s].b * B);
        }
        store(sums + f * W, A);
        store(sums + (d + f) * W, B);
    }
}

// Steps [first, last) of one evaluation task v for one vector of lanes, added to `out` (T, W).
static void curve_of_task(const CurveSpace& at, const Loss& loss, const GridCurves& run, int64_t v, int64_t first,
                          int64_t last, double* sums, double* out) {
    const int64_t d = at.task.d;
    const double* kk = run.kk + v * run.steps;
    for (int64_t t = first; t < last; t += C) {
        const int64_t here = last - t < C ? last - t : C;
        CurveStep steps[C];
        const double* moves[C];
        for (int s = 0; s < C; ++s) {
            const int64_t index = t + (s < here ? s : here - 1);  // beyond the end: the last step again
            moves[s] = at.moves + (index - first) * d * W;
            steps[s] = step_of(run, index, s < here ? kk[index] : 0.0);
        }
        follow(steps, moves, d, sums, at.U);
        grid_pass<true>(at.task, at.table, loss, at.U);
        judge(at.task, loss, at.U, at.errors);
        for (int64_t s = 0; s < here; ++s) store(out + (t + s) * W, load(out + (t + s) * W) + load(at.errors + s * W));
    }
}

// Cells [begin, end): vectors of lanes times chunks of evaluation tasks. `partial` gets, for each cell,
// the sums of the losses (groups, T, W); tasks are added in their order.
static void grid_curves(const Tasks& tasks, const Tasks& query, const GridCurves& run, int64_t begin, int64_t end,
                        double* memory) {
    Space space{memory};
    const int64_t d = tasks.d, T = run.steps, kept = kept_steps(d), size = d * W;
    CurveSpace at(space, tasks.n_max, query.n_max, d);
    for (int64_t cell = begin; cell < end; ++cell) {
        const int64_t lane = cell / run.chunks * W, chunk = cell % run.chunks;
        const int64_t from = tasks.count * chunk / run.chunks, to = tasks.count * (chunk + 1) / run.chunks;
        double* out = run.partial + cell * run.groups * T * W;
        take_lanes(run.lam, 1, run.lanes, lane, W, at.table.by_lam);
        take_lanes(run.meta_step, 1, run.lanes, lane, W, at.step);
        for (int c = 0; c < W; ++c) at.table.by_lam[c] = 1.0 / at.table.by_lam[c];
        for (int64_t v0 = from; v0 < to; v0 += TASKS) {
            const int64_t v1 = v0 + TASKS < to ? v0 + TASKS : to;
            fill(at.sums, 0.0, (v1 - v0) * 2 * size);
            for (int64_t first = 0; first < T; first += kept) {
                const int64_t last = first + kept < T ? first + kept : T;
                take_lanes(run.gradients + first * d * run.lanes, (last - first) * d, run.lanes, lane, W, at.moves);
                for (int64_t row = 0; row < (last - first) * d; ++row)
                    store(at.moves + row * W, -load(at.step) * load(at.moves + row * W));
                for (int64_t v = v0; v < v1; ++v) {
                    read_support(at.task, tasks, v);
                    read_query(at.task, query, v);
                    fill_table(at.table, at.task, tasks.loss);
                    curve_of_task(at, tasks.loss, run, v, first, last, at.sums + (v - v0) * 2 * size,
                                  out + run.group[v] * T * W);
                }
            }
        }
    }
}

static int64_t grid_curves_space(int64_t n_max, int64_t m_max, int64_t d) {
    Space space{nullptr};
    CurveSpace(space, n_max, m_max, d);
    return space.used;
}

}  // namespace CONDMETA_ISA
