// Coin betting: the pass over one task's points, and the map with entries that bet over tasks. Formulas of
// inner/coin.py and meta/coin.py:
//
//     w_i = theta - A g / (R i),   A -= s_i <x_i, w_i - theta> / R,   g += s_i x_i,   s_i = sign(<x_i, w_i> - y_i)
//     q = phi1 g^T / n,  L = max(L, |q|),  G += |q|,  C -= q,  Q = max(Q - q W, 0),
//     W = tanh(C / (G + L)) (eps + Q / L)       entry by entry, (k+1, d)
#pragma once

#include "rows.h"
#include "sgd.h"

namespace CONDMETA_ISA {

// tanh for |x| <= 1, to a few units in the last place: the ninth convergent of
// x / (1 + x^2 / (3 + x^2 / (5 + ...))); its numerators and denominators satisfy
// p_n = (2n - 1) p_{n-1} + x^2 p_{n-2}.
INLINE vec tanh_of_fraction(vec x) {
    const vec square = x * x;
    vec a = x, b = 1.0 + vec{}, a_before = {}, b_before = 1.0 + vec{};
    for (int odd = 3; odd <= 19; odd += 2) {
        const vec a_next = double(odd) * a + square * a_before, b_next = double(odd) * b + square * b_before;
        a_before = a, b_before = b;
        a = a_next, b = b_next;
    }
    return a / b;
}

struct Bets {
    const double* theta;  // (dp,)
    double radius;
    double *g, *path;  // (dp,), path null if not needed
    double wealth;
    double residual;  // grows by |<x_i, theta> - y_i|
};

// Bets on the points; `count` points came before.
INLINE void run_bets(Bets& bets, const Rows& rows, const double* y, int64_t count) {
    const int64_t dp = rows.dp;
    const double by_radius = bets.radius > 0 ? 1.0 / bets.radius : 0.0;
    const double size = __builtin_sqrt(dot(bets.theta, bets.theta, dp));
    for (int64_t i = 0; i < rows.n; ++i) {
        const double* x = rows.row(i);
        const double start = dot(x, bets.theta, dp), norm = __builtin_sqrt(dot(x, x, dp));
        const double share = bets.wealth * by_radius / double(count + i + 1);
        const double move = -share * dot(x, bets.g, dp);
        const double e = start + move - y[i];
        const double tie = TIE * (size_of(y[i]) + norm * (size + bets.wealth));
        const double cut = norm > bets.radius ? bets.radius / norm : 1.0;
        const double bet = step_slope(e, tie, -cut, cut);
        for (int64_t j = 0; j < dp; j += W) {
            const vec g = load(bets.g + j);
            if (bets.path) store(bets.path + j, load(bets.path + j) + share * g);
            store(bets.g + j, g + bet * load(x + j));
        }
        bets.wealth -= bet * move * by_radius;
        bets.residual += size_of(start - y[i]);
    }
}

struct CoinTaskSpace {
    double *theta, *g, *path, *buffer;

    CoinTaskSpace(Space& space, int64_t n_max, int64_t d) {
        double** wide[] = {&theta, &g, &path};
        for (double** array : wide) *array = space.take(padded(d));
        buffer = space.take(row_buffer(n_max, d));
    }

    void clear_all(int64_t dp) const {
        double* wide[] = {theta, g, path};
        for (double* array : wide) clear(array, dp);
    }
};

static void coin_range(const Tasks& tasks, const CoinTasks& state, int64_t begin, int64_t end, double* memory) {
    Space space{memory};
    const int64_t d = tasks.d;
    const CoinTaskSpace at(space, tasks.n_max, d);
    at.clear_all(padded(d));
    for (int64_t t = begin; t < end; ++t) {
        const int64_t lo = tasks.offsets[t], n = tasks.offsets[t + 1] - lo;
        copy(at.theta, state.theta + t * d, d);
        copy(at.g, state.slope_sum + t * d, d);
        copy(at.path, state.path_sum + t * d, d);
        Bets bets{at.theta, state.radius, at.g, at.path, state.wealth[t], 0.0};
        run_bets(bets, make_rows(tasks.X + lo * d, n, d, at.buffer), tasks.y + lo, state.count[t]);
        copy(state.slope_sum + t * d, at.g, d);
        copy(state.path_sum + t * d, at.path, d);
        state.wealth[t] = bets.wealth;
        state.count[t] += n;
    }
}

static int64_t coin_range_space(int64_t n_max, int64_t d) {
    Space space{nullptr};
    CoinTaskSpace(space, n_max, d);
    return space.used;
}

constexpr int COIN_MAPS = 6;  // most, size, drift, reward, W, weighted_sum

struct CoinSpace {
    double* maps[COIN_MAPS];
    double* phi;

