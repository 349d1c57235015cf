"""The paper's theory as functions of an environment, a sample of weights, or real tasks.

`variance` and `gap` (Section 3), `best_linear` (appendix), `cluster_gap` and `overlap` (Example 1),
`bound_fixed` and `bound_learned` (Theorems 1 and 2), `guarantees` (Theorem 2 for an environment),
`excess_risk` (the quantity that they bound) and `suggest` (lam and meta_step of Theorem 2, from
data). docs/theory.md explains them in the paper's order; docs/errata.md lists where they differ
from the printed formulas.
"""

from condmeta.paper.theory.bounds import (
    Bound,
    bound_fixed,
    bound_learned,
    effective_n,
    gradient_bound,
    stability,
)
from condmeta.paper.theory.clusters import ClusterGap, cluster_gap, overlap
from condmeta.paper.theory.guarantees import Guarantees, guarantees
from condmeta.paper.theory.kernel_oracle import BestKernel, BestKernelMap
from condmeta.paper.theory.moments import Moments
from condmeta.paper.theory.oracle import BestLinear, BestMap, best_linear
from condmeta.paper.theory.radii import Radii, radii
from condmeta.paper.theory.risk import excess_risk
from condmeta.paper.theory.suggest import Suggestion, suggest
from condmeta.paper.theory.variance import Estimate, gap, variance

__all__ = [
    "BestKernel", "BestKernelMap", "BestLinear", "BestMap", "Bound", "ClusterGap", "Estimate",
    "Guarantees", "Moments", "Radii", "Suggestion", "best_linear", "bound_fixed", "bound_learned",
    "cluster_gap", "effective_n", "excess_risk", "gap", "gradient_bound", "guarantees", "overlap",
    "radii", "stability", "suggest", "variance",
]  # fmt: skip
