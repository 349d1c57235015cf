// The kernels for one instruction set. CMake compiles this file several times, with CONDMETA_ISA (the
// name of the namespace and of the table) and CONDMETA_WIDTH (doubles in a vector) defined.
//
// One definition for each name: all code is in namespace CONDMETA_ISA and no header of the C++ library is
// included, so nothing compiled here for a newer machine shares a name with code that must run on an older
// one. The only symbol used outside is the table.

#include "coin.h"
#include "drift.h"
#include "dual.h"
#include "grid_eval.h"
#include "grid_train.h"
#include "kernel_sgd.h"
#include "online.h"
#include "prior.h"
#include "row_scores.h"
#include "scaled.h"
#include "sgd.h"
#include "tree.h"
#include "variational.h"

#define CONDMETA_NAME_(isa) #isa
#define CONDMETA_NAME(isa) CONDMETA_NAME_(isa)

namespace CONDMETA_ISA {

static int64_t online_range(const Tasks& tasks, const OnlineArrays& state, int64_t begin, int64_t end,
                            double* memory) {
    Space space{memory};
    const int64_t d = tasks.d, dp = padded(d);
    double *theta = space.take(dp), *u = space.take(dp), *path = space.take(dp);
    Points points(space, tasks.n_max, d), next(space, tasks.n_max, d);
    int64_t failed = -1;
    double* arrays[] = {theta, u, path};
    for (double* array : arrays) clear(array, dp);
    read_points(tasks, begin, points);
    prepare_from<0>(points, 0);
    for (int64_t t = begin; t < end; ++t) {
        if (points.rows.n == 0) {
            read_points(tasks, t + 1 < end ? t + 1 : tasks.count, points);
            prepare_from<0>(points, 0);
            continue;
        }
        read_points(tasks, t + 1 < end ? t + 1 : tasks.count, next);
        copy(theta, state.theta + t * d, d);
        copy(u, state.slope_sum + t * d, d);
        copy(path, state.path_sum + t * d, d);
        const bool finite = online_task<true>(theta, points, next, tasks.lam, tasks.loss, u, path, state.radius + t,
                                              state.count[t]);
        copy(state.slope_sum + t * d, u, d);
        copy(state.path_sum + t * d, path, d);
        if (finite) {
            state.count[t] += points.rows.n;
        } else {
            failed = failed < 0 ? t : failed;
            clear(u, dp);  // no NaN in the padding
            clear(path, dp);
        }
        swap(points, next);
    }
    return failed;
}

static int64_t online_space(int64_t n_max, int64_t d) {
    Space space{nullptr};
    for (int array = 0; array < 3; ++array) space.take(padded(d));
    Points(space, n_max, d);
    Points(space, n_max, d);
    return space.used;
}

static void batch_range(const Tasks& tasks, const BatchArrays& out, int64_t begin, int64_t end, double* memory) {
    Space space{memory};
    const int64_t d = tasks.d;
    const BatchSpace at(space, tasks.n_max, d, tasks.loss.dead_zone > 0);
    clear(at.bias, padded(d));
    for (int64_t t = begin; t < end; ++t) {
        const int64_t lo = tasks.offsets[t], n = tasks.offsets[t + 1] - lo;
        const double* theta = out.theta + t * d;
        copy(out.coef + t * d, theta, d);
        if (n == 0) continue;  // gradient, gap and slopes come in as zeros
        const Rows rows = make_rows(tasks.X + lo * d, n, d, at.pack);
        copy(at.bias, theta, d);
        double count = 0.0;
        for (int64_t i = 0; i < n; ++i) count += at.times[i] = out.weight ? out.weight[lo + i] : 1.0;
        out.gap[t] = solve_weighted(rows, d, tasks.y + lo, tasks.lam, tasks.loss, out.tol, at);
        for (int64_t j = 0; j < d; ++j) {
            const double g = at.wide2[j] / count;
            out.gradient[t * d + j] = g;
            out.coef[t * d + j] = theta[j] - g / tasks.lam;
        }
        copy(out.slopes + lo, at.a, n);
    }
}

static int64_t batch_space(int64_t n_max, int64_t d, bool doubled) {
    Space space{nullptr};
    BatchSpace(space, n_max, d, doubled);
    return space.used;
}

static int64_t sgd_space(int64_t n_max, int64_t d, int64_t k, bool doubled) {
    Space space{nullptr};
    SgdSpace(space, d, k + 1);
    const int64_t one = online_space(n_max, d), other = batch_space(n_max, d, doubled);
    return space.used + (one > other ? one : other);
}

extern const Kernels table;
const Kernels table = {
    CONDMETA_NAME(CONDMETA_ISA),
    online_range,
    online_space,
    batch_range,
    batch_space,
    sgd_pass,
    sgd_space,
    kernel_pass,
    kernel_space,
    kernel_theta,
    kernel_theta_space,
    kernel_support,
    kernel_support_space,
    W,
    GROUP,
    grid_train,
    grid_train_space,
    grid_score,
    grid_score_space,
    grid_curves,
    grid_curves_space,
    row_scores,
    scaled_range,
    posterior_range,
    posterior_space,
    scaled_posterior_range,
    scaled_posterior_space,
    tree_up_range,
    tree_up_space,
    tree_down_range,
    tree_down_space,
    climb_prior,
    prior_space,
    variational_range,
    variational_space,
    coin_range,
    coin_range_space,
    coin_pass,
    coin_pass_space,
    drift_range,
    drift_space,
};

}  // namespace CONDMETA_ISA
