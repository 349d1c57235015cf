// Statistics of scaled rows from the means and packed scatters of tasks (inner/scatter.py).
#pragma once

#include "kernels.h"
#include "posterior.h"

namespace CONDMETA_ISA {

// Tasks [begin, end) of `run.at`; `c` is scratch (p,).
//
//   c = (mean - centre) * by,   Z_ij = scatter_ij by_i by_j + n c_i c_j,   z = (x, y),
//
// gram = Z_xx, moment = Z_xy, square = Z_yy; a column of ones adds n c to gram and moment.
static void scaled_range(const ScatterTasks& run, const SquaredArrays& out, int64_t begin, int64_t end, double* c) {
    const int64_t p = run.p, y = p - 1, w = run.intercept ? p : p - 1;
    for (int64_t t = begin; t < end; ++t) {
        const double n = run.mass[t], *mean = run.mean + run.at[t] * p;
        const double* row = run.triangles + run.at[t] * (p * (p + 1) / 2);
        double *gram = out.gram + t * w * w, *moment = out.moment + t * w;
        for (int64_t i = 0; i < p; ++i) c[i] = (mean[i] - run.centre[i]) * run.by[i];
        for (int64_t i = 0; i < y; row += ++i)
            for (int64_t j = 0; j <= i; ++j)
                gram[i * w + j] = gram[j * w + i] = row[j] * (run.by[i] * run.by[j]) + n * c[i] * c[j];
        for (int64_t j = 0; j < y; ++j) moment[j] = row[j] * (run.by[y] * run.by[j]) + n * c[y] * c[j];
        out.square[t] = row[y] * (run.by[y] * run.by[y]) + n * c[y] * c[y];
        if (!run.intercept) continue;
        for (int64_t j = 0; j < y; ++j) gram[y * w + j] = gram[j * w + y] = n * c[j];
        gram[y * w + y] = n;
        moment[y] = n * c[y];
    }
}

// The number at `j` of W rows, one in each lane.
INLINE vec across(const double* const* rows, int64_t j) {
#if CONDMETA_WIDTH == 4
    return vec{rows[0][j], rows[1][j], rows[2][j], rows[3][j]};
#else
    return vec{rows[0][j], rows[1][j]};
#endif
}

// The same statistics, made in the lanes of `posterior_lanes`. `c` is scratch (p,).
struct ScaledSource {
    const ScatterTasks& run;
    vec* c;

    const double* mean(int64_t t) const { return run.mean + run.at[t] * run.p; }
    const double* triangle(int64_t t) const { return run.triangles + run.at[t] * packed(run.p); }

    // Asks for the W tasks from `first` on: tasks of a leaf lie far from each other in memory.
    INLINE_MEMBER void prefetch(int64_t first, int64_t end) const {
        for (int64_t t = first; t < first + W && t < end; ++t) {
            for (int64_t j = 0; j < run.p; j += 8) __builtin_prefetch(mean(t) + j);
            for (int64_t j = 0; j < packed(run.p); j += 8) __builtin_prefetch(triangle(t) + j);
        }
    }

    INLINE_MEMBER vec read(const int64_t* task, const PosteriorSpace& at) const {
        const int64_t y = run.p - 1;
        const double *means[W], *rows[W];
        vec n;
        for (int lane = 0; lane < W; ++lane) {
            n[lane] = run.mass[task[lane]];
            means[lane] = mean(task[lane]);
            rows[lane] = triangle(task[lane]);
        }
        for (int64_t i = 0; i <= y; ++i) c[i] = (across(means, i) - run.centre[i]) * run.by[i];
        for (int64_t i = 0; i < y; ++i)
            for (int64_t j = 0; j <= i; ++j) at.S[packed(i) + j] = scaled(rows, n, i, j);
        for (int64_t j = 0; j < y; ++j) at.moment[j] = scaled(rows, n, y, j);
        if (run.intercept) {
            for (int64_t j = 0; j < y; ++j) at.S[packed(y) + j] = n * c[j];
            at.S[packed(y) + y] = n;
            at.moment[y] = n * c[y];
        }
        return scaled(rows, n, y, y);
    }

    INLINE_MEMBER vec scaled(const double* const* rows, vec n, int64_t i, int64_t j) const {
        return across(rows, packed(i) + j) * (run.by[i] * run.by[j]) + n * c[i] * c[j];
    }
};

// `posterior_range` of tasks of `scatter.at`.
static void scaled_posterior_range(const ScatterTasks& scatter, const PosteriorTasks& run, const PosteriorArrays& out,
                                   int64_t begin, int64_t end, double* R, double* memory) {
    Space space{memory};
    vec* c = (vec*)space.take(W * scatter.p);
    posteriors(ScaledSource{scatter, c}, run, out, begin, end, R, PosteriorSpace(space, run.d));
}

static int64_t scaled_posterior_space(int64_t p, int64_t d) {
    Space space{nullptr};
    space.take(W * p);
    return space.used + posterior_space(d);
}

}  // namespace CONDMETA_ISA
