// The workspace of a thread, cut into arrays. If it starts at null, it only adds up its size: the layout is
// written once and cannot disagree with the size that the caller allocates.
#pragma once

#include "vec.h"

namespace CONDMETA_ISA {

struct Space {
    double* base;
    int64_t used = 0;

    double* take(int64_t n) {
        double* here = base ? base + used : nullptr;
        used += (n + 7) / 8 * 8;  // 64-byte lines
        return here;
    }
};

}  // namespace CONDMETA_ISA
