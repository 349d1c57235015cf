// The online pass over one task's points, in blocks of four.
//
//     z_i = <x_i, theta> - <x_i, u_{i-1}> h_i,   h_i = 1 / (lam max(i-1, 1)),   u_i = u_{i-1} + s_i x_i
//     path = sum_i u_{i-1} / max(i-1, 1)
//
// Inside a block, with u at its start, <x_i, u_{i-1}> = <x_i, u> + sum_{j<i} s_j <x_i, x_j>: the four dot
// products with u are computed at once, and from one slope to the next there is only a multiply-add and a
// selection. theta, u, path (dp,); `with_path` = false does not change path.
#pragma once

#include "loss.h"
#include "points.h"

namespace CONDMETA_ISA {

constexpr double TIE = 1e-10;
constexpr double HUGE_FACTOR = 1e6;

struct Pass {
    const double* theta;
    double *u, *path;
    double lam;
    Loss loss;
    int64_t count;   // points seen before these
    double radius;   // largest norm, these points included
    double size;     // ||theta||
    double limit;    // beyond this slope the pass diverges
};

// Slopes of two points by arithmetic and masks, without branches, because their signs cannot be predicted.
// For the logistic loss only the slope of `lane` is computed.
template <Kind kind>
INLINE pair pair_slopes(const Loss& loss, pair e, pair label, pair zone, pair low, pair high, int lane) {
    if (kind == STEP) return (pair)((pair_bits)(size_of(e) > zone) & (pair_bits)(e > 0.0 ? high : low));
    if (kind == CURVED) {
        const pair excess = larger(size_of(e) - loss.dead_zone, pair{}) / loss.curvature;
        return smaller(larger(e > 0.0 ? excess : -excess, low), high);
    }
    const double s = logistic_slope(e[lane], label[lane]);
    return pair{s, s};
}

// The four slopes of a block from e, the residuals (predictions for the logistic loss) at u. Each slope
// changes the later ones through the products g of the points, scaled by h.
template <Kind kind>
INLINE quad block_slopes(const Loss& loss, quad e, quad label, quad zone, const double* g, quad h) {
    quad low = loss.low + quad{}, high = loss.high + quad{};
    if (loss.is_signed) {
        const quad mirrored = -high;
        high = label > 0.0 ? high : -low;
        low = label > 0.0 ? low : mirrored;
    }
    const quad by_a = load4(g) * h, rest = load4(g + 4);
    const pair by_b = first_pair(rest) * second_pair(h), by_c = second_pair(rest) * second_pair(h);
    const pair label1 = first_pair(label), zone1 = first_pair(zone), low1 = first_pair(low), high1 = first_pair(high);
    const pair label2 = second_pair(label), zone2 = second_pair(zone), low2 = second_pair(low),
               high2 = second_pair(high);
    pair e1 = first_pair(e), e2 = second_pair(e);
    const pair a = both_first(pair_slopes<kind>(loss, e1, label1, zone1, low1, high1, 0));
    e1 -= a * first_pair(by_a);
    e2 -= a * second_pair(by_a);
    const pair b = both_second(pair_slopes<kind>(loss, e1, label1, zone1, low1, high1, 1));
    e2 -= b * by_b;
    const pair c = both_first(pair_slopes<kind>(loss, e2, label2, zone2, low2, high2, 0));
    e2 -= c * by_c;
    const pair d = pair_slopes<kind>(loss, e2, label2, zone2, low2, high2, 1);
    return quad{a[0], b[0], c[0], d[1]};
}

// Adds the block to u, and the values of u in the block to path; `left` points remain, including this block.
template <int NV, bool with_path>
INLINE void add_block(const Pass& pass, const double* x, int64_t dp, quad s, quad share, int64_t left) {
    const int nv = NV ? NV : int(dp / W);
    double *u = pass.u, *path = pass.path;
    double c3 = 0.0, c2 = 0.0, c1 = 0.0, c0 = 0.0;  // weights of x_2, x_1, x_0 and u in path
    if (with_path) {
        c3 = left > 3 ? share[3] : 0.0;
        c2 = c3 + (left > 2 ? share[2] : 0.0);
        c1 = c2 + (left > 1 ? share[1] : 0.0);
        c0 = c1 + share[0];
    }
    for (int j = 0; j < nv; ++j) {
        const vec x0 = load(x + j * W), x1 = load(x + dp + j * W);
        const vec x2 = load(x + 2 * dp + j * W), x3 = load(x + 3 * dp + j * W);
        const vec v = load(u + j * W);
        if (with_path) {
            double* at = path + j * W;
            store(at, load(at) + c0 * v + (s[0] * c1) * x0 + (s[1] * c2) * x1 + (s[2] * c3) * x2);
        }
        store(u + j * W, v + s[0] * x0 + s[1] * x1 + s[2] * x2 + s[3] * x3);
    }
}

// <x_i, theta> and <x_i, u> of four points.
template <int NV>
INLINE void block_dots(const Pass& pass, const double* x, int64_t dp, quad& start, quad& moved) {
    const int nv = NV ? NV : int(dp / W);
    vec t0 = {}, t1 = {}, t2 = {}, t3 = {}, d0 = {}, d1 = {}, d2 = {}, d3 = {};
    for (int j = 0; j < nv; ++j) {
        const vec x0 = load(x + j * W), x1 = load(x + dp + j * W);
        const vec x2 = load(x + 2 * dp + j * W), x3 = load(x + 3 * dp + j * W);
        const vec theta = load(pass.theta + j * W), u = load(pass.u + j * W);
        t0 += x0 * theta, t1 += x1 * theta, t2 += x2 * theta, t3 += x3 * theta;
        d0 += x0 * u, d1 += x1 * u, d2 += x2 * u, d3 += x3 * u;
    }
    start = sum4(t0, t1, t2, t3);
    moved = sum4(d0, d1, d2, d3);
}

// Runs the prepared points, and prepares the points of `next` in the same loop. Returns whether the pass
// stayed finite.
template <Kind kind, int NV, bool with_path>
INLINE bool run_points(const Pass& pass, const Points& points, Points& next) {
    const Rows& rows = points.rows;
    const double reach = double(pass.count + rows.n) * pass.radius;
    const double by_lam = 1.0 / pass.lam;
    double first = double(pass.count);
    bool finite = true;
    for (int64_t i = 0; i < rows.n4; i += 4, first += 4) {
        const double* x = rows.block(i);
        const quad label = load4(points.labels(i));
        quad before = {larger(first, 1.0), first + 1, first + 2, first + 3};
        const quad share = 1.0 / before, h = share * by_lam;
        quad zone = size_of(label) + load4(points.norm + i) * (pass.size + reach * h);
        zone = pass.loss.dead_zone + TIE * zone;
        quad start, moved;
        block_dots<NV>(pass, x, rows.dp, start, moved);
        const quad e = (kind == LOGISTIC ? start : start - label) - moved * h;
        asm volatile("" : : : "memory");  // rows are read again below rather than spilled and reloaded
        const quad s = block_slopes<kind>(pass.loss, e, label, zone, points.products + 2 * i, h);
        if (kind == CURVED && !(largest(size_of(s)) <= pass.limit)) {
            finite = false;
            break;
        }
        add_block<NV, with_path>(pass, x, rows.dp, s, share, rows.n - i);
        if (i < next.rows.n4) prepare_block<NV>(next, i);
    }
    prepare_from<NV>(next, finite ? rows.n4 : 0);
    return finite && all_finite(pass.u, rows.dp);
}

template <Kind kind, bool with_path>
static bool online_pass(const Pass& pass, const Points& points, Points& next) {
#define CONDMETA_CASE(m) \
    case m:              \
        return run_points<kind, m * 4 / W, with_path>(pass, points, next);
    switch (points.rows.dp / 4) {  // common widths, d <= 32, are known at compile time
        CONDMETA_CASE(1)
        CONDMETA_CASE(2)
        CONDMETA_CASE(3)
        CONDMETA_CASE(4)
        CONDMETA_CASE(5)
        CONDMETA_CASE(6)
        CONDMETA_CASE(7)
        CONDMETA_CASE(8)
    }
#undef CONDMETA_CASE
    return run_points<kind, 0, with_path>(pass, points, next);
}

INLINE double slope_limit(const Loss& loss, const double* theta, const Points& points) {
    if (!is_unbounded(loss)) return __builtin_inf();
    quad most = {};
    for (int64_t i = 0; i < points.rows.n4; i += 4) {
        const quad start = dots_of_block(points.rows.block(i), theta, points.rows.dp);
        most = larger(size_of(load4(points.labels(i))) + size_of(start), most);
    }
    return HUGE_FACTOR * largest(most);
}

// `radius` is the largest norm of the `count` points before; on output, these points are included.
template <bool with_path>
INLINE bool online_task(const double* theta, const Points& points, Points& next, double lam, const Loss& loss,
                        double* u, double* path, double* radius, int64_t count) {
    *radius = larger(*radius, points.radius());
    const double size = __builtin_sqrt(dot(theta, theta, points.rows.dp));
    const Pass pass{theta, u, path, lam, loss, count, *radius, size, slope_limit(loss, theta, points)};
    switch (kind_of(loss)) {
        case STEP: return online_pass<STEP, with_path>(pass, points, next);
        case CURVED: return online_pass<CURVED, with_path>(pass, points, next);
        default: return online_pass<LOGISTIC, with_path>(pass, points, next);
    }
}

}  // namespace CONDMETA_ISA
