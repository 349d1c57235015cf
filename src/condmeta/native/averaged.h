// The logistic loss averaged over a normal (inner/averaged.py), of every lane.
#pragma once

#include "exponential.h"

namespace CONDMETA_ISA {

// s(f) = sum_k SHARES[k] Phi(RATES[k] f), to 3e-9.
constexpr int TERMS = 8;
constexpr double SHARES[TERMS] = {0.00324634, 0.05151748, 0.19507791, 0.31556982,
                                  0.27414958, 0.13107688, 0.02791242, 0.00144957};
constexpr double RATES[TERMS] = {1.36534081, 1.05952397, 0.83079131, 0.65073217,
                                 0.50813543, 0.39631335, 0.30890425, 0.23821262};

// (1 + 2 x) exp(x^2) erfc(x) for x >= 0 as a polynomial in u = (x - MIDDLE) / (x + MIDDLE), lowest power first:
// interpolated at Chebyshev's points, accurate to 1e-11.
constexpr double MIDDLE = 3.75;
constexpr double TAIL[16] = {
    1.2375126308071418, -0.14024059858572105, 0.0035854194177458026, 0.08227673851211068,
    -0.10880401319706744, 0.09230432073598993, -0.058692726660891065, 0.02836228023388543,
    -0.009749269442857589, 0.0017556187167073745, 0.00029963462698567866, -0.00029015332663107074,
    4.4252499520780475e-05, 2.2415605599235278e-05, -6.3445296518693794e-06, -1.0383446351625025e-06,
};

// Four powers at a time: they do not depend on each other.
INLINE vec tail_at(vec u) {
    const vec u2 = u * u, u4 = u2 * u2;
    vec total = {};
    for (int i = 12; i >= 0; i -= 4)
        total = total * u4 + ((TAIL[i] + TAIL[i + 1] * u) + u2 * (TAIL[i + 2] + TAIL[i + 3] * u));
    return total;
}

struct Averaged {
    vec loss, slope, curvature;  // E[log(1 + exp(f))], E[s(f)], E[s'(f)]
};

INLINE Averaged averaged_loss(vec mean, vec variance) {
    Averaged out = {vec{}, vec{}, vec{}};
    for (int k = 0; k < TERMS; ++k) {
        const vec spread = root(variance + 1.0 / (RATES[k] * RATES[k])), by = 1.0 / spread, t = mean * by;
        const vec bell = exponential(-0.5 * t * t), x = size_of(t) * 0.70710678118654752440;
        const vec share = 1.0 / ((x + MIDDLE) * (1.0 + 2.0 * x));  // one division for two
        const vec u = (x - MIDDLE) * (1.0 + 2.0 * x) * share;
        const vec tail = 0.5 * bell * tail_at(u) * (x + MIDDLE) * share;  // Phi(-|t|)
        const vec below = SHARES[k] * (t > 0.0 ? 1.0 - tail : tail);
        const vec density = (SHARES[k] * 0.39894228040143267794) * bell;
        out.loss += mean * below + spread * density;
        out.slope += below;
        out.curvature += density * by;
    }
    return out;
}

}  // namespace CONDMETA_ISA
