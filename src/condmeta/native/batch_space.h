// The arrays of a batch solve: n points (twice that if the loss has a dead zone), d features, and
// matrices of the smaller side, min(n, d).
#pragma once

#include "rows.h"
#include "space.h"

namespace CONDMETA_ISA {

struct BatchSpace {
    double *pack, *twice, *scaled, *turned, *gram, *matrix;  // (rows, dp), (dp, p), (p, p)
    double *inverse, *side, *wide, *wide2, *wide3, *bias;    // (p,), (dp,)
    double *a, *low, *high, *r, *g, *lower, *upper;          // (n4,) from here on
    double *times, *q;                                       // weights of points; curvatures
    double *above, *below, *weight, *step, *rhs, *d_lower, *d_upper, *trial, *answer, *slopes, *z;
    int64_t *index, *where;

    BatchSpace(Space& space, int64_t n_max, int64_t d, bool doubled) {
        const int64_t n4 = padded(doubled ? 2 * n_max : n_max), dp = padded(d);
        const int64_t p = n4 < dp ? n4 : dp;
        pack = space.take(row_buffer(n_max, d));
        twice = space.take(doubled ? n4 * dp : 0);
        scaled = space.take((n4 < p ? p : n4) * dp);
        turned = space.take(dp * p);
        gram = space.take(p * p);
        matrix = space.take(p * p);
        double** sides[] = {&inverse, &side, &wide, &wide2, &wide3, &bias};
        for (double** array : sides) *array = space.take(dp);
        double** points[] = {&a,      &low,  &high, &r,       &g,       &lower, &upper,  &above, &below,
                             &weight, &step, &rhs,  &d_lower, &d_upper, &trial, &answer, &slopes, &z,
                             &times,  &q};
        for (double** array : points) *array = space.take(n4);
        index = (int64_t*)space.take(n4);
        where = (int64_t*)space.take(n4);
    }
};

}  // namespace CONDMETA_ISA
