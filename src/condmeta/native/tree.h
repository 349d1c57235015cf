// Messages on a tree of normal weights (inner/tree.py), W nodes at once, one in each lane of a vector.
#pragma once

#include "posterior.h"

namespace CONDMETA_ISA {

struct TreeSpace {
    vec *B, *LB, *A;  // (d, d), (d, d + 1), packed
    vec *theta, *G, *e, *by;  // (d,)

    TreeSpace(Space& space, int64_t d) {
        B = (vec*)space.take(W * d * d);
        LB = (vec*)space.take(W * d * (d + 1));
        A = (vec*)space.take(W * packed(d));
        vec** vectors[] = {&theta, &G, &e, &by};
        for (vec** vector : vectors) *vector = (vec*)space.take(W * d);
    }
};

// The node of each lane; lanes beyond `live` repeat the last node.
INLINE int64_t node_of(int64_t first, int64_t live, int lane) { return first + (lane < live ? lane : live - 1); }

// What W nodes say about their parents. With A = C C^T and Y = C^-1 L^T (B, e), Lambda = B - Y^T Y and g likewise.
static void tree_up_lanes(const TreeUp& run, int64_t first, int64_t live, const TreeSpace& at) {
    const int64_t d = run.d, m = d + 1;
    for (int lane = 0; lane < W; ++lane) {
        const int64_t t = node_of(first, live, lane);
        const double by = 1.0 / run.s2[t], *gram = run.gram + t * d * d;
        for (int64_t i = 0; i < d * d; ++i) at.B[i][lane] = gram[i] * by;
        for (int64_t i = 0; i < d; ++i) {
            at.G[i][lane] = run.moment[t * d + i] * by;
            at.theta[i][lane] = run.theta[t * d + i];
        }
    }
    vec value = {};
    for (int64_t i = 0; i < d; ++i) {
        at.e[i] = at.G[i];
        for (int64_t j = 0; j < d; ++j) at.e[i] -= at.B[i * d + j] * at.theta[j];
        value += at.theta[i] * (at.G[i] + at.e[i]) * 0.5;
    }
    for (int64_t i = 0; i < d; ++i) {  // L^T (B, e)
        vec* row = at.LB + i * m;
        for (int64_t j = 0; j < m; ++j) row[j] = vec{};
        for (int64_t k = i; k < d; ++k) {
            const double l = run.factor[k * d + i];
            for (int64_t j = 0; j < d; ++j) row[j] += at.B[k * d + j] * l;
            row[d] += at.e[k] * l;
        }
    }
    for (int64_t i = 0; i < d; ++i)
        for (int64_t j = 0; j <= i; ++j) {
            vec total = all(i == j ? 1.0 : 0.0);
            for (int64_t k = j; k < d; ++k) total += at.LB[i * m + k] * run.factor[k * d + j];
            at.A[packed(i) + j] = total;
        }
    value -= cholesky(at.A, d, at.by) * 0.5;
    for (int64_t i = 0; i < d; ++i) {  // Y
        vec* row = at.LB + i * m;
        for (int64_t k = 0; k < i; ++k) {
            const vec c = at.A[packed(i) + k], *above = at.LB + k * m;
            for (int64_t j = 0; j < m; ++j) row[j] -= c * above[j];
        }
        for (int64_t j = 0; j < m; ++j) row[j] *= at.by[i];
        value += row[d] * row[d] * 0.5;
    }
    for (int64_t k = 0; k < d; ++k) {
        const vec* row = at.LB + k * m;
        for (int64_t i = 0; i < d; ++i) {
            const vec y = row[i];
            for (int64_t j = 0; j <= i; ++j) at.B[i * d + j] -= y * row[j];
            at.e[i] -= y * row[d];
        }
    }
    for (int lane = 0; lane < live; ++lane) {
        const int64_t t = first + lane;
        double* message = run.messages + t * d * d;
        for (int64_t i = 0; i < d; ++i) {
            for (int64_t j = 0; j <= i; ++j) message[i * d + j] = message[j * d + i] = at.B[i * d + j][lane];
            run.g[t * d + i] = at.e[i][lane];
        }
        run.value[t] = value[lane];
    }
}

static void tree_up_range(const TreeUp& run, int64_t begin, int64_t end, double* memory) {
    Space space{memory};
    const TreeSpace at(space, run.d);
    for (int64_t first = begin; first < end; first += W)
        tree_up_lanes(run, first, end - first < W ? end - first : W, at);
}

static int64_t tree_up_space(int64_t d) {
    Space space{nullptr};
    TreeSpace(space, d);
    return space.used;
}

struct TreeDownSpace {
    vec *message, *C, *pulled, *sum;  // (d, d), (d, d), (d, d), packed
    vec* r;                           // (d,)

