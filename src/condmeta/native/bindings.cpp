// The Python module `condmeta.native._core`: shapes and dtypes are checked here, then the kernels run
// without the interpreter's lock. Arrays are taken as they are, never converted or copied.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/tuple.h>

#include <cstdlib>
#include <limits>
#include <new>
#include <stdexcept>
#include <string>
#include <tuple>

#include "dispatch.h"
#include "threads.h"

namespace nb = nanobind;

namespace {

using Row = std::tuple<double, double, double, double, bool>;
template <class T, size_t n>
using Array = nb::ndarray<T, nb::ndim<n>, nb::c_contig, nb::device::cpu>;
using In1 = Array<const double, 1>;
using In2 = Array<const double, 2>;
using InOffsets = Array<const int64_t, 1>;
using Out1 = Array<double, 1>;
using Out2 = Array<double, 2>;
using OutCounts = Array<int64_t, 1>;

template <class A>
void need(const A& array, const char* name, size_t rows, size_t columns = 0) {
    const bool fits = array.shape(0) == rows && (array.ndim() == 1 || array.shape(1) == columns);
    if (fits) return;
    std::string text = std::string("'") + name + "' must have shape (" + std::to_string(rows);
    text += array.ndim() == 1 ? ",)." : ", " + std::to_string(columns) + ").";
    throw std::invalid_argument(text);
}

Tasks check_tasks(const In2& X, const In1& y, const InOffsets& offsets, double lam, const Row& row) {
    if (offsets.shape(0) == 0) throw std::invalid_argument("'offsets' must have at least one entry.");
    need(y, "y", X.shape(0));
    const int64_t* at = offsets.data();
    const int64_t count = int64_t(offsets.shape(0)) - 1;
    int64_t n_max = 0;
    bool valid = at[0] >= 0 && at[count] <= int64_t(X.shape(0));
    for (int64_t t = 0; t < count; ++t) {
        valid = valid && at[t] <= at[t + 1];
        n_max = std::max(n_max, at[t + 1] - at[t]);
    }
    if (!valid) throw std::invalid_argument("'offsets' must rise from 0 or more to at most the rows of 'X'.");
    const auto [curvature, dead_zone, low, high, is_signed] = row;
    const Loss loss{curvature, dead_zone, low, high, is_signed};
    return {X.data(), y.data(), at, count, int64_t(X.shape(1)), n_max, lam, loss};
}

// Zeros. The pages of calloc are touched by the threads that fill them, not here.
template <size_t n>
auto new_array(std::initializer_list<size_t> shape) {
    size_t size = 1;
    for (size_t side : shape) size *= side;
    void* data = std::calloc(size ? size : 1, sizeof(double));
    if (!data) throw std::bad_alloc();
    nb::capsule owner(data, [](void* p) noexcept { std::free(p); });
    return nb::ndarray<nb::numpy, double, nb::ndim<n>>(data, shape, owner);
}

int64_t online_tasks(In2 theta, In2 X, In1 y, InOffsets offsets, double lam, Row loss, Out2 slope_sum, Out2 path_sum,
                     Out1 radius, OutCounts count, int64_t n_jobs) {
    const Tasks tasks = check_tasks(X, y, offsets, lam, loss);
    const size_t T = size_t(tasks.count), d = size_t(tasks.d);
    need(theta, "theta", T, d);
    need(slope_sum, "slope_sum", T, d);
    need(path_sum, "path_sum", T, d);
    need(radius, "radius", T);
    need(count, "count", T);
    const OnlineArrays state{theta.data(), slope_sum.data(), path_sum.data(), radius.data(), count.data()};
    std::atomic<int64_t> first{std::numeric_limits<int64_t>::max()};
    nb::gil_scoped_release unlocked;
    for_tasks(tasks.count, n_jobs, kernels().online_space(tasks.n_max, tasks.d),
              [&](int64_t begin, int64_t end, double* space) {
                  const int64_t failed = kernels().online(tasks, state, begin, end, space);
                  int64_t known = first.load();
                  while (failed >= 0 && failed < known && !first.compare_exchange_weak(known, failed)) {
                  }
              });
    const int64_t failed = first.load();
    return failed == std::numeric_limits<int64_t>::max() ? -1 : failed;
}

nb::tuple batch_tasks(In2 theta, In2 X, In1 y, InOffsets offsets, double lam, Row loss, double tol, int64_t n_jobs) {
    const Tasks tasks = check_tasks(X, y, offsets, lam, loss);
    const size_t T = size_t(tasks.count), d = size_t(tasks.d);
    need(theta, "theta", T, d);
    auto coef = new_array<2>({T, d}), gradient = new_array<2>({T, d});
    auto gap = new_array<1>({T}), slopes = new_array<1>({X.shape(0)});
    const BatchArrays out{theta.data(), tol, coef.data(), gradient.data(), gap.data(), slopes.data()};
    {
        nb::gil_scoped_release unlocked;
        for_tasks(tasks.count, n_jobs, kernels().batch_space(tasks.n_max, tasks.d, tasks.loss.dead_zone > 0),
                  [&](int64_t begin, int64_t end, double* space) { kernels().batch(tasks, out, begin, end, space); });
    }
    return nb::make_tuple(coef, gradient, gap, slopes);
}

int64_t sgd_pass(Out2 grad_sum, Out2 weighted_sum, Out1 phi_sum, In2 X, In1 y, InOffsets offsets, In2 Phi, double lam,
                 Row loss, double meta_step, bool linear, bool at_average, bool batch, double tol) {
    const Tasks tasks = check_tasks(X, y, offsets, lam, loss);
    const size_t d = size_t(tasks.d), k = Phi.shape(1);
    need(Phi, "Phi", size_t(tasks.count), k);
    need(grad_sum, "grad_sum", k + 1, d);
    need(weighted_sum, "weighted_sum", k + 1, d);
    need(phi_sum, "phi_sum", k + 1);
    const SgdArrays state{grad_sum.data(), weighted_sum.data(), phi_sum.data(), Phi.data(), int64_t(k),
                          meta_step,       linear,              at_average,     batch,      tol};
    nb::gil_scoped_release unlocked;
    const Workspaces space(1, kernels().sgd_space(tasks.n_max, tasks.d, state.k, tasks.loss.dead_zone > 0));
    return kernels().sgd(tasks, state, space[0]);
}

}  // namespace

