// Inputs and outputs of the kernels: the border between the instruction-set builds and the rest.
//
// kernels.cpp is compiled once for each instruction set and exports one `Kernels` table. Both sides include
// only this file. It holds plain structs and function pointers, no code: nothing compiled for a newer machine
// can be linked into code that runs on an older one.
//
// All arrays are C-contiguous float64, offsets int64. Points of task t: rows offsets[t] to
// offsets[t+1] of X. Kernels never throw and never allocate: the caller passes `space`, a 64-byte aligned
// block of `*_space(...)` doubles for each thread, with any content. `doubled`: whether the loss has a dead
// zone.
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
    const double* theta;   // (T, d)
    const double* weight;  // (N,), how often each point counts, or null: once
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

// The grid kernels read points as Tasks without their lam: each lane has its own. The last axis has L lanes.
struct GridTrain {
    double* grad_sum;         // (k+1, d, L)
    double* weighted_sum;     // (k+1, d, L)
    double seen;              // tasks before these
    const double* Phi;        // (T, k)
    int64_t k;
    const double* lam;        // (L,)
    const double* meta_step;  // (L,)
    int64_t lanes;            // L
    bool linear, at_average;
    double* gradients;  // (T, d, L), or null if not needed
};

struct GridScore {
    const double* theta;  // (V, d, L)
    const double* lam;    // (L,)
    int64_t lanes;
    double* errors;  // (V, L)
};

struct GridCurves {
    const double* gradients;  // (T, d, L)
    const double* kk;         // (V, T): <Phi, Phi> + 1
    const int64_t* group;     // (V,)
    int64_t groups, steps;    // steps T
    const double* lam;        // (L,)
    const double* meta_step;  // (L,)
    int64_t lanes;
    bool linear, at_average;
    int64_t chunks;   // number of chunks of evaluation tasks
    double* partial;  // (vectors of lanes, chunks, groups, T, lanes of a vector), zeros
};

struct CoinTasks {
    const double* theta;  // (T, d)
    double radius;
    double* slope_sum;  // (T, d)
    double* path_sum;   // (T, d)
    double* wealth;     // (T,)
    int64_t* count;     // (T,)
};

struct CoinMap {
    double* maps[6];       // (k+1, d): most, size, drift, reward, W, weighted_sum
    double* phi_sum;       // (k+1,)
    double* residual;      // (1,)
    const double* scales;  // R, S, X1, P1
    const double* Phi;     // (T, k)
    int64_t k;
};

// A kernel on coordinates: <a, b>, exp(-scale ||a - b||^2) or exp(-scale ||a - b||), kind 0, 1 or 2.
struct KernelRow {
    int64_t kind;
    double scale;
};

struct KernelArrays {
    const double* S;  // (start + T, p)
    double* G;        // (start + T, d), rows from `start` on are results
    int64_t start, p;
    KernelRow kernel;
    double meta_step;
    bool batch;
    double tol;
};

struct KernelTheta {
    const double* rows;     // (V, p)
    const double* S;        // (T, p)
    const double* weights;  // (T, d)
    int64_t count, p, d;    // count T
    KernelRow kernel;
    double* out;  // (V, d)
};

struct RowScores {
    const double* X;        // (N, d)
    const double* weights;  // (T, d)
    const int64_t* codes;   // (N,)
    int64_t d;
    double* out;  // (N,)
};

// Means (T, p) and packed scatters (T, p (p + 1) / 2) of tasks, p = d + 1; `at` and `mass` (m,): the tasks asked for.
struct ScatterTasks {
    const double *triangles, *mean, *mass;
    const int64_t* at;
    const double *centre, *by;  // (p,)
    int64_t p;
    bool intercept;
};

// gram (m, w, w), moment (m, w), square (m,), w = p with an intercept, else p - 1.
struct SquaredArrays {
    double *gram, *moment, *square;
};

