// Predictions of rows by the weights of their tasks: out_i = <x_i, weights[codes_i]>, rows [begin, end).
#pragma once

#include "kernels.h"
#include "vec.h"

namespace CONDMETA_ISA {

INLINE double loose_dot(const double* a, const double* b, int64_t d) {
    vec even = {}, odd = {};
    int64_t j = 0;
    for (; j + 2 * W <= d; j += 2 * W) {
        even += load(a + j) * load(b + j);
        odd += load(a + j + W) * load(b + j + W);
    }
    double total = 0.0;
    for (; j + W <= d; j += W) even += load(a + j) * load(b + j);
    for (; j < d; ++j) total += a[j] * b[j];
    return sum(even + odd) + total;
}

static void row_scores(const RowScores& run, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
        run.out[i] = loose_dot(run.X + i * run.d, run.weights + run.codes[i] * run.d, run.d);
}

}  // namespace CONDMETA_ISA
