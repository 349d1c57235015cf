// Bindings of the inner algorithms, and of predictions.
#include <limits>

#include "arrays.h"

namespace {

int64_t online_tasks(In2 theta, In2 X, In1 y, InOffsets offsets, double lam, Row loss, Out2 slope_sum, Out2 path_sum,
                     Out1 radius, OutCounts count, int64_t n_jobs) {
    const Tasks tasks = check_tasks(X, y, offsets, lam, loss);
    const size_t T = size_t(tasks.count), d = size_t(tasks.d);
    need(theta, "theta", T, d);
    need(slope_sum, "slope_sum", T, d);
    need(path_sum, "path_sum", T, d);
    need(radius, "radius", T);
    need_counts(count, T);
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

nb::tuple batch_tasks(In2 theta, In2 X, In1 y, InOffsets offsets, double lam, Row loss, double tol, int64_t n_jobs,
                      In1 weight) {
    const Tasks tasks = check_tasks(X, y, offsets, lam, loss);
    const size_t T = size_t(tasks.count), d = size_t(tasks.d);
    need(theta, "theta", T, d);
    auto coef = new_array<2>({T, d}), gradient = new_array<2>({T, d});
    auto gap = new_array<1>({T}), slopes = new_array<1>({X.shape(0)});
    const BatchArrays out{theta.data(), optional(weight, "weight", X.shape(0)), tol, coef.data(), gradient.data(), gap.data(), slopes.data()};
    {
        nb::gil_scoped_release unlocked;
        for_tasks(tasks.count, n_jobs, kernels().batch_space(tasks.n_max, tasks.d, tasks.loss.dead_zone > 0),
                  [&](int64_t begin, int64_t end, double* space) { kernels().batch(tasks, out, begin, end, space); });
    }
    return nb::make_tuple(coef, gradient, gap, slopes);
}

void coin_tasks(In2 theta, In2 X, In1 y, InOffsets offsets, double radius, Out2 slope_sum, Out2 path_sum, Out1 wealth,
                OutCounts count, int64_t n_jobs) {
    const Tasks tasks = check_bets(X, y, offsets);
    const size_t T = size_t(tasks.count), d = size_t(tasks.d);
    need(theta, "theta", T, d);
    need(slope_sum, "slope_sum", T, d);
    need(path_sum, "path_sum", T, d);
    need(wealth, "wealth", T);
    need_counts(count, T);
    const CoinTasks state{theta.data(), radius, slope_sum.data(), path_sum.data(), wealth.data(), count.data()};
    nb::gil_scoped_release unlocked;
    for_tasks(tasks.count, n_jobs, kernels().coin_space(tasks.n_max, tasks.d),
              [&](int64_t begin, int64_t end, double* space) { kernels().coin(tasks, state, begin, end, space); });
}

// The sum (d, d) of work(begin, end, part, space) over chunks of T tasks, in order, for any number of threads.
template <class Work>
auto summed(size_t T, size_t d, int64_t n_jobs, int64_t doubles, Work work) {
    const int64_t chunk = 256, chunks = pieces(int64_t(T), chunk), size = int64_t(d * d);
    auto total = new_array<2>({d, d}), partial = new_array<2>({size_t(chunks), d * d});
    for_cells(chunks, 1, n_jobs, doubles, [&](int64_t begin, int64_t end, double* space) {
        for (int64_t at = begin; at < end; ++at)
            work(at * chunk, std::min((at + 1) * chunk, int64_t(T)), partial.data() + at * size, space);
    });
    for (int64_t at = 0; at < chunks; ++at)
        for (int64_t i = 0; i < size; ++i) total.data()[i] += partial.data()[at * size + i];
    return total;
}

ScatterTasks scatter_tasks(In2 triangles, In2 mean, In1 mass, InOffsets at, In1 centre, In1 by, bool intercept) {
    const size_t T = mean.shape(0), p = mean.shape(1), m = at.shape(0);
    if (p == 0) throw std::invalid_argument("'mean' must have a column.");
    need(triangles, "triangles", T, p * (p + 1) / 2);
    need(mass, "mass", m);
    need(centre, "centre", p);
    need(by, "by", p);
    for (size_t i = 0; i < m; ++i)
        if (at.data()[i] < 0 || at.data()[i] >= int64_t(T))
            throw std::invalid_argument("'at' must be positions of tasks.");
    return {triangles.data(), mean.data(), mass.data(), at.data(), centre.data(), by.data(), int64_t(p), intercept};
}

nb::tuple scaled_squares(In2 triangles, In2 mean, In1 mass, InOffsets at, In1 centre, In1 by, bool intercept) {
    const ScatterTasks run = scatter_tasks(triangles, mean, mass, at, centre, by, intercept);
    const size_t m = at.shape(0), p = mean.shape(1), w = intercept ? p : p - 1;
    auto gram = new_array<3>({m, w, w});
    auto moment = new_array<2>({m, w});
    auto square = new_array<1>({m});
    const SquaredArrays out{gram.data(), moment.data(), square.data()};
    for_cells(1, 1, 1, int64_t(p), [&](int64_t, int64_t, double* scratch) {
        kernels().scaled(run, out, 0, int64_t(m), scratch);
    });
    return nb::make_tuple(gram, moment, square);
}

nb::tuple posterior_pass(In3 gram, In2 moment, In1 square, In1 count, In2 theta, In2 factor, In1 s2, int64_t n_jobs,
                         bool correlated, int64_t rounds, double prior_points) {
    const size_t T = theta.shape(0), d = theta.shape(1);
    need(gram, "gram", T, d, d);
    need(moment, "moment", T, d);
    need(square, "square", T);
    need(count, "count", T);
    need(factor, "factor", d, d);
    need(s2, "s2", T);
    auto g = new_array<2>({T, d});
    auto rss = new_array<1>({T}), loglik = new_array<1>({T}), own = new_array<1>({T});
    const PosteriorTasks run{gram.data(),  moment.data(), square.data(), count.data(),
                             theta.data(), factor.data(), s2.data(),     int64_t(d), correlated,
                             rounds,       prior_points};
    const PosteriorArrays out{g.data(), rss.data(), loglik.data(), own.data()};
    const int64_t space = kernels().posterior_space(run.d);
    auto R = summed(T, d, n_jobs, space, [&](int64_t begin, int64_t end, double* part, double* memory) {
        kernels().posterior(run, out, begin, end, part, memory);
    });
    return nb::make_tuple(g, R, rss, loglik, own);
}

nb::tuple scaled_posterior_pass(In2 triangles, In2 mean, In1 mass, InOffsets at, In1 centre, In1 by, bool intercept,
                                In1 count, In2 theta, In2 factor, In1 s2, int64_t n_jobs, bool correlated,
                                int64_t rounds, double prior_points) {
    const ScatterTasks scatter = scatter_tasks(triangles, mean, mass, at, centre, by, intercept);
    const size_t m = at.shape(0), d = intercept ? mean.shape(1) : mean.shape(1) - 1;
    need(count, "count", m);
    need(theta, "theta", m, d);
    need(factor, "factor", d, d);
    need(s2, "s2", m);
    auto g = new_array<2>({m, d});
    auto rss = new_array<1>({m}), loglik = new_array<1>({m}), own = new_array<1>({m});
    const PosteriorTasks run{nullptr,      nullptr,       nullptr,   count.data(), theta.data(), factor.data(),
                             s2.data(),    int64_t(d),    correlated, rounds,      prior_points};
    const PosteriorArrays out{g.data(), rss.data(), loglik.data(), own.data()};
    const int64_t space = kernels().scaled_posterior_space(scatter.p, run.d);
    auto R = summed(m, d, n_jobs, space, [&](int64_t begin, int64_t end, double* part, double* memory) {
        kernels().scaled_posterior(scatter, run, out, begin, end, part, memory);
    });
    return nb::make_tuple(g, R, rss, loglik, own);
}

nb::tuple tree_up(In3 gram, In2 moment, In2 theta, In2 factor, In1 s2, int64_t n_jobs) {
    const size_t n = theta.shape(0), d = theta.shape(1);
    need(gram, "gram", n, d, d);
    need(moment, "moment", n, d);
    need(factor, "factor", d, d);
    need(s2, "s2", n);
    auto messages = new_array<3>({n, d, d});
    auto g = new_array<2>({n, d});
    auto value = new_array<1>({n});
    const TreeUp run{gram.data(), moment.data(),   theta.data(), factor.data(), s2.data(),
                     int64_t(d),  messages.data(), g.data(),     value.data()};
    const int64_t chunk = 256;
    for_cells(pieces(int64_t(n), chunk), 1, n_jobs, kernels().tree_up_space(run.d),
              [&](int64_t begin, int64_t end, double* space) {
                  kernels().tree_up(run, begin * chunk, std::min(end * chunk, int64_t(n)), space);
              });
    return nb::make_tuple(messages, g, value);
}

nb::tuple tree_down(In3 messages, In2 g, In2 mean, In3 covariance, InOffsets parent, int64_t n_jobs) {
    const size_t n = g.shape(0), d = g.shape(1), p = mean.shape(0);
    need(messages, "messages", n, d, d);
    need(mean, "mean", p, d);
    need(covariance, "covariance", p, d, d);
    need(parent, "parent", n);
    for (size_t i = 0; i < n; ++i)
        if (parent.data()[i] < 0 || parent.data()[i] >= int64_t(p))
            throw std::invalid_argument("'parent' must be positions of rows of 'mean'.");
    auto r = new_array<2>({n, d});
    auto trace = new_array<1>({n});
    const TreeDown run{messages.data(), g.data(),   mean.data(), covariance.data(),
                       parent.data(),   int64_t(d), r.data(),    trace.data()};
    auto spread = summed(n, d, n_jobs, kernels().tree_down_space(run.d),
                         [&](int64_t begin, int64_t end, double* part, double* memory) {
                             kernels().tree_down(run, begin, end, part, memory);
                         });
    return nb::make_tuple(r, spread, trace);
}

nb::tuple variational_pass(In2 X, In1 a, In1 b, In1 e, InOffsets offsets, In2 theta, In2 factor, In1 weight,
                           In1 push, double tol, int64_t n_jobs, In1 times) {
    const Tasks tasks = check_bets(X, a, offsets);
    const size_t T = size_t(tasks.count), d = size_t(tasks.d), N = X.shape(0);
    need(b, "b", N);
    need(e, "e", N);
    need(theta, "theta", T, d);
    need(factor, "factor", d, d);
    need(weight, "weight", N);
    need(push, "push", N);
    auto z = new_array<2>({T, d}), g = new_array<2>({T, d});
    auto bound = new_array<1>({T}), new_weight = new_array<1>({N}), new_push = new_array<1>({N});
    auto r = new_array<1>({N}), loss = new_array<1>({N});
    const VariationalTasks run{tasks.X,       a.data(),      b.data(),      e.data(),    tasks.offsets,
                               theta.data(),  factor.data(), weight.data(), push.data(), optional(times, "times", N),
                               tol,           tasks.d,       tasks.n_max};
    const VariationalArrays out{z.data(),          g.data(),        bound.data(), new_weight.data(),
                                new_push.data(), r.data(), loss.data()};
    const int64_t space = kernels().variational_space(run.n_max, run.d);
    auto Q = summed(T, d, n_jobs, space, [&](int64_t begin, int64_t end, double* part, double* own) {
        kernels().variational(run, out, begin, end, part, own);
    });
    return nb::make_tuple(z, g, bound, Q, new_weight, new_push, r, loss);
}

nb::tuple drift_pass(In2 X, In1 y, In1 mass, InOffsets offsets, In1 steps, double rate, In3 gram, In2 e, In2 theta,
                     In2 factor, double s2, int64_t moves, int64_t predicts, int64_t n_jobs) {
    const Tasks tasks = check_bets(X, y, offsets);
    const size_t T = size_t(tasks.count), d = size_t(tasks.d), N = X.shape(0);
    need(mass, "mass", N);
    need(steps, "steps", N);
    need(gram, "gram", T, d, d);
    need(e, "e", T, d);
    need(theta, "theta", T, d);
    need(factor, "factor", d, d);
    auto new_gram = new_array<3>({T, d, d});
    auto new_e = new_array<2>({T, d});
    auto predicted = new_array<1>({predicts ? N : 0});
    std::copy_n(gram.data(), T * d * d, new_gram.data());
    std::copy_n(e.data(), T * d, new_e.data());
    const DriftTasks run{tasks.X,      tasks.y,       mass.data(), tasks.offsets, steps.data(),
                         theta.data(), factor.data(), s2,          rate,          moves != 0, tasks.d};
    const DriftArrays out{new_gram.data(), new_e.data(), predicts ? predicted.data() : nullptr};
    for_cells(tasks.count, 64, n_jobs, kernels().drift_space(tasks.d),
              [&](int64_t begin, int64_t end, double* space) { kernels().drift(run, out, begin, end, space); });
    return nb::make_tuple(new_gram, new_e, predicted);
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

}  // namespace

void bind_inner(nb::module_& m) {
    m.def("online_tasks", &online_tasks, nb::arg("theta").noconvert(), nb::arg("X").noconvert(),
          nb::arg("y").noconvert(), nb::arg("offsets").noconvert(), nb::arg("lam"), nb::arg("loss"),
          nb::arg("slope_sum").noconvert(), nb::arg("path_sum").noconvert(), nb::arg("radius").noconvert(),
          nb::arg("count").noconvert(), nb::arg("n_jobs"));
    m.def("batch_tasks", &batch_tasks, nb::arg("theta").noconvert(), nb::arg("X").noconvert(),
          nb::arg("y").noconvert(), nb::arg("offsets").noconvert(), nb::arg("lam"), nb::arg("loss"), nb::arg("tol"),
          nb::arg("n_jobs"), nb::arg("weight").noconvert().none() = nb::none());
    m.def("coin_tasks", &coin_tasks, nb::arg("theta").noconvert(), nb::arg("X").noconvert(), nb::arg("y").noconvert(),
          nb::arg("offsets").noconvert(), nb::arg("radius"), nb::arg("slope_sum").noconvert(),
          nb::arg("path_sum").noconvert(), nb::arg("wealth").noconvert(), nb::arg("count").noconvert(),
          nb::arg("n_jobs"));
    m.def("scaled_squares", &scaled_squares, nb::arg("triangles").noconvert(), nb::arg("mean").noconvert(),
          nb::arg("mass").noconvert(), nb::arg("at").noconvert(), nb::arg("centre").noconvert(),
          nb::arg("by").noconvert(), nb::arg("intercept"));
    m.def("posterior_pass", &posterior_pass, nb::arg("gram").noconvert(), nb::arg("moment").noconvert(),
          nb::arg("square").noconvert(), nb::arg("count").noconvert(), nb::arg("theta").noconvert(),
          nb::arg("factor").noconvert(), nb::arg("s2").noconvert(), nb::arg("n_jobs"), nb::arg("correlated") = true,
          nb::arg("rounds") = 0, nb::arg("prior_points") = 0.0);
    m.def("scaled_posterior_pass", &scaled_posterior_pass, nb::arg("triangles").noconvert(),
          nb::arg("mean").noconvert(), nb::arg("mass").noconvert(), nb::arg("at").noconvert(),
          nb::arg("centre").noconvert(), nb::arg("by").noconvert(), nb::arg("intercept"), nb::arg("count").noconvert(),
          nb::arg("theta").noconvert(), nb::arg("factor").noconvert(), nb::arg("s2").noconvert(), nb::arg("n_jobs"),
          nb::arg("correlated") = true, nb::arg("rounds") = 0, nb::arg("prior_points") = 0.0);
    m.def("tree_up", &tree_up, nb::arg("gram").noconvert(), nb::arg("moment").noconvert(),
          nb::arg("theta").noconvert(), nb::arg("factor").noconvert(), nb::arg("s2").noconvert(), nb::arg("n_jobs"));
    m.def("tree_down", &tree_down, nb::arg("messages").noconvert(), nb::arg("g").noconvert(),
          nb::arg("mean").noconvert(), nb::arg("covariance").noconvert(), nb::arg("parent").noconvert(),
          nb::arg("n_jobs"));
    m.def("variational_pass", &variational_pass, nb::arg("X").noconvert(), nb::arg("a").noconvert(),
          nb::arg("b").noconvert(), nb::arg("e").noconvert(), nb::arg("offsets").noconvert(), nb::arg("theta").noconvert(), nb::arg("factor").noconvert(),
          nb::arg("weight").noconvert(), nb::arg("push").noconvert(), nb::arg("tol"), nb::arg("n_jobs"),
          nb::arg("times").noconvert().none() = nb::none());
    m.def("drift_pass", &drift_pass, nb::arg("X").noconvert(), nb::arg("y").noconvert(), nb::arg("mass").noconvert(),
          nb::arg("offsets").noconvert(), nb::arg("steps").noconvert(), nb::arg("rate"), nb::arg("gram").noconvert(),
          nb::arg("e").noconvert(), nb::arg("theta").noconvert(), nb::arg("factor").noconvert(), nb::arg("s2"),
          nb::arg("moves"), nb::arg("predicts"), nb::arg("n_jobs"));
    m.def("row_scores", &row_scores, nb::arg("X").noconvert(), nb::arg("weights").noconvert(),
          nb::arg("codes").noconvert(), nb::arg("n_jobs"));
}
