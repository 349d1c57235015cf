// What the kernels take and give: the border between the instruction-set builds and the rest.
//
// kernels.cpp is compiled once for each instruction set and hands out one `Kernels` table. Only this
// file is seen from both sides, and it holds plain structs and function pointers, no code: nothing
// compiled for a newer machine can be linked into code that runs on an older one.
//
// All arrays are C-contiguous float64, offsets int64. Points of task t: rows offsets[t] to
// offsets[t+1] of X. Kernels never throw and never allocate: the caller brings `space`, a 64-byte
// aligned block of `*_space(...)` doubles, one for each thread, `doubled` telling whether the loss has a
// dead zone. Its content does not matter.
#pragma once

#include <stdint.h>

// A row of losses.py: l(z, y) = max over a in [low, high] of a e - curvature a^2/2 - dead_zone |a|,
// e = z - y; [low, high] is mirrored for y <= 0 if is_signed. Curvature -1 marks the logistic loss.
struct Loss {
    double curvature, dead_zone, low, high;
    bool is_signed;
};

struct Tasks {
    const double* X;         // (N, d)
    const double* y;         // (N,)
    const int64_t* offsets;  // (T+1,)
    int64_t count;           // T
    int64_t d;
    int64_t n_max;  // points of the largest task
    double lam;
    Loss loss;
};

struct OnlineArrays {
    const double* theta;  // (T, d)
    double* slope_sum;    // (T, d)
    double* path_sum;     // (T, d)
    double* radius;       // (T,)
    int64_t* count;       // (T,)
};

struct BatchArrays {
    const double* theta;  // (T, d)
    double tol;
    double* coef;      // (T, d), this and the rest zeros
    double* gradient;  // (T, d)
    double* gap;       // (T,)
    double* slopes;    // (N,)
};

struct SgdArrays {
    double* grad_sum;      // (k+1, d)
    double* weighted_sum;  // (k+1, d)
    double* phi_sum;       // (k+1,)
    const double* Phi;     // (T, k)
    int64_t k;
    double meta_step;
    bool linear, at_average, batch;
    double tol;
};

struct Kernels {
    const char* name;
    // Tasks [begin, end): the first whose pass diverges, or -1. All of them are run.
    int64_t (*online)(const Tasks&, const OnlineArrays&, int64_t begin, int64_t end, double* space);
    int64_t (*online_space)(int64_t n_max, int64_t d);
    void (*batch)(const Tasks&, const BatchArrays&, int64_t begin, int64_t end, double* space);
    int64_t (*batch_space)(int64_t n_max, int64_t d, bool doubled);
    // All tasks in turn; stops at the first whose pass diverges and returns it, or -1.
    int64_t (*sgd)(const Tasks&, const SgdArrays&, double* space);
    int64_t (*sgd_space)(int64_t n_max, int64_t d, int64_t k, bool doubled);
};
