// Statistics of scaled rows from the means and packed scatters of tasks (inner/scatter.py).
#pragma once

#include "kernels.h"

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

}  // namespace CONDMETA_ISA
