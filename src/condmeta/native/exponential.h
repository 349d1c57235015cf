// exp and log(1 + exp) of every lane, to a few units in the last place. NaN stays NaN.
#pragma once

#include "columns.h"

namespace CONDMETA_ISA {

// x = k log 2 + r with |r| <= log(2) / 2; exp(r) by its series to r^13, in pairs: each slope of a pass depends
// on the one before, so the chain is kept short. Beyond +-708 the values at +-708.
INLINE vec exponential(vec x) {
    constexpr double SHIFT = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to an integer
    x = x > 708.0 ? 708.0 + vec{} : x;
    x = x < -708.0 ? -708.0 + vec{} : x;
    const vec shifted = x * 1.4426950408889634 + SHIFT;
    const vec k = shifted - SHIFT;
    const vec r = (x - k * 0.6931471803691238) - k * 1.9082149292705877e-10;
    const vec r2 = r * r, r4 = r2 * r2;
    const vec a = (1.0 + r) + r2 * (0.5 + r * (1.0 / 6));
    const vec b = (1.0 / 24 + r * (1.0 / 120)) + r2 * (1.0 / 720 + r * (1.0 / 5040));
    const vec c = (1.0 / 40320 + r * (1.0 / 362880)) + r2 * (1.0 / 3628800 + r * (1.0 / 39916800));
    const vec d = 1.0 / 479001600 + r * (1.0 / 6227020800);
    const vec sum = (a + r4 * b) + r4 * r4 * (c + r4 * d);
    // k is in the low bits of `shifted`; the exponent of 2^k is k + 1023.
    return sum * (vec)(((vec_bits)shifted + 1023) << 52);
}

// log(1 + u) for 0 <= u <= 1: 2 atanh(f) = 2 f (1 + f^2/3 + f^4/5 + ...), f = u / (2 + u) <= 1/3.
INLINE vec log_one_plus(vec u) {
    const vec f = u / (2.0 + u), square = f * f;
    vec sum = 1.0 / 37 + vec{};
    for (int odd = 35; odd >= 1; odd -= 2) sum = sum * square + 1.0 / odd;
    return 2.0 * f * sum;
}

// log(1 + exp(m)) without overflow.
INLINE vec softplus_lanes(vec m) {
    return (m < 0.0 ? vec{} : m) + log_one_plus(exponential(-size_of(m)));
}

}  // namespace CONDMETA_ISA