// Statistics of tasks and their prior.
struct PosteriorTasks {
    const double* gram;    // (T, d, d)
    const double* moment;  // (T, d)
    const double* square;  // (T,)
    const double* count;   // (T,)
    const double* theta;   // (T, d)
    const double* factor;  // (d, d), lower triangular
    const double* s2;      // (T,)
    int64_t d;
    bool correlated;  // whether all of R is needed, not only its diagonal
    int64_t rounds;   // of a task's own noise, (rss + prior_points s2) / (n + prior_points)
    double prior_points;
};

struct PosteriorArrays {
    double* g;       // (T, d)
    double* rss;     // (T,)
    double* loglik;  // (T,)
    double* s2;      // (T,), the noise at the end, or null
};

// Nodes of a tree: what their points, or their children, say; the results are what they say to their parents.
struct TreeUp {
    const double* gram;    // (n, d, d)
    const double* moment;  // (n, d)
    const double* theta;   // (n, d)
    const double* factor;  // (d, d), lower triangular
    const double* s2;      // (n,)
    int64_t d;
    double* messages;  // (n, d, d)
    double* g;         // (n, d)
    double* value;     // (n,)
};

// The same messages, and the weights of the parents given all points.
struct TreeDown {
    const double* messages;    // (n, d, d)
    const double* g;           // (n, d)
    const double* mean;        // (p, d)
    const double* covariance;  // (p, d, d)
    const int64_t* parent;     // (n,)
    int64_t d;
    double* r;      // (n, d)
    double* trace;  // (n,)
};

// Statistics as above, and Phi1 (T, k1): the features of tasks, and 1.
struct PriorTasks {
    const double *gram, *moment, *square, *count, *Phi1;
    int64_t T;
};

enum Metric : int64_t { IDENTITY, DIAGONAL, FULL };

// Coordinates around a prior (Frame of meta/prior.py).
struct PriorFrame {
    const double *W, *L, *B, *C;  // (k1, d), (d, d), (d, d), (k1, k1)
    double s2, kappa, unit_diagonal, unit_below, unit_noise;
    int64_t d, k1, p;
    int64_t metric;
};

// An ascent in a box.
struct Climb {
    const double *lowest, *highest;  // (p,)
    double tol;
    int64_t most;    // evaluations
    double* x;       // (p,): the start on input, the end on output
    double* values;  // (most + 1,): the value at the start and after every step
};

struct Steps {
    int64_t taken, passes;
};

struct VariationalTasks {
    const double* X;         // (N, d)
    const double *a, *b, *e;  // (N,), the form of each row
    const int64_t* offsets;  // (T+1,)
    const double* theta;     // (T, d)
    const double* factor;    // (d, d), lower triangular
    const double* weight;    // (N,), the start
    const double* push;      // (N,)
    const double* times;     // (N,), how often each point counts, or null: once
    double tol;
    int64_t d;
    int64_t n_max;  // points of the largest task
};

struct VariationalArrays {
    double* z;       // (T, d)
    double* g;       // (T, d)
    double* bound;   // (T,)
    double* weight;  // (N,)
    double* push;    // (N,)
    double* r;       // (N,)
    double* loss;    // (N,)
};

// Rows of tasks by rising time; see inner/drift.py.
struct DriftTasks {
    const double* X;         // (N, d)
    const double* y;         // (N,)
    const double* mass;      // (N,)
    const int64_t* offsets;  // (T+1,)
    const double* steps;     // (N,), time since the row before
    const double* theta;     // (T, d)
    const double* factor;    // (d, d), lower triangular
    double s2, rate;
    bool moves;  // AR(1), else decay
    int64_t d;
};

struct DriftArrays {
    double* gram;       // (T, d, d)
    double* e;          // (T, d)
    double* predicted;  // (N,), or null
};

