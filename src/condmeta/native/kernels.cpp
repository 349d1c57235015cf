// The kernels for one instruction set. CMake compiles this file several times, with CONDMETA_ISA (the
// name of the namespace and of the table) and CONDMETA_WIDTH (doubles in a vector) defined.
//
// One definition for each name: all code sits in namespace CONDMETA_ISA and no header of the C++
// library is included, so nothing compiled here for a newer machine shares a name with code that must
// run on an older one. The only symbol with a use outside is the table.

#include "batch.h"
#include "online.h"
#include "sgd.h"

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
    for (double* array : arrays) fill(array, 0.0, dp);
    read_points(tasks, begin, points);
    prepare_from<0>(points, 0);
    for (int64_t t = begin; t < end; ++t) {
        read_points(tasks, t + 1 < end ? t + 1 : tasks.count, next);
        copy(theta, state.theta + t * d, d);
        copy(u, state.slope_sum + t * d, d);
        copy(path, state.path_sum + t * d, d);
        const bool finite = online_task<true>(theta, points, next, tasks.lam, tasks.loss, u, path, state.radius + t,
                                              state.count[t]);
        copy(state.slope_sum + t * d, u, d);
        copy(state.path_sum + t * d, path, d);
        if (finite) state.count[t] += points.rows.n;
        if (!finite && failed < 0) failed = t;
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
    CONDMETA_NAME(CONDMETA_ISA), online_range, online_space, batch_range, batch_space, sgd_pass, sgd_space,
};

}  // namespace CONDMETA_ISA