    TreeDownSpace(Space& space, int64_t d) {
        vec** matrices[] = {&message, &C, &pulled};
        for (vec** matrix : matrices) *matrix = (vec*)space.take(W * d * d);
        sum = (vec*)space.take(W * packed(d));
        r = (vec*)space.take(W * d);
    }
};

// r = g - Lambda a, tr(Lambda C), and the sum of Lambda C Lambda, of W nodes.
static void tree_down_lanes(const TreeDown& run, int64_t first, int64_t live, const TreeDownSpace& at) {
    const int64_t d = run.d;
    vec weight, trace = {};
    for (int lane = 0; lane < W; ++lane) {
        const int64_t t = node_of(first, live, lane), p = run.parent[t];
        const double *message = run.messages + t * d * d, *C = run.covariance + p * d * d, *a = run.mean + p * d;
        weight[lane] = lane < live ? 1.0 : 0.0;
        for (int64_t i = 0; i < d * d; ++i) {
            at.message[i][lane] = message[i];
            at.C[i][lane] = C[i];
        }
        for (int64_t i = 0; i < d; ++i) {
            double r = run.g[t * d + i];
            for (int64_t j = 0; j < d; ++j) r -= message[i * d + j] * a[j];
            at.r[i][lane] = r;
        }
    }
    for (int64_t i = 0; i < d; ++i) {  // Lambda C
        vec* row = at.pulled + i * d;
        for (int64_t j = 0; j < d; ++j) row[j] = vec{};
        for (int64_t k = 0; k < d; ++k) {
            const vec l = at.message[i * d + k];
            for (int64_t j = 0; j < d; ++j) row[j] += l * at.C[k * d + j];
        }
        trace += row[i];
        vec* sum = at.sum + packed(i);
        for (int64_t k = 0; k < d; ++k) {
            const vec own = weight * row[k];
            for (int64_t j = 0; j <= i; ++j) sum[j] += own * at.message[k * d + j];
        }
    }
    for (int lane = 0; lane < live; ++lane) {
        for (int64_t i = 0; i < d; ++i) run.r[(first + lane) * d + i] = at.r[i][lane];
        run.trace[first + lane] = trace[lane];
    }
}

// Nodes [begin, end); their part of the sum goes to `spread` (d, d).
static void tree_down_range(const TreeDown& run, int64_t begin, int64_t end, double* spread, double* memory) {
    Space space{memory};
    const int64_t d = run.d;
    const TreeDownSpace at(space, d);
    for (int64_t i = 0; i < packed(d); ++i) at.sum[i] = vec{};
    for (int64_t first = begin; first < end; first += W)
        tree_down_lanes(run, first, end - first < W ? end - first : W, at);
    for (int64_t i = 0; i < d; ++i)
        for (int64_t j = 0; j <= i; ++j) spread[i * d + j] = spread[j * d + i] = sum(at.sum[packed(i) + j]);
}

static int64_t tree_down_space(int64_t d) {
    Space space{nullptr};
    TreeDownSpace(space, d);
    return space.used;
}

}  // namespace CONDMETA_ISA