    CoinSpace(Space& space, int64_t d, int64_t k1) {
        for (double*& map : maps) map = space.take(k1 * padded(d));
        phi = space.take(k1);
    }
};

// theta = sum_j phi_j W_j, and weighted_sum += t W in the same loop.
INLINE void coin_theta(const CoinSpace& at, int64_t k1, int64_t dp, double t, double* theta) {
    clear(theta, dp);
    for (int64_t r = 0; r < k1; ++r) {
        const double *row = at.maps[4] + r * dp, phi = at.phi[r];
        double* sum = at.maps[5] + r * dp;
        for (int64_t j = 0; j < dp; j += W) {
            const vec w = load(row + j);
            store(sum + j, load(sum + j) + t * w);
            store(theta + j, load(theta + j) + phi * w);
        }
    }
}

// Every entry of the map settles its bet on q = phi_r g_j and makes the next one.
INLINE void coin_bets(const CoinSpace& at, int64_t k1, int64_t dp, const double* g, double eps) {
    for (int64_t r = 0; r < k1; ++r) {
        const double phi = at.phi[r];
        for (int64_t j = 0; j < dp; j += W) {
            const int64_t here = r * dp + j;
            const vec q = phi * load(g + j), length = size_of(q), w = load(at.maps[4] + here);
            const vec most = larger(load(at.maps[0] + here), length);
            const vec size = load(at.maps[1] + here) + length, drift = load(at.maps[2] + here) - q;
            const vec reward = larger(load(at.maps[3] + here) - q * w, vec{});
            store(at.maps[0] + here, most);
            store(at.maps[1] + here, size);
            store(at.maps[2] + here, drift);
            store(at.maps[3] + here, reward);
            store(at.maps[4] + here, tanh_of_fraction(drift / (size + most)) * (eps + reward / most));
        }
    }
}

static void coin_pass(const Tasks& tasks, const CoinMap& state, double* memory) {
    Space space{memory};
    const int64_t d = tasks.d, dp = padded(d), k1 = state.k + 1;
    const CoinSpace at(space, d, k1);
    const CoinTaskSpace task(space, tasks.n_max, d);
    for (int m = 0; m < COIN_MAPS; ++m) {
        fill(at.maps[m], m == 0 ? 1.0 : 0.0, k1 * dp);  // no 0 / 0 in the padding
        copy_map(at.maps[m], dp, state.maps[m], d, k1, d);
    }
    task.clear_all(dp);
    const double R = state.scales[0], S = state.scales[1], reach = state.scales[2] * state.scales[3];
    const double eps = state.scales[2] > 0 ? S / reach : 0.0;
    for (int64_t t = next_task(tasks, 0); t < tasks.count; t = next_task(tasks, t + 1)) {
        const int64_t lo = tasks.offsets[t], n = tasks.offsets[t + 1] - lo;
        const double seen = state.phi_sum[state.k], share = 1.0 / double(n);
        const double stake = !(R > 0) ? 0.0 : seen > 0 ? *state.residual / (seen * R) : S / R;
        copy(at.phi, state.Phi + t * state.k, state.k);
        at.phi[state.k] = 1.0;
        coin_theta(at, k1, dp, seen + 1, task.theta);
        clear(task.g, dp);
        Bets bets{task.theta, R, task.g, nullptr, stake, 0.0};
        run_bets(bets, make_rows(tasks.X + lo * d, n, d, task.buffer), tasks.y + lo, 0);
        *state.residual += bets.residual * share;
        for (int64_t r = 0; r < k1; ++r) state.phi_sum[r] += at.phi[r];
        for (int64_t j = 0; j < dp; j += W) store(task.g + j, load(task.g + j) * share);
        coin_bets(at, k1, dp, task.g, eps);
    }
    for (int m = 0; m < COIN_MAPS; ++m) copy_map(state.maps[m], d, at.maps[m], dp, k1, d);
}

static int64_t coin_pass_space(int64_t n_max, int64_t d, int64_t k) {
    Space space{nullptr};
    CoinSpace(space, d, k + 1);
    return space.used + coin_range_space(n_max, d);
}

}  // namespace CONDMETA_ISA
