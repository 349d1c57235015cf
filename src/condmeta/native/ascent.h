// Quasi-Newton ascent in a box, the twin of meta/ascent.py: limited-memory BFGS, by the two-loop recursion.
#pragma once

#include "kernels.h"
#include "products.h"
#include "space.h"

namespace CONDMETA_ISA {

constexpr int64_t MEMORY = 20;          // number of stored steps
constexpr double KEPT = 1e-4;           // least rise of a step, as a share of the rise that the gradient predicts
constexpr double SHORTEST = 1e-12;      // shortest step that is tried
constexpr double STEEP = 0.9;           // share of the slope at its start: a step that ends steeper is lengthened
constexpr double LONGER = 4.0;
constexpr double REACH = 0.8;           // largest share of the way to a lower bound in one step,
constexpr double NEAR = 1e-3;           // unless the bound is as near as this
constexpr double LEAST_CURVED = 1e-10;  // least s^T y / y^T y of a stored pair

// The last pairs of steps s and decreases y of the gradient, p numbers each; a new pair replaces the oldest.
struct AscentMemory {
    double *S, *Y, *by, *part;  // (MEMORY, p), and 1 / s^T y and a scratch (MEMORY,)
    int64_t p, added = 0;
    double scale = 1.0;

    AscentMemory(Space& space, int64_t p) : p(p) {
        S = space.take(MEMORY * p);
        Y = space.take(MEMORY * p);
        by = space.take(MEMORY);
        part = space.take(MEMORY);
    }

    // Stores a pair, unless it has no curvature.
    void add(const double* from, const double* to, const double* slope_from, const double* slope_to) {
        double *s = S + added % MEMORY * p, *y = Y + added % MEMORY * p;
        for (int64_t i = 0; i < p; ++i) {
            s[i] = to[i] - from[i];
            y[i] = slope_from[i] - slope_to[i];
        }
        const double curvature = inner(s, y, p), square = inner(y, y, p);
        if (curvature <= LEAST_CURVED * square) return;
        by[added % MEMORY] = 1.0 / curvature;
        scale = curvature / square;
        ++added;
    }

    // Replaces a gradient by the step to the maximum of the quadratic model.
    void direct(double* q) const {
        const int64_t oldest = added > MEMORY ? added - MEMORY : 0;
        for (int64_t at = added - 1; at >= oldest; --at) {
            const int64_t m = at % MEMORY;
            part[m] = by[m] * inner(S + m * p, q, p);
            add_scaled(q, -part[m], Y + m * p, p);
        }
        for (int64_t i = 0; i < p; ++i) q[i] *= scale;
        for (int64_t at = oldest; at < added; ++at) {
            const int64_t m = at % MEMORY;
            add_scaled(q, part[m] - by[m] * inner(Y + m * p, q, p), S + m * p, p);
        }
    }
};

struct AscentSpace {
    double *x, *slope, *direction;    // (p,)
    double *there, *slope_there;      // (p,), the point that a search evaluates
    double *highest, *slope_highest;  // (p,), the best point found
    AscentMemory memory;

    AscentSpace(Space& space, int64_t p)
        : x(space.take(p)), slope(space.take(p)), direction(space.take(p)), there(space.take(p)),
          slope_there(space.take(p)), highest(space.take(p)), slope_highest(space.take(p)), memory(space, p) {}
};

// Searches along at.direction for a point with a larger value than at.x, which has values[0]. Returns whether there is
// one; it is then in at.highest, its value in values[1]. Adds to `passes`, up to climb.most.
template <class Evaluate>
static bool search(Evaluate evaluate, const Climb& climb, AscentSpace& at, int64_t p, double* values, int64_t& passes) {
    const double along = inner(at.slope, at.direction, p);
    double step = 1.0;
    bool found = false;
    while (passes < climb.most && step >= SHORTEST) {
        double promised = 0.0;
        for (int64_t i = 0; i < p; ++i) {
            const double x = at.x[i], room = x - climb.lowest[i], lowest = x - (room < NEAR ? room : REACH * room);
            at.there[i] = smaller(larger(x + step * at.direction[i], lowest), climb.highest[i]);
            promised += at.slope[i] * (at.there[i] - at.x[i]);
        }
        const double reached = evaluate(at.there, at.slope_there), rise = reached - values[0];
        ++passes;
        if (rise >= KEPT * larger(promised, 0.0)) {  // not for NaN
            const bool higher = !found || reached > values[1];
            if (higher) {
                values[1] = reached;
                swap(at.highest, at.there);
                swap(at.slope_highest, at.slope_there);
            }
            found = true;
            if (step < 1.0 || !higher || inner(at.slope_highest, at.direction, p) < STEEP * along) break;
            step *= LONGER;
        } else if (found) {
            break;
        } else {
            // The maximum of the parabola through both values and the slope at the first.
            const double top = rise - rise == 0.0 ? along * step / (2.0 * (along * step - rise)) : 0.0;
            step *= smaller(larger(top, 0.1), 0.5);
        }
    }
    return found;
}

// Maximises value = evaluate(x, gradient) from climb.x on, while the units of the coordinates hold.
template <class Evaluate, class Holds>
static Steps ascend(Evaluate evaluate, Holds holds, const Climb& climb, int64_t p, AscentSpace at) {
    const auto hold = [&](double x, int64_t i) { return smaller(larger(x, climb.lowest[i]), climb.highest[i]); };
    double* values = climb.values;
    copy(at.x, climb.x, p);
    values[0] = evaluate(at.x, at.slope);
    int64_t steps = 0, passes = 1;
    while (passes < climb.most) {
        double room = 0.0;
        for (int64_t i = 0; i < p; ++i) {
            const double move = hold(at.x[i] + at.slope[i], i) - at.x[i];
            room = larger(room, size_of(move));
            at.direction[i] = move == 0.0 ? 0.0 : at.slope[i];
        }
        if (room <= climb.tol) break;
        at.memory.direct(at.direction);
        for (int64_t i = 0; i < p; ++i)  // a coordinate at a bound that would leave the box stays
            if (hold(at.x[i] + at.slope[i], i) == at.x[i]) at.direction[i] = 0.0;
        if (!search(evaluate, climb, at, p, values + steps, passes)) break;
        at.memory.add(at.x, at.highest, at.slope, at.slope_highest);
        swap(at.x, at.highest);
        swap(at.slope, at.slope_highest);
        ++steps;
        if (!holds(at.x)) break;
    }
    copy(climb.x, at.x, p);
    return {steps, passes};
}

}  // namespace CONDMETA_ISA
