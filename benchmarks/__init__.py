"""Benchmarks against peers: `python -m benchmarks [names ...] [--write]`.

One file per benchmark. Each has `main()`, which returns the rows of its table. Workloads have
seeds, the timed call starts from a fresh state, ratios are measured within one process, and answers
are compared before times. `python -m benchmarks.accuracy` compares errors on new tasks with peers.
"""

import os

# Before NumPy is imported: one thread a library, so that a ratio compares code, not core counts.
for _name in ("OPENBLAS", "OMP", "MKL", "NUMEXPR", "POLARS"):
    os.environ.setdefault(f"{_name}_NUM_THREADS", "1")
