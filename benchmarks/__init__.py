"""Benchmarks against peers: `python -m benchmarks [names ...] [--write]`.

One file a benchmark; each has `main()`, which returns the rows of its table. Seeded workloads, a
fresh state inside the timed call, ratios within one process, answers compared before times. Errors
on new tasks beside those of peers: `python -m benchmarks.accuracy`.
"""

import os

# Before NumPy is imported: one thread a library, so that a ratio compares code, not core counts.
for _name in ("OPENBLAS", "OMP", "MKL", "NUMEXPR", "POLARS"):
    os.environ.setdefault(f"{_name}_NUM_THREADS", "1")
