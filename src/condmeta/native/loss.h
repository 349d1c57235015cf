// Slope, value and conjugate of a loss (the row of losses.py), for one point.
//
//     slope   a = the maximiser; 0 at a kink, and within `tie` of it
//     value   l = a e - curvature a^2/2 - dead_zone |a|,   e = z - y
//     conj    l*(a) = a y + curvature a^2/2 + dead_zone |a|,   a in [low, high]
//
// Logistic: a = -y / (1 + exp(y z)), l = log(1 + exp(-y z)), l* = p log p + (1-p) log(1-p), p = -a y.
#pragma once

#include "kernels.h"
#include "vec.h"

namespace CONDMETA_ISA {

enum Kind { STEP, CURVED, LOGISTIC };

INLINE Kind kind_of(const Loss& loss) {
    return loss.curvature < 0 ? LOGISTIC : loss.curvature > 0 ? CURVED : STEP;
}

INLINE bool is_unbounded(const Loss& loss) {
    return !(larger(-loss.low, loss.high) < __builtin_inf());
}

INLINE double low_at(const Loss& loss, double y) {
    return loss.is_signed && !(y > 0) ? -loss.high : loss.low;
}
INLINE double high_at(const Loss& loss, double y) {
    return loss.is_signed && !(y > 0) ? -loss.low : loss.high;
}

INLINE double step_slope(double e, double zone, double low, double high) {
    return size_of(e) > zone ? (e > 0 ? high : low) : 0.0;
}

INLINE double curved_slope(const Loss& loss, double e, double low, double high) {
    const double excess = larger(size_of(e) - loss.dead_zone, 0.0) / loss.curvature;
    return smaller(larger(__builtin_copysign(excess, e), low), high);
}

INLINE double logistic_slope(double z, double y) { return -y / (1.0 + __builtin_exp(y * z)); }

template <Kind kind>
INLINE double slope(const Loss& loss, double z, double y) {
    if (kind == LOGISTIC) return logistic_slope(z, y);
    if (kind == STEP) return step_slope(z - y, loss.dead_zone, low_at(loss, y), high_at(loss, y));
    return curved_slope(loss, z - y, low_at(loss, y), high_at(loss, y));
}

// log(1 + exp(m)) without overflow.
INLINE double softplus(double m) {
    return larger(m, 0.0) + __builtin_log1p(__builtin_exp(-size_of(m)));
}

template <Kind kind>
INLINE double value(const Loss& loss, double z, double y) {
    if (kind == LOGISTIC) return softplus(-y * z);
    const double a = slope<kind>(loss, z, y);
    return a * (z - y) - loss.curvature * a * a / 2 - loss.dead_zone * size_of(a);
}

// Clips a slope that division moved out of the domain of the conjugate; NaN stays NaN.
template <Kind kind>
INLINE double within(const Loss& loss, double a, double y) {
    const double low = kind == LOGISTIC ? smaller(-y, 0.0) : low_at(loss, y);
    const double high = kind == LOGISTIC ? larger(-y, 0.0) : high_at(loss, y);
    return a < low ? low : a > high ? high : a;
}

INLINE double x_log_x(double x) { return x > 0 ? x * __builtin_log(x) : 0.0; }

template <Kind kind>
INLINE double conjugate(const Loss& loss, double a, double y) {
    if (kind == LOGISTIC) {
        const double p = -a * y;
        return p >= 0 && p <= 1 ? x_log_x(p) + (1 - p) * __builtin_log1p(p < 1 ? -p : 0.0) : __builtin_inf();
    }
    const bool inside = a >= low_at(loss, y) && a <= high_at(loss, y);
    const double at = a * y + loss.curvature * a * a / 2 + loss.dead_zone * size_of(a);
    return inside ? at : __builtin_inf();
}

}  // namespace CONDMETA_ISA
