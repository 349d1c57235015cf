// Shared by the bindings: arrays from Python, their checks, and threads over cells of work.
// Shapes and dtypes are checked, then the kernels run without the interpreter's lock. Arrays are never
// converted or copied.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/tuple.h>

#include <cstdlib>
#include <new>
#include <stdexcept>
#include <string>
#include <tuple>

#include "dispatch.h"
#include "threads.h"

namespace nb = nanobind;

using Row = std::tuple<double, double, double, double, bool>;

template <class T, size_t n>
using Array = nb::ndarray<T, nb::ndim<n>, nb::c_contig, nb::device::cpu>;
using In1 = Array<const double, 1>;
using In2 = Array<const double, 2>;
using In3 = Array<const double, 3>;
using InOffsets = Array<const int64_t, 1>;
using Out1 = Array<double, 1>;
using Out2 = Array<double, 2>;
using Out3 = Array<double, 3>;
using OutCounts = Array<int64_t, 1>;

template <class A, class... Sides>
void need(const A& array, const char* name, Sides... sides) {
    const size_t shape[] = {size_t(sides)...};
    bool fits = true;
    std::string text = std::string("'") + name + "' must have shape (";
    for (size_t axis = 0; axis < sizeof...(sides); ++axis) {
        fits = fits && array.shape(axis) == shape[axis];
        text += (axis ? ", " : "") + std::to_string(shape[axis]);
    }
    if (!fits) throw std::invalid_argument(text + (sizeof...(sides) == 1 ? ",)." : ")."));
}

// The data of an array that may be None.
inline const double* optional(const In1& array, const char* name, size_t size) {
    if (!array.is_valid()) return nullptr;
    need(array, name, size);
    return array.data();
}

inline Tasks check_tasks(const In2& X, const In1& y, const InOffsets& offsets, double lam, const Row& row) {
    if (offsets.shape(0) == 0) throw std::invalid_argument("'offsets' must have at least one entry.");
    need(y, "y", X.shape(0));
    const int64_t* at = offsets.data();
    const int64_t count = int64_t(offsets.shape(0)) - 1;
    int64_t n_max = 0;
    bool valid = at[0] >= 0 && at[count] <= int64_t(X.shape(0));
    for (int64_t t = 0; valid && t < count; ++t) {
        valid = at[t] <= at[t + 1];
        if (valid) n_max = std::max(n_max, at[t + 1] - at[t]);  // both are 0 or more: no overflow
    }
    if (!valid) throw std::invalid_argument("'offsets' must rise from 0 or more to at most the rows of 'X'.");
    const auto [curvature, dead_zone, low, high, is_signed] = row;
    const Loss loss{curvature, dead_zone, low, high, is_signed};
    return {X.data(), y.data(), at, count, int64_t(X.shape(1)), n_max, lam, loss};
}

constexpr int64_t MOST_POINTS = 1000000000000000;

// Numbers of points that came before: to count further points cannot overflow.
inline void need_counts(const OutCounts& count, size_t tasks) {
    need(count, "count", tasks);
    for (size_t t = 0; t < tasks; ++t)
        if (count.data()[t] < 0 || count.data()[t] > MOST_POINTS)
            throw std::invalid_argument("'count' must hold numbers of points, from 0 to 10**15.");
}

// Zeros. The threads that fill the array touch the pages of calloc first, not this function.
template <size_t n>
auto new_array(std::initializer_list<size_t> shape) {
    size_t size = 1;
    for (size_t side : shape) size *= side;
    void* data = std::calloc(size ? size : 1, sizeof(double));
    if (!data) throw std::bad_alloc();
    nb::capsule owner(data, [](void* p) noexcept { std::free(p); });
    return nb::ndarray<nb::numpy, double, nb::ndim<n>>(data, shape, owner);
}

// Threads over cells of work; a thread takes at most `most` cells at once.
template <class Work>
void for_cells(int64_t count, int64_t most, int64_t n_jobs, int64_t doubles, Work work) {
    nb::gil_scoped_release unlocked;
    if (count > 0) for_tasks(count, n_jobs, doubles, work, most);
}

inline int64_t pieces(int64_t whole, int64_t piece) { return (whole + piece - 1) / piece; }

inline Tasks check_bets(const In2& X, const In1& y, const InOffsets& offsets) {
    return check_tasks(X, y, offsets, 0.0, {});
}
