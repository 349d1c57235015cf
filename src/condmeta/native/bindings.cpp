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
using In3 = Array<const double, 3>;
using InOffsets = Array<const int64_t, 1>;
using Out1 = Array<double, 1>;
using Out2 = Array<double, 2>;
using Out3 = Array<double, 3>;
using OutCounts = Array<int64_t, 1>;

template <class A, class... Sides>
void need(const A& array, const char* name, Sides... sides) {
    const size_t shape[] = {size_t(sides)...};
    bool fits = true;
    std::string text = std::string("'") + name + "' must have shape (";
    for (size_t axis = 0; axis < sizeof...(sides); ++axis) {
        fits = fits && array.shape(axis) == shape[axis];
        text += (axis ? ", " : "") + std::to_string(shape[axis]);
    }
    if (!fits) throw std::invalid_argument(text + (sizeof...(sides) == 1 ? ",)." : ")."));
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

using KernelPair = std::tuple<int64_t, double>;

KernelRow read_kernel(const KernelPair& kernel) {
    const auto [kind, scale] = kernel;
    if (kind < 0 || kind > 2) throw std::invalid_argument("'kernel' must be of kind 0, 1 or 2.");
    return {kind, scale};
}

int64_t kernel_pass(In2 sides, Out2 gradients, int64_t start, In2 X, In1 y, InOffsets offsets, KernelPair kernel,
                    double lam, Row loss, double meta_step, bool batch, double tol) {
    const Tasks tasks = check_tasks(X, y, offsets, lam, loss);
    const size_t total = sides.shape(0), p = sides.shape(1);
    if (start < 0 || int64_t(total) != start + tasks.count)
        throw std::invalid_argument("'sides' must have a row for each task, those before 'start' included.");
    need(gradients, "gradients", total, size_t(tasks.d));
    for (int64_t t = 0; t < tasks.count; ++t)
        if (tasks.offsets[t] == tasks.offsets[t + 1])
            throw std::invalid_argument("'offsets' must give every training task at least one point.");
    const KernelArrays run{sides.data(), gradients.data(), start, int64_t(p), read_kernel(kernel), meta_step, batch,
                           tol};
    nb::gil_scoped_release unlocked;
    const Workspaces space(
        1, kernels().kernel_space(tasks.n_max, tasks.d, run.p, int64_t(total), tasks.loss.dead_zone > 0));
    return kernels().kernel_pass(tasks, run, space[0]);
}

// Threads over cells of work, at most `most` of them handed out at once.
template <class Work>
void for_cells(int64_t count, int64_t most, int64_t n_jobs, int64_t doubles, Work work) {
    nb::gil_scoped_release unlocked;
    if (count > 0) for_tasks(count, n_jobs, doubles, work, most);
}

int64_t pieces(int64_t whole, int64_t piece) { return (whole + piece - 1) / piece; }

void grid_train(Out3 grad_sum, Out3 weighted_sum, Out1 phi_sum, In2 X, In1 y, InOffsets offsets, In2 Phi, In1 lam,
                In1 meta_step, Row loss, bool linear, bool at_average, Out3 gradients, int64_t n_jobs) {
    const Tasks tasks = check_tasks(X, y, offsets, 0.0, loss);
    const size_t T = size_t(tasks.count), d = size_t(tasks.d), k = Phi.shape(1), L = lam.shape(0);
    need(Phi, "Phi", T, k);
    need(grad_sum, "grad_sum", k + 1, d, L);
    need(weighted_sum, "weighted_sum", k + 1, d, L);
    need(phi_sum, "phi_sum", k + 1);
    need(meta_step, "meta_step", L);
    const bool kept = gradients.shape(0) > 0;
    need(gradients, "gradients", kept ? T : 0, d, L);
    for (size_t t = 0; t < T; ++t)
        if (tasks.offsets[t] == tasks.offsets[t + 1])
            throw std::invalid_argument("'offsets' must give every training task at least one point.");
    double* sum = phi_sum.data();
    const GridTrain run{grad_sum.data(),  weighted_sum.data(), sum[k], Phi.data(), int64_t(k), lam.data(),
                        meta_step.data(), int64_t(L),          linear, at_average, kept ? gradients.data() : nullptr};
    for_cells(pieces(run.lanes, kernels().group), 1, n_jobs, kernels().grid_train_space(tasks.n_max, tasks.d, run.k),
              [&](int64_t begin, int64_t end, double* space) { kernels().grid_train(tasks, run, begin, end, space); });
    for (size_t t = 0; t < T; ++t) {
        for (size_t r = 0; r < k; ++r) sum[r] += run.Phi[t * k + r];
        sum[k] += 1.0;
    }
}

// The points of V tasks that judge what was learned from those of `tasks`.
Tasks check_query(const Tasks& tasks, const In2& X, const In1& y, const InOffsets& offsets, const Row& loss) {
    need(offsets, "offsets_q", size_t(tasks.count) + 1);
    need(X, "Xq", X.shape(0), size_t(tasks.d));
    need(y, "yq", X.shape(0));
    return check_tasks(X, y, offsets, 0.0, loss);
}

auto grid_score(In3 theta, In2 X, In1 y, InOffsets offsets, In2 Xq, In1 yq, InOffsets offsets_q, In1 lam, Row loss,
                int64_t n_jobs) {
    const Tasks tasks = check_tasks(X, y, offsets, 0.0, loss);
    const Tasks query = check_query(tasks, Xq, yq, offsets_q, loss);
    const size_t V = size_t(tasks.count), L = lam.shape(0);
    need(theta, "theta", V, size_t(tasks.d), L);
    auto errors = new_array<2>({V, L});
    const GridScore run{theta.data(), lam.data(), int64_t(L), errors.data()};
    const int64_t groups = pieces(run.lanes, kernels().group);
    for_cells(tasks.count * groups, groups, n_jobs, kernels().grid_score_space(tasks.n_max, query.n_max, tasks.d),
              [&](int64_t begin, int64_t end, double* space) {
                  kernels().grid_score(tasks, query, run, begin, end, space);
              });
    return errors;
}

// The sums of all chunks, in their order, over the sizes of the groups: (groups, T, L).
void join_curves(const GridCurves& run, const int64_t* sizes, double* curves) {
    const int64_t width = kernels().vector, size = run.groups * run.steps;
    for (int64_t row = 0; row < size; ++row)
        for (int64_t lane = 0; lane < run.lanes; ++lane) {
            const double* cell = run.partial + (lane / width * run.chunks * size + row) * width + lane % width;
            double total = 0.0;
            for (int64_t chunk = 0; chunk < run.chunks; ++chunk) total += cell[chunk * size * width];
            curves[row * run.lanes + lane] = total / double(std::max<int64_t>(1, sizes[row / run.steps]));
        }
}

auto grid_curves(In3 gradients, In2 kk, In2 X, In1 y, InOffsets offsets, In2 Xq, In1 yq, InOffsets offsets_q,
                 InOffsets group, int64_t n_groups, In1 lam, In1 meta_step, Row loss, bool linear, bool at_average,
                 int64_t n_jobs) {
    const Tasks tasks = check_tasks(X, y, offsets, 0.0, loss);
    const Tasks query = check_query(tasks, Xq, yq, offsets_q, loss);
    const size_t V = size_t(tasks.count), T = kk.shape(0), L = lam.shape(0);
    need(gradients, "gradients", T, size_t(tasks.d), L);
    need(kk, "kk", T, V);
    need(group, "group", V);
    need(meta_step, "meta_step", L);
    if (n_groups < 0) throw std::invalid_argument("'n_groups' must not be negative.");
    std::vector<int64_t> sizes(static_cast<size_t>(n_groups));
    for (size_t v = 0; v < V; ++v) {
        const int64_t c = group.data()[v];
        if (c < 0 || c >= n_groups) throw std::invalid_argument("'group' must hold numbers from 0 to n_groups - 1.");
        ++sizes[size_t(c)];
    }
    auto curves = new_array<3>({size_t(n_groups), T, L});
    std::vector<double> turned(T * V);  // a task's kk one after another
    for (size_t t = 0; t < T; ++t)
        for (size_t v = 0; v < V; ++v) turned[v * T + t] = kk.data()[t * V + v];
    const int64_t vectors = pieces(int64_t(L), kernels().vector);
    if (vectors == 0 || V == 0 || T == 0) return curves;
    // As many cells as keep any number of threads busy; what is added to what depends on V and L alone.
    const int64_t chunks = std::min<int64_t>(int64_t(V), pieces(64, vectors));
    std::vector<double> partial(size_t(vectors * chunks * n_groups * kernels().vector) * T);
    const GridCurves run{gradients.data(), turned.data(), group.data(), n_groups,   int64_t(T), lam.data(),
                         meta_step.data(), int64_t(L),    linear,       at_average, chunks,     partial.data()};
    for_cells(vectors * chunks, 1, n_jobs, kernels().grid_curves_space(tasks.n_max, query.n_max, tasks.d),
              [&](int64_t begin, int64_t end, double* space) {
                  kernels().grid_curves(tasks, query, run, begin, end, space);
              });
    join_curves(run, sizes.data(), curves.data());
    return curves;
}

auto kernel_theta(In2 rows, In2 sides, In2 weights, KernelPair kernel, int64_t n_jobs) {
    const size_t V = rows.shape(0), T = sides.shape(0), p = sides.shape(1), d = weights.shape(1);
    need(rows, "rows", V, p);
    need(weights, "weights", T, d);
    auto out = new_array<2>({V, d});
    const KernelTheta run{rows.data(), sides.data(), weights.data(), int64_t(T), int64_t(p), int64_t(d),
                          read_kernel(kernel), out.data()};
    const Workspaces shared(1, kernels().kernel_support_space(run.count, run.p, run.d));
    kernels().kernel_support(run, shared[0]);
    for_cells(pieces(int64_t(V), 64), 1, n_jobs, kernels().kernel_theta_space(run.d),
              [&](int64_t begin, int64_t end, double* space) {
                  kernels().kernel_theta(run, shared[0], begin * 64, std::min(end * 64, int64_t(V)), space);
              });
    return out;
}

auto row_scores(In2 X, In2 weights, InOffsets codes, int64_t n_jobs) {
    const size_t N = X.shape(0), d = X.shape(1);
    need(weights, "weights", weights.shape(0), d);
    need(codes, "codes", N);
    for (size_t i = 0; i < N; ++i)
        if (codes.data()[i] < 0 || codes.data()[i] >= int64_t(weights.shape(0)))
            throw std::invalid_argument("'codes' must be positions of rows of 'weights'.");
    auto out = new_array<1>({N});
    const RowScores run{X.data(), weights.data(), codes.data(), int64_t(d), out.data()};
    for_cells(pieces(int64_t(N), 4096), 1, n_jobs, 0, [&](int64_t begin, int64_t end, double*) {
        kernels().row_scores(run, begin * 4096, std::min(end * 4096, int64_t(N)));
    });
    return out;
}

nb::tuple posterior_pass(In3 gram, In2 moment, In1 square, In1 count, In2 theta, In2 factor, In1 s2, int64_t n_jobs) {
    const size_t T = theta.shape(0), d = theta.shape(1);
    need(gram, "gram", T, d, d);
    need(moment, "moment", T, d);
    need(square, "square", T);
    need(count, "count", T);
    need(factor, "factor", d, d);
    need(s2, "s2", T);
    const int64_t chunk = 256, chunks = pieces(int64_t(T), chunk), square_size = int64_t(d * d);
    auto g = new_array<2>({T, d}), Q = new_array<2>({d, d});
    auto rss = new_array<1>({T}), loglik = new_array<1>({T});
    auto partial = new_array<2>({size_t(chunks), d * d});
    const PosteriorTasks run{gram.data(),  moment.data(), square.data(), count.data(),
                             theta.data(), factor.data(), s2.data(),     int64_t(d)};
    const PosteriorArrays out{g.data(), rss.data(), loglik.data()};
    for_cells(chunks, 1, n_jobs, kernels().posterior_space(run.d), [&](int64_t begin, int64_t end, double* space) {
        for (int64_t at = begin; at < end; ++at)
            kernels().posterior(run, out, at * chunk, std::min((at + 1) * chunk, int64_t(T)),
                                partial.data() + at * square_size, space);
    });
    for (int64_t at = 0; at < chunks; ++at)  // in order, whatever the threads
        for (int64_t i = 0; i < square_size; ++i) Q.data()[i] += partial.data()[at * square_size + i];
    return nb::make_tuple(g, Q, rss, loglik);
}

// Betting is on the absolute loss: the kernels know it, and need neither lam nor a row of numbers.
Tasks check_bets(const In2& X, const In1& y, const InOffsets& offsets) { return check_tasks(X, y, offsets, 0.0, {}); }

void coin_tasks(In2 theta, In2 X, In1 y, InOffsets offsets, double radius, Out2 slope_sum, Out2 path_sum, Out1 wealth,
                OutCounts count, int64_t n_jobs) {
    const Tasks tasks = check_bets(X, y, offsets);
    const size_t T = size_t(tasks.count), d = size_t(tasks.d);
    need(theta, "theta", T, d);
    need(slope_sum, "slope_sum", T, d);
    need(path_sum, "path_sum", T, d);
    need(wealth, "wealth", T);
    need(count, "count", T);
    const CoinTasks state{theta.data(), radius, slope_sum.data(), path_sum.data(), wealth.data(), count.data()};
    nb::gil_scoped_release unlocked;
    for_tasks(tasks.count, n_jobs, kernels().coin_space(tasks.n_max, tasks.d),
              [&](int64_t begin, int64_t end, double* space) { kernels().coin(tasks, state, begin, end, space); });
}

void coin_pass(Out2 most, Out2 size, Out2 drift, Out2 reward, Out2 W, Out2 weighted_sum, Out1 phi_sum, Out1 residual,
               In1 scales, In2 X, In1 y, InOffsets offsets, In2 Phi) {
    const Tasks tasks = check_bets(X, y, offsets);
    const size_t d = size_t(tasks.d), k = Phi.shape(1);
    need(Phi, "Phi", size_t(tasks.count), k);
    need(most, "most", k + 1, d);
    need(size, "size", k + 1, d);
    need(drift, "drift", k + 1, d);
    need(reward, "reward", k + 1, d);
    need(W, "W", k + 1, d);
    need(weighted_sum, "weighted_sum", k + 1, d);
    need(phi_sum, "phi_sum", k + 1);
    need(residual, "residual", 1);
    need(scales, "scales", 4);
    const CoinMap state{{most.data(), size.data(), drift.data(), reward.data(), W.data(), weighted_sum.data()},
                        phi_sum.data(), residual.data(), scales.data(), Phi.data(), int64_t(k)};
    nb::gil_scoped_release unlocked;
    const Workspaces space(1, kernels().coin_pass_space(tasks.n_max, tasks.d, state.k));
    kernels().coin_pass(tasks, state, space[0]);
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
    m.def("grid_train", &grid_train, nb::arg("grad_sum").noconvert(), nb::arg("weighted_sum").noconvert(),
          nb::arg("phi_sum").noconvert(), nb::arg("X").noconvert(), nb::arg("y").noconvert(),
          nb::arg("offsets").noconvert(), nb::arg("Phi").noconvert(), nb::arg("lam").noconvert(),
          nb::arg("meta_step").noconvert(), nb::arg("loss"), nb::arg("linear"), nb::arg("at_average"),
          nb::arg("gradients").noconvert(), nb::arg("n_jobs"));
    m.def("grid_score", &grid_score, nb::arg("theta").noconvert(), nb::arg("X").noconvert(), nb::arg("y").noconvert(),
          nb::arg("offsets").noconvert(), nb::arg("Xq").noconvert(), nb::arg("yq").noconvert(),
          nb::arg("offsets_q").noconvert(), nb::arg("lam").noconvert(), nb::arg("loss"), nb::arg("n_jobs"));
    m.def("grid_curves", &grid_curves, nb::arg("gradients").noconvert(), nb::arg("kk").noconvert(),
          nb::arg("X").noconvert(), nb::arg("y").noconvert(), nb::arg("offsets").noconvert(),
          nb::arg("Xq").noconvert(), nb::arg("yq").noconvert(), nb::arg("offsets_q").noconvert(),
          nb::arg("group").noconvert(), nb::arg("n_groups"), nb::arg("lam").noconvert(),
          nb::arg("meta_step").noconvert(), nb::arg("loss"), nb::arg("linear"), nb::arg("at_average"),
          nb::arg("n_jobs"));
    m.def("kernel_pass", &kernel_pass, nb::arg("sides").noconvert(), nb::arg("gradients").noconvert(),
          nb::arg("start"), nb::arg("X").noconvert(), nb::arg("y").noconvert(), nb::arg("offsets").noconvert(),
          nb::arg("kernel"), nb::arg("lam"), nb::arg("loss"), nb::arg("meta_step"), nb::arg("batch"), nb::arg("tol"));
    m.def("kernel_theta", &kernel_theta, nb::arg("rows").noconvert(), nb::arg("sides").noconvert(),
          nb::arg("weights").noconvert(), nb::arg("kernel"), nb::arg("n_jobs"));
    m.def("row_scores", &row_scores, nb::arg("X").noconvert(), nb::arg("weights").noconvert(),
          nb::arg("codes").noconvert(), nb::arg("n_jobs"));
    m.def("posterior_pass", &posterior_pass, nb::arg("gram").noconvert(), nb::arg("moment").noconvert(),
          nb::arg("square").noconvert(), nb::arg("count").noconvert(), nb::arg("theta").noconvert(),
          nb::arg("factor").noconvert(), nb::arg("s2").noconvert(), nb::arg("n_jobs"));
    m.def("coin_tasks", &coin_tasks, nb::arg("theta").noconvert(), nb::arg("X").noconvert(), nb::arg("y").noconvert(),
          nb::arg("offsets").noconvert(), nb::arg("radius"), nb::arg("slope_sum").noconvert(),
          nb::arg("path_sum").noconvert(), nb::arg("wealth").noconvert(), nb::arg("count").noconvert(),
          nb::arg("n_jobs"));
    m.def("coin_pass", &coin_pass, nb::arg("most").noconvert(), nb::arg("size").noconvert(),
          nb::arg("drift").noconvert(), nb::arg("reward").noconvert(), nb::arg("W").noconvert(),
          nb::arg("weighted_sum").noconvert(), nb::arg("phi_sum").noconvert(), nb::arg("residual").noconvert(),
          nb::arg("scales").noconvert(), nb::arg("X").noconvert(), nb::arg("y").noconvert(),
          nb::arg("offsets").noconvert(), nb::arg("Phi").noconvert());
    m.def("instruction_set", &instruction_set, "Return the instruction set chosen for this machine.");
}
