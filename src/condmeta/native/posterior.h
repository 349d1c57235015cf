// Posteriors of tasks with a Gaussian prior, W tasks at once, one in each lane of a vector.
//
// Symmetric and triangular matrices are packed by rows, entry (i, j) with j <= i at i (i + 1) / 2 + j.
#pragma once

#include "kernels.h"
#include "space.h"

namespace CONDMETA_ISA {

INLINE int64_t packed(int64_t i) { return i * (i + 1) / 2; }

struct PosteriorSpace {
    vec *S, *A, *inverse;                           // packed
    vec *whole, *dense, *Q;                         // (d, d): S L, A^-1, and the sum of S L A^-1 / s2
    vec *theta, *moment, *e, *u, *t, *v, *fitted;  // (d,)

    PosteriorSpace(Space& space, int64_t d) {
        vec **matrices[] = {&S, &A, &inverse}, **vectors[] = {&theta, &moment, &e, &u, &t, &v, &fitted};
        for (vec** matrix : matrices) *matrix = (vec*)space.take(W * packed(d));
        whole = (vec*)space.take(W * d * d);
        dense = (vec*)space.take(W * d * d);
        Q = (vec*)space.take(W * d * d);
        for (vec** vector : vectors) *vector = (vec*)space.take(W * d);
    }
};

INLINE vec all(double value) { return vec{} + value; }
INLINE vec at_least_zero(vec a) { return a > 0.0 ? a : vec{}; }
INLINE vec root_of(vec a) {
    for (int lane = 0; lane < W; ++lane) a[lane] = __builtin_sqrt(a[lane]);
    return a;
}

// out = S x of a packed symmetric S.
INLINE void symmetric_times(const vec* S, const vec* x, int64_t d, vec* out) {
    for (int64_t i = 0; i < d; ++i) {
        const vec* row = S + packed(i);
        vec total = row[i] * x[i];
        for (int64_t j = 0; j < i; ++j) {
            total += row[j] * x[j];
            out[j] += row[j] * x[i];
        }
        out[i] = total;
    }
}

// A = I + L^T S L / s2, packed.
INLINE void precision(const PosteriorSpace& at, const double* L, bool diagonal, vec s2, int64_t d) {
    const vec by = 1.0 / s2;
    if (diagonal) {
        for (int64_t i = 0; i < d; ++i)
            for (int64_t j = 0; j <= i; ++j)
                at.A[packed(i) + j] = at.S[packed(i) + j] * (L[i * d + i] * L[j * d + j]) * by;
    } else {
        for (int64_t i = 0; i < d; ++i) {  // row i of S L
            vec* row = at.whole + i * d;
            for (int64_t j = 0; j < d; ++j) row[j] = vec{};
            for (int64_t k = 0; k < d; ++k) {
                const vec s = k <= i ? at.S[packed(i) + k] : at.S[packed(k) + i];
                for (int64_t j = 0; j <= k; ++j) row[j] += s * L[k * d + j];
            }
        }
        for (int64_t i = 0; i < d; ++i) {
            vec* row = at.A + packed(i);
            for (int64_t j = 0; j <= i; ++j) row[j] = vec{};
            for (int64_t k = i; k < d; ++k) {
                const double l = L[k * d + i];
                for (int64_t j = 0; j <= i; ++j) row[j] += at.whole[k * d + j] * l;
            }
            for (int64_t j = 0; j <= i; ++j) row[j] *= by;
        }
    }
    for (int64_t i = 0; i < d; ++i) at.A[packed(i) + i] += 1.0;
}

// A = C C^T in place; returns the logarithm of det A. A is at least I, so no pivot is small.
INLINE vec cholesky(vec* A, int64_t d) {
    vec logdet = {}, product = all(1.0);
    for (int64_t k = 0; k < d; ++k) {
        const vec pivot = root_of(A[packed(k) + k]), by = 1.0 / pivot;
        A[packed(k) + k] = pivot;
        product *= pivot;
        if (k % 4 == 3 || k + 1 == d) {  // four pivots a logarithm
            for (int lane = 0; lane < W; ++lane) logdet[lane] += 2.0 * __builtin_log(product[lane]);
            product = all(1.0);
        }
        for (int64_t i = k + 1; i < d; ++i) A[packed(i) + k] *= by;
        for (int64_t i = k + 1; i < d; ++i) {
            vec* row = A + packed(i);
            const vec c = row[k];
            for (int64_t j = k + 1; j <= i; ++j) row[j] -= c * A[packed(j) + k];
        }
    }
    return logdet;
}

// C to its inverse D in place, D_ij = -D_ii sum_{j<=k<i} C_ik D_kj.
INLINE void invert_lower(vec* C, vec* sums, int64_t d) {
    for (int64_t i = 0; i < d; ++i) {
        vec* row = C + packed(i);
        for (int64_t j = 0; j < i; ++j) sums[j] = vec{};
        for (int64_t k = 0; k < i; ++k) {
            const vec c = row[k], *above = C + packed(k);
            for (int64_t j = 0; j <= k; ++j) sums[j] += c * above[j];
        }
        const vec by = 1.0 / row[i];
        for (int64_t j = 0; j < i; ++j) row[j] = -by * sums[j];
        row[i] = by;
    }
}

// Q += weight S L A^-1, its lower triangle; of a diagonal L the diagonal alone.
INLINE void add_to_Q(const PosteriorSpace& at, const double* L, bool diagonal, vec weight, int64_t d) {
    if (diagonal) {
        for (int64_t i = 0; i < d; ++i) {  // sum_j S_ij l_j (A^-1)_ij, for both places of a pair
            vec total = {};
            for (int64_t j = 0; j < i; ++j) {
                const vec both = at.S[packed(i) + j] * at.inverse[packed(i) + j];
                total += both * L[j * d + j];
                at.Q[j * d + j] += weight * both * L[i * d + i];
            }
            at.Q[i * d + i] += weight * (total + at.S[packed(i) + i] * at.inverse[packed(i) + i] * L[i * d + i]);
        }
        return;
    }
    for (int64_t i = 0; i < d; ++i)
        for (int64_t j = 0; j <= i; ++j) at.dense[i * d + j] = at.dense[j * d + i] = at.inverse[packed(i) + j];
    for (int64_t i = 0; i < d; ++i)
        for (int64_t k = 0; k < d; ++k) {
            const vec left = weight * at.whole[i * d + k];
            const vec* row = at.dense + k * d;
            for (int64_t j = 0; j <= i; ++j) at.Q[i * d + j] += left * row[j];
        }
}

// The W tasks from `first` on, of which `live` are real: lanes beyond repeat the last and count for nothing.
static void posterior_lanes(const PosteriorTasks& run, const PosteriorArrays& out, bool diagonal, int64_t first,
                            int64_t live, const PosteriorSpace& at) {
    const int64_t d = run.d;
    int64_t task[W];
    vec s2, square, count, weight;
    for (int lane = 0; lane < W; ++lane) {
        task[lane] = first + (lane < live ? lane : live - 1);
        s2[lane] = run.s2[task[lane]];
        square[lane] = run.square[task[lane]];
        count[lane] = run.count[task[lane]];
        weight[lane] = lane < live ? 1.0 : 0.0;
    }
    for (int lane = 0; lane < W; ++lane) {
        const double *gram = run.gram + task[lane] * d * d, *theta = run.theta + task[lane] * d,
                     *moment = run.moment + task[lane] * d;
        for (int64_t i = 0; i < d; ++i) {
            at.theta[i][lane] = theta[i];
            at.moment[i][lane] = moment[i];
            for (int64_t j = 0; j <= i; ++j) at.S[packed(i) + j][lane] = gram[i * d + j];
        }
    }
    symmetric_times(at.S, at.theta, d, at.fitted);
    vec residual = square;
    for (int64_t i = 0; i < d; ++i) {
        at.e[i] = at.moment[i] - at.fitted[i];
        residual += at.theta[i] * (at.fitted[i] - 2.0 * at.moment[i]);
    }
    residual = at_least_zero(residual);
    for (int64_t j = 0; j < d; ++j) {
        at.u[j] = vec{};
        for (int64_t k = j; k < (diagonal ? j + 1 : d); ++k) at.u[j] += at.e[k] * run.factor[k * d + j];
    }
    precision(at, run.factor, diagonal, s2, d);
    const vec logdet = cholesky(at.A, d);
    invert_lower(at.A, at.t, d);
    vec trace = {};
    for (int64_t i = 0; i < d; ++i) at.v[i] = vec{};
    for (int64_t i = 0; i < packed(d); ++i) at.inverse[i] = vec{};
    for (int64_t k = 0; k < d; ++k) {  // t = D u, v = D^T t, A^-1 = D^T D
        const vec* row = at.A + packed(k);
        vec t = {};
        for (int64_t j = 0; j <= k; ++j) t += row[j] * at.u[j];
        for (int64_t i = 0; i <= k; ++i) {
            at.v[i] += row[i] * t;
            vec* inverse = at.inverse + packed(i);
            for (int64_t j = 0; j <= i; ++j) inverse[j] += row[i] * row[j];
        }
    }
    for (int64_t i = 0; i < d; ++i) {
        trace += at.inverse[packed(i) + i];
        at.v[i] = at.v[i] / s2;  // z
    }
    add_to_Q(at, run.factor, diagonal, weight / s2, d);
    for (int64_t i = 0; i < d; ++i) {  // the move L z, in u
        vec move = {};
        for (int64_t j = diagonal ? i : 0; j <= i; ++j) move += at.v[j] * run.factor[i * d + j];
        at.u[i] = move;
    }
    symmetric_times(at.S, at.u, d, at.fitted);
    vec after = residual, explained = {};
    for (int64_t i = 0; i < d; ++i) {
        after += at.u[i] * (at.fitted[i] - 2.0 * at.e[i]);
        explained += at.u[i] * at.e[i];
        at.v[i] = (at.e[i] - at.fitted[i]) / s2;  // g
    }
    const vec rss = at_least_zero(after) + s2 * (double(d) - trace);
    const vec surprise = (residual - explained) / s2;
    for (int lane = 0; lane < live; ++lane) {
        const int64_t t = task[lane];
        for (int64_t i = 0; i < d; ++i) out.g[t * d + i] = at.v[i][lane];
        out.rss[t] = rss[lane];
        const double normal = count[lane] * __builtin_log(6.283185307179586477 * s2[lane]);
        out.loglik[t] = -0.5 * (normal + logdet[lane] + surprise[lane]);
    }
}

// Tasks [begin, end); their part of Q goes to `Q` (d, d).
static void posterior_range(const PosteriorTasks& run, const PosteriorArrays& out, int64_t begin, int64_t end,
                            double* Q, double* memory) {
    Space space{memory};
    const int64_t d = run.d;
    const PosteriorSpace at(space, d);
    bool diagonal = true;
    for (int64_t i = 0; i < d; ++i)
        for (int64_t j = 0; j < i; ++j) diagonal = diagonal && run.factor[i * d + j] == 0.0;
    for (int64_t i = 0; i < d * d; ++i) at.Q[i] = vec{};
    for (int64_t first = begin; first < end; first += W)
        posterior_lanes(run, out, diagonal, first, end - first < W ? end - first : W, at);
    for (int64_t i = 0; i < d * d; ++i) Q[i] = sum(at.Q[i]);
}

static int64_t posterior_space(int64_t d) {
    Space space{nullptr};
    PosteriorSpace(space, d);
    return space.used;
}

}  // namespace CONDMETA_ISA
