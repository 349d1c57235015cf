// Posteriors of tasks with a Gaussian prior, W tasks at once, one in each lane of a vector.
//
// Symmetric and triangular matrices are packed by rows, entry (i, j) with j <= i at i (i + 1) / 2 + j.
#pragma once

#include "kernels.h"
#include "space.h"

namespace CONDMETA_ISA {

INLINE int64_t packed(int64_t i) { return i * (i + 1) / 2; }

struct PosteriorSpace {
    vec *S, *SL, *A, *sum;                         // packed; the sum of A^-1, or only of its diagonal
    vec *theta, *moment, *e, *u, *t, *v, *move, *fitted;  // (d,)

    PosteriorSpace(Space& space, int64_t d) {
        vec **matrices[] = {&S, &SL, &A, &sum}, **vectors[] = {&theta, &moment, &e, &u, &t, &v, &move, &fitted};
        for (vec** matrix : matrices) *matrix = (vec*)space.take(W * packed(d));
        for (vec** vector : vectors) *vector = (vec*)space.take(W * d);
    }
};

INLINE vec all(double value) { return vec{} + value; }
INLINE vec at_least_zero(vec a) { return a > 0.0 ? a : vec{}; }
#if CONDMETA_WIDTH == 4
INLINE vec root_of(vec a) { return root(a); }
#else
INLINE vec root_of(vec a) { return vec{__builtin_sqrt(a[0]), __builtin_sqrt(a[1])}; }
#endif

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

// (S L)_k,j.. for N columns, from row k of S; L is zero above its diagonal.
template <int N>
INLINE void columns_of_SL(const vec* row, const double* L, int64_t d, int64_t j, vec* out) {
    vec total[N] = {};
    for (int64_t m = j; m < d; ++m)
        for (int c = 0; c < N; ++c) total[c] += row[m] * L[m * d + j + c];
    for (int c = 0; c < N; ++c) out[c] = total[c];
}

// (L^T S L)_i,j.. for N columns; of S L only the lower triangle is needed: sum_{k>=i} L_ki (S L)_kj.
template <int N>
INLINE void columns_of_LSL(const vec* SL, const double* L, int64_t d, int64_t i, int64_t j, vec by, vec* out) {
    vec total[N] = {};
    for (int64_t k = i; k < d; ++k)
        for (int c = 0; c < N; ++c) total[c] += SL[packed(k) + j + c] * L[k * d + i];
    for (int c = 0; c < N; ++c) out[c] = total[c] * by;
}

// A = I + L^T S L / s2, packed. Four columns at a time: their sums stay in registers. `row` is scratch (d,).
INLINE void precision(const PosteriorSpace& at, const double* L, bool diagonal, vec s2, int64_t d, vec* row) {
    const vec by = 1.0 / s2;
    if (diagonal) {
        for (int64_t i = 0; i < d; ++i)
            for (int64_t j = 0; j <= i; ++j)
                at.A[packed(i) + j] = at.S[packed(i) + j] * (L[i * d + i] * L[j * d + j]) * by;
    } else {
        for (int64_t k = 0, j; k < d; ++k) {
            for (int64_t m = 0; m < d; ++m) row[m] = m <= k ? at.S[packed(k) + m] : at.S[packed(m) + k];
            for (j = 0; j + 4 <= k + 1; j += 4) columns_of_SL<4>(row, L, d, j, at.SL + packed(k) + j);
            for (; j <= k; ++j) columns_of_SL<1>(row, L, d, j, at.SL + packed(k) + j);
        }
        for (int64_t i = 0, j; i < d; ++i) {
            for (j = 0; j + 4 <= i + 1; j += 4) columns_of_LSL<4>(at.SL, L, d, i, j, by, at.A + packed(i) + j);
            for (; j <= i; ++j) columns_of_LSL<1>(at.SL, L, d, i, j, by, at.A + packed(i) + j);
        }
    }
    for (int64_t i = 0; i < d; ++i) at.A[packed(i) + i] += 1.0;
}

// Replaces A by its Cholesky factor C, row by row, four entries at a time: their sums stay in registers. `by` (d,) gets
// the inverses of the pivots. A is at least I, so no pivot is small. Returns logdet A.
INLINE vec cholesky(vec* A, int64_t d, vec* by) {
    vec logdet = {}, product = all(1.0);
    for (int64_t i = 0; i < d; ++i) {
        vec *row = A + packed(i), own = row[i];
        int64_t j = 0;
        for (; j + 4 <= i; j += 4) {
            const vec *r0 = A + packed(j), *r1 = A + packed(j + 1), *r2 = A + packed(j + 2), *r3 = A + packed(j + 3);
            vec s0 = row[j], s1 = row[j + 1], s2 = row[j + 2], s3 = row[j + 3];
            for (int64_t k = 0; k < j; ++k) {
                const vec c = row[k];
                s0 -= c * r0[k];
                s1 -= c * r1[k];
                s2 -= c * r2[k];
                s3 -= c * r3[k];
            }
            s0 *= by[j];
            s1 -= s0 * r1[j];
            s1 *= by[j + 1];
            s2 -= s0 * r2[j];
            s2 -= s1 * r2[j + 1];
            s2 *= by[j + 2];
            s3 -= s0 * r3[j];
            s3 -= s1 * r3[j + 1];
            s3 -= s2 * r3[j + 2];
            s3 *= by[j + 3];
            row[j] = s0, row[j + 1] = s1, row[j + 2] = s2, row[j + 3] = s3;
            own -= s0 * s0;
            own -= s1 * s1;
            own -= s2 * s2;
            own -= s3 * s3;
        }
        for (; j < i; ++j) {
            const vec* other = A + packed(j);
            vec s = row[j];
            for (int64_t k = 0; k < j; ++k) s -= row[k] * other[k];
            row[j] = s *= by[j];
            own -= s * s;
        }
        row[i] = root_of(own);
        by[i] = 1.0 / row[i];
        product *= row[i];
        if (i % 4 == 3 || i + 1 == d) {  // one logarithm for four pivots
            for (int lane = 0; lane < W; ++lane) logdet[lane] += 2.0 * __builtin_log(product[lane]);
            product = all(1.0);
        }
    }
    return logdet;
}

// Replaces C by its inverse D, D_ij = -D_ii sum_{j<=k<i} C_ik D_kj; `by` as above.
INLINE void invert_lower(vec* C, int64_t d, const vec* by) {
    for (int64_t i = 0; i < d; ++i) {
        vec* row = C + packed(i);
        const vec scale = -by[i];
        int64_t j = 0;
        for (; j + 4 <= i; j += 4) {
            const vec *r0 = C + packed(j) + j, *r1 = C + packed(j + 1) + j, *r2 = C + packed(j + 2) + j,
                      *r3 = C + packed(j + 3) + j;
            vec s0 = row[j] * r0[0] + row[j + 1] * r1[0], s1 = row[j + 1] * r1[1];
            s0 += row[j + 2] * r2[0];
            s1 += row[j + 2] * r2[1];
            vec s2 = row[j + 2] * r2[2], s3 = row[j + 3] * r3[3];
            s0 += row[j + 3] * r3[0];
            s1 += row[j + 3] * r3[1];
            s2 += row[j + 3] * r3[2];
            for (int64_t k = j + 4; k < i; ++k) {
                const vec c = row[k], *above = C + packed(k) + j;
                s0 += c * above[0];
                s1 += c * above[1];
                s2 += c * above[2];
                s3 += c * above[3];
            }
            row[j] = scale * s0, row[j + 1] = scale * s1, row[j + 2] = scale * s2, row[j + 3] = scale * s3;
        }
        for (; j < i; ++j) {
            vec s = {};
            for (int64_t k = j; k < i; ++k) s += row[k] * C[packed(k) + j];
            row[j] = scale * s;
        }
        row[i] = by[i];
    }
}

// The posterior mean of ||y - X w||^2, logdet A, and <X^T (y - X theta), m - theta>.
struct Fit {
    vec rss, logdet, explained;
};

// The posteriors for a noise s2, from S, e = X^T (y - X theta), u = L^T e and residual = ||y - X theta||^2. Leaves g in
// v, the inverse D of A's factor in A, A^-1 = D^T D, and the diagonal of A^-1 in t.
INLINE Fit fit_lanes(const PosteriorSpace& at, const double* L, bool diagonal, vec residual, vec s2, int64_t d) {
    precision(at, L, diagonal, s2, d, at.t);
    const vec logdet = cholesky(at.A, d, at.t);
    invert_lower(at.A, d, at.t);
    for (int64_t i = 0; i < d; ++i) at.v[i] = at.t[i] = vec{};
    for (int64_t k = 0; k < d; ++k) {  // v = D^T D u
        const vec* row = at.A + packed(k);
        vec t = {};
        for (int64_t j = 0; j <= k; ++j) t += row[j] * at.u[j];
        for (int64_t i = 0; i <= k; ++i) {
            at.v[i] += row[i] * t;
            at.t[i] += row[i] * row[i];
        }
    }
    vec trace = {};
    for (int64_t i = 0; i < d; ++i) {
        trace += at.t[i];
        at.v[i] = at.v[i] / s2;  // z
    }
    for (int64_t i = 0; i < d; ++i) {  // L z
        at.move[i] = vec{};
        for (int64_t j = diagonal ? i : 0; j <= i; ++j) at.move[i] += at.v[j] * L[i * d + j];
    }
    symmetric_times(at.S, at.move, d, at.fitted);
    vec after = residual, explained = {};
    for (int64_t i = 0; i < d; ++i) {
        after += at.move[i] * (at.fitted[i] - 2.0 * at.e[i]);
        explained += at.move[i] * at.e[i];
        at.v[i] = (at.e[i] - at.fitted[i]) / s2;  // g
    }
    return {at_least_zero(after) + s2 * (double(d) - trace), logdet, explained};
}

// Whole matrices of statistics.
struct SquaredSource {
    const PosteriorTasks& run;

