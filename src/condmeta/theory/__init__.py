"""The paper's theory as calls on an environment, on a sample of weights, or on real tasks.

`variance` and `gap` (Section 3), `best_linear` (appendix), `cluster_gap` and `overlap` (Example 1),
`bound_fixed` and `bound_learned` (Theorems 1 and 2), `guarantees` (both, for an environment),
`excess_risk` (what they bound) and `suggest` (the theory's lam and meta_step from data).
docs/theory.md goes through them in the paper's order; docs/errata.md says where they differ from
the printed formulas.
"""

from condmeta.theory.bounds import (
    Bound,
    bound_fixed,
    bound_learned,
    effective_n,
    gradient_bound,
    stability,
)
from condmeta.theory.clusters import ClusterGap, cluster_gap, overlap
from condmeta.theory.guarantees import Guarantees, guarantees
from condmeta.theory.moments import Moments
from condmeta.theory.oracle import BestLinear, LinearMap, best_linear
from condmeta.theory.plugin import Suggestion, suggest
from condmeta.theory.radii import Radii, radii
from condmeta.theory.risk import excess_risk
from condmeta.theory.variance import Estimate, gap, variance

__all__ = [
    "BestLinear",
    "Bound",
    "ClusterGap",
    "Estimate",
    "Guarantees",
    "LinearMap",
    "Moments",
    "Radii",
    "Suggestion",
    "best_linear",
    "bound_fixed",
    "bound_learned",
    "cluster_gap",
    "effective_n",
    "excess_risk",
    "gap",
    "gradient_bound",
    "guarantees",
    "overlap",
    "radii",
    "stability",
    "suggest",
    "variance",
]