struct Kernels {
    const char* name;
    // Tasks [begin, end): returns the first task with a diverging pass, or -1. All tasks are run.
    int64_t (*online)(const Tasks&, const OnlineArrays&, int64_t begin, int64_t end, double* space);
    int64_t (*online_space)(int64_t n_max, int64_t d);
    void (*batch)(const Tasks&, const BatchArrays&, int64_t begin, int64_t end, double* space);
    int64_t (*batch_space)(int64_t n_max, int64_t d, bool doubled);
    // All tasks in turn; stops at the first task with a diverging pass and returns it, or -1.
    int64_t (*sgd)(const Tasks&, const SgdArrays&, double* space);
    int64_t (*sgd_space)(int64_t n_max, int64_t d, int64_t k, bool doubled);
    // The same by kernel evaluations; tasks must have points.
    int64_t (*kernel_pass)(const Tasks&, const KernelArrays&, double* space);
    int64_t (*kernel_space)(int64_t n_max, int64_t d, int64_t p, int64_t total, bool doubled);
    // Rows [begin, end) of theta, from the support that `kernel_support` laid out in `shared`.
    void (*kernel_theta)(const KernelTheta&, double* shared, int64_t begin, int64_t end, double* space);
    int64_t (*kernel_theta_space)(int64_t d);
    void (*kernel_support)(const KernelTheta&, double* shared);
    int64_t (*kernel_support_space)(int64_t count, int64_t p, int64_t d);

    int64_t vector, group;  // lanes in a vector of grid_curves, and in a group of the others
    // Groups [begin, end) of lanes.
    void (*grid_train)(const Tasks&, const GridTrain&, int64_t begin, int64_t end, double* space);
    int64_t (*grid_train_space)(int64_t n_max, int64_t d, int64_t k);
    // Cells [begin, end) of tasks times groups of lanes; support points, then query points.
    void (*grid_score)(const Tasks&, const Tasks&, const GridScore&, int64_t begin, int64_t end, double* space);
    int64_t (*grid_score_space)(int64_t n_max, int64_t m_max, int64_t d);
    // Cells [begin, end) of vectors of lanes times chunks of tasks.
    void (*grid_curves)(const Tasks&, const Tasks&, const GridCurves&, int64_t begin, int64_t end, double* space);
    int64_t (*grid_curves_space)(int64_t n_max, int64_t m_max, int64_t d);
    void (*row_scores)(const RowScores&, int64_t begin, int64_t end);
    void (*scaled)(const ScatterTasks&, const SquaredArrays&, int64_t begin, int64_t end, double* scratch);
    // Tasks [begin, end); their part of R goes to `R` (d, d).
    void (*posterior)(const PosteriorTasks&, const PosteriorArrays&, int64_t begin, int64_t end, double* R,
                      double* space);
    int64_t (*posterior_space)(int64_t d);
    void (*scaled_posterior)(const ScatterTasks&, const PosteriorTasks&, const PosteriorArrays&, int64_t begin,
                             int64_t end, double* R, double* space);
    int64_t (*scaled_posterior_space)(int64_t p, int64_t d);
    // Nodes [begin, end) of one level of a tree.
    void (*tree_up)(const TreeUp&, int64_t begin, int64_t end, double* space);
    int64_t (*tree_up_space)(int64_t d);
    // Likewise; their part of the sum goes to `spread` (d, d).
    void (*tree_down)(const TreeDown&, int64_t begin, int64_t end, double* spread, double* space);
    int64_t (*tree_down_space)(int64_t d);
    Steps (*climb_prior)(const PriorTasks&, const PriorFrame&, const Climb&, double* space);
    int64_t (*prior_space)(int64_t T, int64_t d, int64_t k1, int64_t p);
    // Likewise for rows of one form.
    void (*variational)(const VariationalTasks&, const VariationalArrays&, int64_t begin, int64_t end, double* Q,
                        double* space);
    int64_t (*variational_space)(int64_t n_max, int64_t d);
    void (*coin)(const Tasks&, const CoinTasks&, int64_t begin, int64_t end, double* space);
    int64_t (*coin_space)(int64_t n_max, int64_t d);
    // All tasks in turn.
    void (*coin_pass)(const Tasks&, const CoinMap&, double* space);
    int64_t (*coin_pass_space)(int64_t n_max, int64_t d, int64_t k);
    void (*drift)(const DriftTasks&, const DriftArrays&, int64_t begin, int64_t end, double* space);
    int64_t (*drift_space)(int64_t d);
};
