#include "dispatch.h"

#include <cstdlib>
#include <cstring>

namespace baseline {
extern const Kernels table;
}
#ifdef CONDMETA_HAS_V3
namespace v3 {
extern const Kernels table;
}
#endif
#ifdef CONDMETA_HAS_V4
namespace v4 {
extern const Kernels table;
}
#endif

namespace {

// Newest first. The features are those that the compiler may use under -march=x86-64-v3 and -v4.
const Kernels* choose() {
    const char* forced = std::getenv("CONDMETA_ISA");
    [[maybe_unused]] auto wanted = [forced](const char* name) {
        return !forced || !*forced || std::strcmp(forced, name) == 0;
    };
#if defined(CONDMETA_HAS_V3) || defined(CONDMETA_HAS_V4)
    __builtin_cpu_init();
    const bool has_v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                        __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
                        __builtin_cpu_supports("popcnt");
#endif
#ifdef CONDMETA_HAS_V4
    const bool has_v4 = has_v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                        __builtin_cpu_supports("avx512vl");
    if (has_v4 && wanted("v4")) return &v4::table;
#endif
#ifdef CONDMETA_HAS_V3
    if (has_v3 && (wanted("v3") || std::strcmp(forced, "v4") == 0)) return &v3::table;
#endif
    return &baseline::table;
}

}  // namespace

const Kernels& kernels() {
    static const Kernels* chosen = choose();
    return *chosen;
}

const char* instruction_set() {
    const char* name = kernels().name;
    return std::strcmp(name, "v4") == 0 ? "x86-64-v4" : std::strcmp(name, "v3") == 0 ? "x86-64-v3" : "baseline";
}
