// Bindings of the grid over (lam, meta_step).
#include "arrays.h"

namespace {

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

// The query points of V tasks; `tasks` has their support points.
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

// The sums of all chunks, in their order, divided by the sizes of the groups: (groups, T, L).
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
    // Enough cells to keep any number of threads busy; the order of additions depends only on V and L.
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

}  // namespace

void bind_grid(nb::module_& m) {
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
}
