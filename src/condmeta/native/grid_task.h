// A task as the grid kernels read it: panels of coefficients, the same for all lanes.
//
// With theta over the slopes s_j / lam as one stack U = (theta, s / lam) of d + n rows,
//
//     point i:     z_i = sum_f x_if theta_f - sum_{j<i} (K_ij / max(i-1, 1)) s_j / lam,   K = X X^T
//     query x:     z   = sum_f x_f  theta_f - sum_j (c_j <x, x_j>) s_j / lam,   c_j = (1/n) sum_{j<i<=n} 1/(i-1)
//
// every prediction is one row of coefficients times U. A panel holds the transposed rows of up to 5 points,
// (depth, P). The panel of the points from i on has depth d + i + P; its last P rows are the triangle within
// the block. A query panel has depth d + n.
#pragma once

#include "columns.h"
#include "kernels.h"
#include "space.h"

namespace CONDMETA_ISA {

struct GridTask {
    int64_t d, n, m;             // features, points, query points
    const double *y, *yq;        // labels
    double *panels, *panels_q;
    double *norm, *share;        // ||x_i||, c_i
    double *turned;              // X^T (d, n padded to a group)
    double reach;                // n max_j ||x_j||

    GridTask(Space& space, int64_t d_, int64_t n_max, int64_t m_max) : d(d_) {
        panels = space.take(n_max * (d + n_max + BLOCK));
        panels_q = space.take(m_max * (d + n_max));
        norm = space.take(n_max);
        share = space.take(n_max);
        turned = space.take(d * padded_n(n_max));
    }

    static int64_t padded_n(int64_t n) { return (n + GROUP - 1) / GROUP * GROUP; }
};

// Rows of X to a panel (d, P), then minus their products with all points below `last`, as `scale(p, j)` has
// them.
template <int P, class Scale>
INLINE void make_panel(const GridTask& task, const double* X, int64_t last, double* panel, Scale scale) {
    const int64_t d = task.d, np = GridTask::padded_n(task.n);
    for (int p = 0; p < P; ++p)
        for (int64_t f = 0; f < d; ++f) panel[f * P + p] = X[p * d + f];
    double* to = panel + d * P;
    for (int64_t first = 0; first < last; first += GROUP) {
        vec product[P][C] = {};
        multiply<P>(panel, P, task.turned + first, np, d, product);
        const int64_t here = last - first < GROUP ? last - first : GROUP;
        for (int p = 0; p < P; ++p) {
            double row[GROUP];
            for (int c = 0; c < C; ++c) store(row + c * W, product[p][c]);
            for (int64_t j = 0; j < here; ++j) to[(first + j) * P + p] = -scale(p, first + j, row[j]);
        }
    }
}

// The points that the task learns from.
static void read_support(GridTask& task, const Tasks& tasks, int64_t t) {
    const int64_t lo = tasks.offsets[t], d = task.d;
    const double* X = tasks.X + lo * d;
    task.n = tasks.offsets[t + 1] - lo;
    task.m = 0;
    task.y = tasks.y + lo;
    const int64_t n = task.n, np = GridTask::padded_n(n);
    for (int64_t f = 0; f < d; ++f)
        for (int64_t j = 0; j < np; ++j) task.turned[f * np + j] = j < n ? X[j * d + f] : 0.0;
    double* panel = task.panels;
    double radius = 0.0;
    in_blocks(n, [&](auto size, int64_t i) {
        constexpr int P = decltype(size)::value;
        double share[P];
        for (int p = 0; p < P; ++p) share[p] = 1.0 / double(i + p > 0 ? i + p : 1);
        make_panel<P>(task, X + i * d, i + P, panel, [&](int p, int64_t j, double product) {
            if (j == i + p) task.norm[j] = __builtin_sqrt(product);
            return product * share[p];  // beyond the triangle these are not read
        });
        panel += P * (d + i + P);
    });
    for (int64_t j = 0; j < n; ++j) radius = larger(task.norm[j], radius);
    task.reach = double(n) * radius;
}

// The query points; after the task's own.
static void read_query(GridTask& task, const Tasks& query, int64_t t) {
    const int64_t lo = query.offsets[t], d = task.d, n = task.n;
    task.m = query.offsets[t + 1] - lo;
    task.yq = query.y + lo;
    double sum = 0.0;
    for (int64_t j = n - 1; j >= 0; --j) {
        task.share[j] = sum / double(n);
        sum += 1.0 / double(j > 0 ? j : 1);
    }
    double* panel = task.panels_q;
    in_blocks(task.m, [&](auto size, int64_t i) {
        constexpr int P = decltype(size)::value;
        make_panel<P>(task, query.X + (lo + i) * d, n, panel, [&](int, int64_t j, double product) {
            return product * task.share[j];
        });
        panel += P * (d + n);
    });
}

}  // namespace CONDMETA_ISA
