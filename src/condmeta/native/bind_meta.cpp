// Bindings of the meta-learners that take tasks in turn.
#include "arrays.h"

namespace {

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
    if (start < 0 || int64_t(total) - tasks.count != start)
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

nb::tuple climb_prior(In3 gram, In2 moment, In1 square, In1 count, In2 Phi1, double kappa, In2 W, In2 L, double s2,
                      In2 basis, In2 C, In1 units, int64_t metric, In1 lowest, In1 highest, double tol, int64_t most) {
    const size_t T = Phi1.shape(0), k1 = Phi1.shape(1), d = L.shape(0), p = lowest.shape(0);
    need(gram, "gram", T, d, d);
    need(moment, "moment", T, d);
    need(square, "square", T);
    need(count, "count", T);
    need(W, "W", k1, d);
    need(L, "L", d, d);
    need(basis, "basis", d, d);
    need(C, "C", k1, k1);
    need(units, "units", 3);
    if (metric < IDENTITY || metric > FULL) throw std::invalid_argument("'metric' must be 0, 1 or 2.");
    need(lowest, "lowest", k1 * d + (metric == IDENTITY ? 1 : d) + (metric == FULL ? d * (d - 1) / 2 : 0) + 1);
    need(highest, "highest", p);
    if (most < 1) throw std::invalid_argument("'most' must be positive.");
    auto x = new_array<1>({p});
    std::vector<double> values(size_t(most) + 1);
    const PriorTasks tasks{gram.data(), moment.data(), square.data(), count.data(), Phi1.data(), int64_t(T)};
    const double* unit = units.data();
    const PriorFrame frame{W.data(), L.data(), basis.data(), C.data(),    s2,         kappa, unit[0],
                           unit[1],  unit[2],  int64_t(d),   int64_t(k1), int64_t(p), metric};
    const Climb climb{lowest.data(), highest.data(), tol, most, x.data(), values.data()};
    Steps steps;
    {
        nb::gil_scoped_release unlocked;
        const Workspaces space(1, kernels().prior_space(tasks.T, frame.d, frame.k1, frame.p));
        steps = kernels().climb_prior(tasks, frame, climb, space[0]);
    }
    auto kept = new_array<1>({size_t(steps.taken) + 1});
    std::copy_n(values.data(), kept.size(), kept.data());
    return nb::make_tuple(x, kept, steps.passes);
}

}  // namespace

void bind_meta(nb::module_& m) {
    m.def("sgd_pass", &sgd_pass, nb::arg("grad_sum").noconvert(), nb::arg("weighted_sum").noconvert(),
          nb::arg("phi_sum").noconvert(), nb::arg("X").noconvert(), nb::arg("y").noconvert(),
          nb::arg("offsets").noconvert(), nb::arg("Phi").noconvert(), nb::arg("lam"), nb::arg("loss"),
          nb::arg("meta_step"), nb::arg("linear"), nb::arg("at_average"), nb::arg("batch"), nb::arg("tol"));
    m.def("kernel_pass", &kernel_pass, nb::arg("sides").noconvert(), nb::arg("gradients").noconvert(),
          nb::arg("start"), nb::arg("X").noconvert(), nb::arg("y").noconvert(), nb::arg("offsets").noconvert(),
          nb::arg("kernel"), nb::arg("lam"), nb::arg("loss"), nb::arg("meta_step"), nb::arg("batch"), nb::arg("tol"));
    m.def("kernel_theta", &kernel_theta, nb::arg("rows").noconvert(), nb::arg("sides").noconvert(),
          nb::arg("weights").noconvert(), nb::arg("kernel"), nb::arg("n_jobs"));
    m.def("climb_prior", &climb_prior, nb::arg("gram").noconvert(), nb::arg("moment").noconvert(),
          nb::arg("square").noconvert(), nb::arg("count").noconvert(), nb::arg("Phi1").noconvert(), nb::arg("kappa"),
          nb::arg("W").noconvert(), nb::arg("L").noconvert(), nb::arg("s2"), nb::arg("basis").noconvert(),
          nb::arg("C").noconvert(), nb::arg("units").noconvert(), nb::arg("metric"), nb::arg("lowest").noconvert(),
          nb::arg("highest").noconvert(), nb::arg("tol"), nb::arg("most"));
    m.def("coin_pass", &coin_pass, nb::arg("most").noconvert(), nb::arg("size").noconvert(),
          nb::arg("drift").noconvert(), nb::arg("reward").noconvert(), nb::arg("W").noconvert(),
          nb::arg("weighted_sum").noconvert(), nb::arg("phi_sum").noconvert(), nb::arg("residual").noconvert(),
          nb::arg("scales").noconvert(), nb::arg("X").noconvert(), nb::arg("y").noconvert(),
          nb::arg("offsets").noconvert(), nb::arg("Phi").noconvert());
}
