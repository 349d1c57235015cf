// The kernels for this machine: the newest instruction set that the processor has, or the one named by
// the environment variable CONDMETA_ISA (baseline, v3 or v4), read once a process.
#pragma once

#include "kernels.h"

// Never null; an unknown or unsupported CONDMETA_ISA selects the default.
const Kernels& kernels();

// "baseline", "x86-64-v3" or "x86-64-v4".
const char* instruction_set();
