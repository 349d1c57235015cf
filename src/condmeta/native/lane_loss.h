// Slope and value of a loss at one point for every lane; formulas in loss.h and losses.py.
//
// Slopes are divided by lam, as the recursion uses them. A residual that is NaN has slope 0 for a
// piecewise linear loss (no comparison holds) and NaN for the others; its value is NaN for all.
#pragma once

#include "exponential.h"
#include "loss.h"

namespace CONDMETA_ISA {

// Inputs of a point's slope for one vector of lanes. Step losses use `zone`, `high`, `low`.
struct LaneSlope {
    vec by_lam;     // 1 / lam
    vec zone;       // |e| up to which the slope is 0
    vec high, low;  // slopes over lam
    vec limit;      // beyond this slope the pass diverges
};

template <Kind kind>
INLINE vec lane_slope(const Loss& loss, vec e, double label, const LaneSlope& at) {
    if (kind == STEP) return (vec)((vec_bits)(size_of(e) > at.zone) & (vec_bits)(e > 0.0 ? at.high : at.low));
    if (kind == CURVED) {
        const double low = low_at(loss, label), high = high_at(loss, label);
        vec size = size_of(e) - loss.dead_zone;
        size = (size < 0.0 ? vec{} : size) * (1.0 / loss.curvature);
        vec s = (vec)((vec_bits)size | ((vec_bits)e & ~ALL_BUT_SIGN));
        s = s < low ? low + vec{} : s;
        s = s > high ? high + vec{} : s;
        s = size_of(s) <= at.limit ? s : __builtin_nan("") + vec{};
        return s * at.by_lam;
    }
    return -label * at.by_lam / (1.0 + exponential(label * e));
}

// e = z - y, or z itself for the logistic loss.
template <Kind kind>
INLINE vec lane_value(const Loss& loss, vec e, double label) {
    if (kind == LOGISTIC) return softplus_lanes(-label * e);
    const double low = low_at(loss, label), high = high_at(loss, label);
    vec size = size_of(e) - loss.dead_zone;
    size = size < 0.0 ? vec{} : size;
    if (kind == STEP) return size * (e > 0.0 ? high + vec{} : -low + vec{});
    // size a - curvature a^2 / 2 at the largest slope a = |s| that the box allows
    const vec most = e > 0.0 ? high + vec{} : -low + vec{};
    vec a = size * (1.0 / loss.curvature);
    a = a > most ? most : a;
    return a * size - loss.curvature * a * a / 2;
}

}  // namespace CONDMETA_ISA