    INLINE_MEMBER void prefetch(int64_t, int64_t) const {}

    // S and X^T y of W tasks, one in each lane; returns ||y||^2.
    INLINE_MEMBER vec read(const int64_t* task, const PosteriorSpace& at) const {
        const int64_t d = run.d;
        vec square;
        for (int lane = 0; lane < W; ++lane) {
            const int64_t t = task[lane];
            const double *gram = run.gram + t * d * d, *moment = run.moment + t * d;
            square[lane] = run.square[t];
            for (int64_t i = 0; i < d; ++i) {
                at.moment[i][lane] = moment[i];
                for (int64_t j = 0; j <= i; ++j) at.S[packed(i) + j][lane] = gram[i * d + j];
            }
        }
        return square;
    }
};

// The W tasks from `first` on; `live` of them are real. Other lanes repeat the last task; they are not counted.
template <class Source>
static void posterior_lanes(const Source& source, const PosteriorTasks& run, const PosteriorArrays& out,
                            bool diagonal, int64_t first, int64_t live, const PosteriorSpace& at) {
    const int64_t d = run.d;
    int64_t task[W];
    vec shared, count, weight;
    for (int lane = 0; lane < W; ++lane) {
        const int64_t t = task[lane] = first + (lane < live ? lane : live - 1);
        shared[lane] = run.s2[t];
        count[lane] = run.count[t];
        weight[lane] = lane < live ? 1.0 : 0.0;
        for (int64_t i = 0; i < d; ++i) at.theta[i][lane] = run.theta[t * d + i];
    }
    vec residual = source.read(task, at);
    symmetric_times(at.S, at.theta, d, at.fitted);
    for (int64_t i = 0; i < d; ++i) {
        at.e[i] = at.moment[i] - at.fitted[i];
        residual += at.theta[i] * (at.fitted[i] - 2.0 * at.moment[i]);
    }
    residual = at_least_zero(residual);
    for (int64_t j = 0; j < d; ++j) {
        at.u[j] = vec{};
        for (int64_t k = j; k < (diagonal ? j + 1 : d); ++k) at.u[j] += at.e[k] * run.factor[k * d + j];
    }
    vec s2 = shared;
    Fit fit = fit_lanes(at, run.factor, diagonal, residual, s2, d);
    for (int64_t round = 0; round < run.rounds; ++round) {
        s2 = (fit.rss + run.prior_points * shared) / (count + run.prior_points);
        fit = fit_lanes(at, run.factor, diagonal, residual, s2, d);
    }
    for (int64_t k = 0; run.correlated && k < d; ++k) {
        const vec* row = at.A + packed(k);
        for (int64_t i = 0; i <= k; ++i) {
            const vec own = weight * row[i];
            vec* sum = at.sum + packed(i);
            for (int64_t j = 0; j < i; ++j) sum[j] += own * row[j];
        }
    }
    for (int64_t i = 0; i < d; ++i) at.sum[packed(i) + i] += weight * at.t[i];
    const vec surprise = (residual - fit.explained) / s2;
    for (int lane = 0; lane < live; ++lane) {
        const int64_t t = task[lane];
        for (int64_t i = 0; i < d; ++i) out.g[t * d + i] = at.v[i][lane];
        out.rss[t] = fit.rss[lane];
        const double normal = count[lane] * __builtin_log(6.283185307179586477 * s2[lane]);
        out.loglik[t] = -0.5 * (normal + fit.logdet[lane] + surprise[lane]);
        if (out.s2) out.s2[t] = s2[lane];
    }
}

// Tasks [begin, end); their part of R goes to `R` (d, d).
template <class Source>
INLINE void posteriors(const Source& source, const PosteriorTasks& run, const PosteriorArrays& out, int64_t begin,
                       int64_t end, double* R, const PosteriorSpace& at) {
    const int64_t d = run.d;
    bool diagonal = true;
    for (int64_t i = 0; i < d; ++i)
        for (int64_t j = 0; j < i; ++j) diagonal = diagonal && run.factor[i * d + j] == 0.0;
    for (int64_t i = 0; i < packed(d); ++i) at.sum[i] = vec{};
    for (int64_t first = begin; first < end; first += W) {
        source.prefetch(first + W, end);
        posterior_lanes(source, run, out, diagonal, first, end - first < W ? end - first : W, at);
    }
    for (int64_t i = 0; i < d; ++i)
        for (int64_t j = run.correlated ? 0 : i; j <= i; ++j)
            R[i * d + j] = R[j * d + i] = (i == j ? double(end - begin) : 0.0) - sum(at.sum[packed(i) + j]);
}

static void posterior_range(const PosteriorTasks& run, const PosteriorArrays& out, int64_t begin, int64_t end,
                            double* R, double* memory) {
    Space space{memory};
    posteriors(SquaredSource{run}, run, out, begin, end, R, PosteriorSpace(space, run.d));
}

static int64_t posterior_space(int64_t d) {
    Space space{nullptr};
    PosteriorSpace(space, d);
    return space.used;
}

}  // namespace CONDMETA_ISA