NB_MODULE(_core, m) {
    m.doc() = "Compiled twins of condmeta's hot functions; see the NumPy definitions of the same names.";
    m.def("online_tasks", &online_tasks, nb::arg("theta").noconvert(), nb::arg("X").noconvert(),
          nb::arg("y").noconvert(), nb::arg("offsets").noconvert(), nb::arg("lam"), nb::arg("loss"),
          nb::arg("slope_sum").noconvert(), nb::arg("path_sum").noconvert(), nb::arg("radius").noconvert(),
          nb::arg("count").noconvert(), nb::arg("n_jobs"));
    m.def("batch_tasks", &batch_tasks, nb::arg("theta").noconvert(), nb::arg("X").noconvert(),
          nb::arg("y").noconvert(), nb::arg("offsets").noconvert(), nb::arg("lam"), nb::arg("loss"), nb::arg("tol"),
          nb::arg("n_jobs"));
    m.def("sgd_pass", &sgd_pass, nb::arg("grad_sum").noconvert(), nb::arg("weighted_sum").noconvert(),
          nb::arg("phi_sum").noconvert(), nb::arg("X").noconvert(), nb::arg("y").noconvert(),
          nb::arg("offsets").noconvert(), nb::arg("Phi").noconvert(), nb::arg("lam"), nb::arg("loss"),
          nb::arg("meta_step"), nb::arg("linear"), nb::arg("at_average"), nb::arg("batch"), nb::arg("tol"));
    m.def("instruction_set", &instruction_set, "Return the instruction set chosen for this machine.");
}
