// Rows in the order of time: what earlier ones still say about a task's weights, and one-step-ahead predictions
// (inner/drift.py). Matrices are (d, d) by rows; L is zero above its diagonal.
#pragma once

#include "kernels.h"
#include "space.h"

namespace CONDMETA_ISA {

constexpr double MUCH = 1e4;  // a step by columns that divides by no more loses no more than four digits of S

struct DriftSpace {
    double *S, *SL, *A, *G, *K, *KS;        // (d, d)
    double *e, *theta, *mean, *u, *by;      // (d,)

    DriftSpace(Space& space, int64_t d) {
        double **matrices[] = {&S, &SL, &A, &G, &K, &KS}, **vectors[] = {&e, &theta, &mean, &u, &by};
        for (double** matrix : matrices) *matrix = space.take(d * d);
        for (double** vector : vectors) *vector = space.take(d);
    }
};

// SL = S L, and the Cholesky factor of A = I + a L^T S L in its lower triangle; `by` gets the inverses of the pivots.
static void factorise(const DriftSpace& at, const double* L, double a, int64_t d) {
    for (int64_t i = 0; i < d; ++i) {
        double* row = at.SL + i * d;
        for (int64_t j = 0; j < d; ++j) row[j] = 0.0;
        for (int64_t k = 0; k < d; ++k)
            for (int64_t j = 0; j <= k; ++j) row[j] += at.S[i * d + k] * L[k * d + j];
    }
    for (int64_t i = 0; i < d; ++i) {
        double* row = at.A + i * d;
        for (int64_t j = 0; j <= i; ++j) row[j] = 0.0;
        for (int64_t k = i; k < d; ++k)
            for (int64_t j = 0; j <= i; ++j) row[j] += a * L[k * d + i] * at.SL[k * d + j];
        row[i] += 1.0;
        for (int64_t j = 0; j <= i; ++j) {
            double value = row[j];
            for (int64_t k = 0; k < j; ++k) value -= row[k] * at.A[j * d + k];
            row[j] = j < i ? value * at.by[j] : __builtin_sqrt(value);
        }
        at.by[i] = 1.0 / row[i];
    }
}

// x = A^-1 x, from the factor C of A = C C^T.
static void solve_factored(const DriftSpace& at, double* x, int64_t d) {
    for (int64_t i = 0; i < d; ++i) {
        for (int64_t k = 0; k < i; ++k) x[i] -= at.A[i * d + k] * x[k];
        x[i] *= at.by[i];
    }
    for (int64_t i = d; i-- > 0;) {
        x[i] *= at.by[i];
        for (int64_t k = 0; k < i; ++k) x[k] -= at.A[i * d + k] * x[i];
    }
}

// A step of AR(1) by the columns l of L, as H is the sum of l l^T:
//
//     u = S l,  t = 1 + a l^T u,  S -= (a / t) u u^T,  e -= (a / t) (l^T e) u;   then S = f^2 S, e = f e.
//
// If a t is large, too much cancels: then S and e stay as they were, and the answer is false.
static bool step_by_columns(const DriftSpace& at, const double* L, double a, double f, int64_t d) {
    double *__restrict S = at.K, *__restrict e = at.by, *__restrict u = at.u;
    for (int64_t i = 0; i < d * d; ++i) S[i] = at.S[i];
    for (int64_t i = 0; i < d; ++i) e[i] = at.e[i];
    for (int64_t k = 0; k < d; ++k) {
        for (int64_t j = 0; j < d; ++j) u[j] = 0.0;
        for (int64_t i = k; i < d; ++i)
            for (int64_t j = 0; j < d; ++j) u[j] += L[i * d + k] * S[i * d + j];
        double t = 1.0, push = 0.0;
        for (int64_t i = k; i < d; ++i) t += a * L[i * d + k] * u[i], push += L[i * d + k] * e[i];
        if (!(t < MUCH)) return false;
        for (int64_t i = 0; i < d; ++i) {
            const double v = a / t * u[i];
            e[i] -= v * push;
            for (int64_t j = 0; j < d; ++j) S[i * d + j] -= v * u[j];
        }
    }
    for (int64_t i = 0; i < d; ++i) {
        at.e[i] = f * e[i];
        for (int64_t j = 0; j <= i; ++j) at.S[i * d + j] = at.S[j * d + i] = f * f * S[i * d + j];
    }
    return true;
}

// A step of AR(1): G = S L A^-1, K = I - a G L^T, S = f^2 (K S K^T + a G G^T), e = f K e.
static void ar_step(const DriftSpace& at, const double* L, double s2, double f, int64_t d) {
    const double a = (1.0 - f * f) / s2;
    if (step_by_columns(at, L, a, f, d)) return;
    factorise(at, L, a, d);
    for (int64_t i = 0; i < d; ++i) {
        double *G = at.G + i * d, *K = at.K + i * d, *KS = at.KS + i * d;
        for (int64_t j = 0; j < d; ++j) G[j] = at.SL[i * d + j];
        solve_factored(at, G, d);
        for (int64_t j = 0; j < d; ++j) {
            double product = 0.0;
            for (int64_t k = 0; k <= j; ++k) product += G[k] * L[j * d + k];
            K[j] = (i == j ? 1.0 : 0.0) - a * product;
            KS[j] = 0.0;
        }
        for (int64_t k = 0; k < d; ++k)
            for (int64_t j = 0; j < d; ++j) KS[j] += K[k] * at.S[k * d + j];
        at.u[i] = 0.0;
        for (int64_t j = 0; j < d; ++j) at.u[i] += K[j] * at.e[j];
    }
    for (int64_t i = 0; i < d; ++i) {
        at.e[i] = f * at.u[i];
        for (int64_t j = 0; j <= i; ++j) {
            double value = 0.0;
            for (int64_t k = 0; k < d; ++k) value += at.KS[i * d + k] * at.K[j * d + k] + a * at.G[i * d + k] * at.G[j * d + k];
            at.S[i * d + j] = at.S[j * d + i] = f * f * value;
        }
    }
}

// mean = theta + L z, z = (I + L^T S L / s2)^-1 L^T e / s2.
static void posterior_mean(const DriftSpace& at, const double* L, double s2, int64_t d) {
    factorise(at, L, 1.0 / s2, d);
    for (int64_t j = 0; j < d; ++j) {
        at.u[j] = 0.0;
        for (int64_t k = j; k < d; ++k) at.u[j] += L[k * d + j] * at.e[k] / s2;
    }
    solve_factored(at, at.u, d);
    for (int64_t i = 0; i < d; ++i) {
        at.mean[i] = at.theta[i];
        for (int64_t j = 0; j <= i; ++j) at.mean[i] += L[i * d + j] * at.u[j];
    }
}

// Tasks [begin, end). out.gram and out.e hold the statistics before on input, and those after all rows on output.
static void drift_range(const DriftTasks& run, const DriftArrays& out, int64_t begin, int64_t end, double* memory) {
    Space space{memory};
    const int64_t d = run.d;
    const DriftSpace at(space, d);
    for (int64_t t = begin; t < end; ++t) {
        const int64_t first = run.offsets[t];
        if (first == run.offsets[t + 1]) continue;
        for (int64_t i = 0; i < d * d; ++i) at.S[i] = out.gram[t * d * d + i];
        for (int64_t i = 0; i < d; ++i) at.e[i] = out.e[t * d + i], at.theta[i] = run.theta[t * d + i];
        for (int64_t row = first; row < run.offsets[t + 1]; ++row) {
            const double *x = run.X + row * d, step = run.steps[row];
            const double f = step > 0.0 ? __builtin_pow(run.rate, step) : 1.0;
            if (f < 1.0 && run.moves) {
                ar_step(at, run.factor, run.s2, f, d);
            } else if (f < 1.0) {
                for (int64_t i = 0; i < d * d; ++i) at.S[i] *= f;
                for (int64_t i = 0; i < d; ++i) at.e[i] *= f;
            }
            double fitted = 0.0, predicted = 0.0;
            if (out.predicted) {
                if (row == first || step > 0.0) posterior_mean(at, run.factor, run.s2, d);
                for (int64_t i = 0; i < d; ++i) predicted += x[i] * at.mean[i];
                out.predicted[row] = predicted;
            }
            for (int64_t i = 0; i < d; ++i) fitted += x[i] * at.theta[i];
            const double error = run.mass[row] * (run.y[row] - fitted);
            for (int64_t i = 0; i < d; ++i) {
                const double xi = run.mass[row] * x[i];
                at.e[i] += error * x[i];
                for (int64_t j = 0; j < d; ++j) at.S[i * d + j] += xi * x[j];
            }
        }
        for (int64_t i = 0; i < d * d; ++i) out.gram[t * d * d + i] = at.S[i];
        for (int64_t i = 0; i < d; ++i) out.e[t * d + i] = at.e[i];
    }
}

static int64_t drift_space(int64_t d) {
    Space space{nullptr};
    DriftSpace(space, d);
    return space.used;
}

}  // namespace CONDMETA_ISA
