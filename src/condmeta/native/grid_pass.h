// The online passes of one task for a group of columns, and their losses on query points.
//
// `U` has d + n rows of GROUP columns: theta is the input, the slopes over lam the output below it. Columns are
// lanes of the grid, each with its lam, or (`shared`) one vector of lanes at C steps of a curve. Ties follow
// the rule of online.py: the slope is 0 if
// |e| <= dead_zone + 1e-10 (|y_i| + ||x_i|| (||theta|| + n max_j ||x_j|| / (lam max(i-1, 1)))).
#pragma once

#include "grid_task.h"
#include "lane_loss.h"
#include "online.h"

namespace CONDMETA_ISA {

// For each point three rows (zone without ||theta||, high / lam, low / lam) of `width` lanes, and 1 / lam.
struct LaneTable {
    int64_t width;  // W if shared, else GROUP
    double *rows, *by_lam;

    LaneTable(Space& space, int64_t n_max, int64_t width_) : width(width_) {
        rows = space.take(3 * n_max * width);
        by_lam = space.take(width);
    }
};

static void fill_table(const LaneTable& table, const GridTask& task, const Loss& loss) {
    double* row = table.rows;
    if (kind_of(loss) != STEP) return;
    for (int64_t i = 0; i < task.n; ++i, row += 3 * table.width) {
        const double y = task.y[i], high = high_at(loss, y), low = low_at(loss, y);
        const double still = loss.dead_zone + TIE * size_of(y);
        const double moved = TIE * task.norm[i] * task.reach / double(i > 0 ? i : 1);
        for (int64_t c = 0; c < table.width; ++c) {
            row[c] = still + moved * table.by_lam[c];
            row[table.width + c] = high * table.by_lam[c];
            row[2 * table.width + c] = low * table.by_lam[c];
        }
    }
}

// Inputs of the slopes besides the residuals.
struct Columns {
    vec size[C];   // ||theta||
    vec limit[C];  // for unbounded losses
};

template <Kind kind, int P>
INLINE void start_from(const double* y, vec (&e)[P][C]) {
    for (int p = 0; p < P; ++p)
        for (int c = 0; c < C; ++c) e[p][c] = kind == LOGISTIC ? vec{} : -y[p] + vec{};
}

// Slopes of points i..i+P: their residuals at the slopes before them, then the triangle in registers.
template <Kind kind, int P, bool shared>
INLINE void block_pass(const GridTask& task, const LaneTable& table, const Loss& loss, const Columns& columns,
                       int64_t i, const double* panel, double* U) {
    const int64_t width = shared ? W : GROUP, before = task.d + i;
    vec e[P][C];
    start_from<kind>(task.y + i, e);
    multiply<P>(panel, P, U, GROUP, before, e);
    panel += before * P;
    double* out = U + before * GROUP;
    for (int p = 0; p < P; ++p) {
        const double* row = table.rows + (i + p) * 3 * width;
        for (int c = 0; c < C; ++c) {
            const int64_t lane = shared ? 0 : c * W;
            LaneSlope at;
            at.by_lam = load(table.by_lam + lane);
            at.limit = columns.limit[c];
            if (kind == STEP) {
                at.zone = load(row + lane) + TIE * task.norm[i + p] * columns.size[c];
                at.high = load(row + width + lane);
                at.low = load(row + 2 * width + lane);
            }
            const vec s = lane_slope<kind>(loss, e[p][c], task.y[i + p], at);
            store(out + p * GROUP + c * W, s);
            for (int q = p + 1; q < P; ++q) e[q][c] += panel[p * P + q] * s;
        }
    }
}

// 1e6 max_i (|y_i| + |z_i|) at theta, NaN if any of them is.
INLINE void find_limit(const GridTask& task, const double* U, Columns& columns) {
    vec most[C] = {};
    vec_bits bad[C] = {};
    const double* panel = task.panels;
    in_blocks(task.n, [&](auto size, int64_t i) {
        constexpr int P = decltype(size)::value;
        vec z[P][C] = {};
        multiply<P>(panel, P, U, GROUP, task.d, z);
        for (int p = 0; p < P; ++p)
            for (int c = 0; c < C; ++c) {
                const vec here = size_of(task.y[i + p]) + size_of(z[p][c]);
                most[c] = here > most[c] ? here : most[c];
                bad[c] |= here != here;
            }
        panel += P * (task.d + i + P);
    });
    for (int c = 0; c < C; ++c) columns.limit[c] = bad[c] ? __builtin_nan("") + vec{} : HUGE_FACTOR * most[c];
}

INLINE Columns columns_at(const GridTask& task, const Loss& loss, const double* U) {
    Columns columns;
    vec square[C] = {};
    for (int64_t f = 0; f < task.d; ++f)
        for (int c = 0; c < C; ++c) square[c] += load(U + f * GROUP + c * W) * load(U + f * GROUP + c * W);
    for (int c = 0; c < C; ++c) {
        columns.size[c] = root(square[c]);
        columns.limit[c] = __builtin_inf() + vec{};
    }
    if (is_unbounded(loss)) find_limit(task, U, columns);
    return columns;
}

// The slopes of all points, into U.
template <Kind kind, bool shared>
INLINE void pass_of_kind(const GridTask& task, const LaneTable& table, const Loss& loss, double* U) {
    const Columns columns = columns_at(task, loss, U);
    const double* panel = task.panels;
    in_blocks(task.n, [&](auto size, int64_t i) {
        constexpr int P = decltype(size)::value;
        block_pass<kind, P, shared>(task, table, loss, columns, i, panel, U);
        panel += P * (task.d + i + P);
    });
}

// The mean query loss of every column (GROUP,), infinity if it is not finite; 0 without query points.
template <Kind kind>
INLINE void judge_of_kind(const GridTask& task, const Loss& loss, const double* U, double* out) {
    const int64_t depth = task.d + task.n;
    vec total[C] = {};
    const double* panel = task.panels_q;
    in_blocks(task.m, [&](auto size, int64_t i) {
        constexpr int P = decltype(size)::value;
        vec e[P][C];
        start_from<kind>(task.yq + i, e);
        multiply<P>(panel, P, U, GROUP, depth, e);
        for (int p = 0; p < P; ++p)
            for (int c = 0; c < C; ++c) total[c] += lane_value<kind>(loss, e[p][c], task.yq[i + p]);
        panel += P * depth;
    });
    const double count = double(task.m > 0 ? task.m : 1);
    for (int c = 0; c < C; ++c) {
        const vec mean = total[c] / count;
        store(out + c * W, mean - mean == 0.0 ? mean : __builtin_inf() + vec{});
    }
}

template <bool shared>
static void grid_pass(const GridTask& task, const LaneTable& table, const Loss& loss, double* U) {
    switch (kind_of(loss)) {
        case STEP: return pass_of_kind<STEP, shared>(task, table, loss, U);
        case CURVED: return pass_of_kind<CURVED, shared>(task, table, loss, U);
        default: return pass_of_kind<LOGISTIC, shared>(task, table, loss, U);
    }
}

static void judge(const GridTask& task, const Loss& loss, const double* U, double* out) {
    switch (kind_of(loss)) {
        case STEP: return judge_of_kind<STEP>(task, loss, U, out);
        case CURVED: return judge_of_kind<CURVED>(task, loss, U, out);
        default: return judge_of_kind<LOGISTIC>(task, loss, U, out);
    }
}

}  // namespace CONDMETA_ISA
