"""Calls of the compiled core with hostile arguments: shapes, offsets, strides, types, numbers."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from condmeta.engine import compiled_core
from condmeta.losses import LOSSES

# The arguments of every function: "name[sides]" is an array of doubles, "#name" one of int64, and
# ">" marks arrays that the call changes. N rows of T tasks, d features, k side features, L lanes,
# V evaluation tasks with Q query rows, p columns of sides.
STATE = ">grad_sum[k1,d] >weighted_sum[k1,d] >phi_sum[k1]"
MAPS = ">most[k1,d] >size[k1,d] >drift[k1,d] >reward[k1,d] >W[k1,d] >weighted_sum[k1,d]"
TASKS = "X[N,d] y[N] offsets"
STATISTICS = "gram[T,d,d] moment[T,d] square[T] count[T]"
QUERY = f"{TASKS} Xq[Q,d] yq[Q] offsets_q"
CALLS = {
    "online_tasks": f"theta[T,d] {TASKS} lam loss >slope_sum[T,d] >path_sum[T,d] >radius[T] "
    ">#count[T] n_jobs",
    "batch_tasks": f"theta[T,d] {TASKS} lam loss tol n_jobs weight[N]",
    "coin_tasks": f"theta[T,d] {TASKS} lam >slope_sum[T,d] >path_sum[T,d] >wealth[T] >#count[T] "
    "n_jobs",
    "posterior_pass": f"{STATISTICS} theta[T,d] L[d,d] s2[T] n_jobs flag rounds lam",
    "variational_pass": "X[N,d] a[N] b[N] e[N] offsets theta[T,d] L[d,d] weight[N] push[N] tol "
    "n_jobs times[N]",
    "drift_pass": "X[N,d] y[N] weight[N] offsets steps[N] lam gram[T,d,d] e[T,d] theta[T,d] L[d,d] "
    "s2_all rounds rounds n_jobs",
    "row_scores": "X[N,d] weights[T,d] #codes[N] n_jobs",
    "sgd_pass": f"{STATE} {TASKS} Phi[T,k] lam loss step flag flag flag tol",
    "kernel_pass": f"sides[T,p] >gradients[T,d] start {TASKS} kernel lam loss step flag tol",
    "kernel_theta": "rows[V,p] sides[T,p] weights[T,d] kernel n_jobs",
    "coin_pass": f"{MAPS} >phi_sum[k1] >residual[1] scales[4] {TASKS} Phi[T,k]",
    "climb_prior": f"{STATISTICS} Phi1[T,k1] lam W[k1,d] L[d,d] s2_all C[k1,k1] units[3] metric "
    "lowest[free] highest[free] tol most",
    "grid_train": f">grad_sum[k1,d,L] >weighted_sum[k1,d,L] >phi_sum[k1] {TASKS} Phi[T,k] lams[L] "
    "steps[L] loss flag flag >gradients[T,d,L] n_jobs",
    "grid_score": f"theta[T,d,L] {QUERY} lams[L] loss n_jobs",
    "grid_curves": f"gradients[V,d,L] kk[V,T] {QUERY} #group[T] groups lams[L] steps[L] loss flag "
    "flag n_jobs",
}
WILD = [0, -1, 1, 2**31, 2**63 - 1, -(2**63)]
NUMBERS = [np.nan, np.inf, -np.inf, 0.0, -0.0, 5e-324, 1e308, -1e308]
FEW = {"rounds", "most", "groups"}  # a call takes time, or memory, in proportion


class Call(NamedTuple):
    """A function of the core, its arguments, and the positions of those that it changes."""

    name: str
    arguments: list
    outputs: list[int]


def calls() -> st.SearchStrategy[Call]:
    """Return calls: valid ones, of which some have one or two arguments distorted."""
    return st.builds(
        _make, st.sampled_from(sorted(CALLS)), st.integers(0, 2**32), st.integers(0, 2)
    )


def _make(name: str, number: int, distortions: int) -> Call:
    rng = np.random.default_rng(number)
    sides = {side: int(rng.integers(0, 6)) for side in "TdkLVp"}
    sides["d"] = max(sides["d"], int(rng.integers(0, 2)))
    if rng.random() < 0.2:  # beyond one vector, one chunk of tasks
        sides |= {"d": int(rng.integers(1, 35)), "T": int(rng.integers(1, 300))}
    least = int(name in ("kernel_pass", "grid_train"))  # every task needs a point
    sizes, queries = (rng.integers(least, 7, sides["T"]) for _ in range(2))
    metric, d = int(rng.integers(0, 3)), sides["d"]
    free = (sides["k"] + 1) * d + (1 if metric == 0 else d) + (d * (d - 1) // 2) * (metric == 2) + 1
    sides |= {"k1": sides["k"] + 1, "N": sizes.sum(), "Q": queries.sum(), "free": free}
    loss = LOSSES[str(rng.choice(sorted(LOSSES)))]()
    plain = {
        "offsets": np.append(0, np.cumsum(sizes)), "offsets_q": np.append(0, np.cumsum(queries)),
        "loss": loss.native, "kernel": (int(rng.integers(0, 3)), 0.5), "n_jobs": 4, "start": 0,
        "metric": metric, "most": 5, "groups": 3, "rounds": 2, "s2_all": 0.5, "tol": 1e-6,
    }  # fmt: skip
    arguments, outputs = [], []
    for at, word in enumerate(CALLS[name].split()):
        part, _, shape = word.lstrip(">#").partition("[")
        if word.startswith(">"):
            outputs.append(at)
        if part in plain:
            arguments.append(plain[part])
        elif not shape:
            arguments.append(bool(rng.integers(0, 2)) if part == "flag" else rng.uniform(0.1, 2))
        else:
            lengths = [sides[s] if s in sides else int(s) for s in shape.rstrip("]").split(",")]
            arguments.append(_array(rng, part, lengths, "#" in word, sides))
    for _ in range(distortions):
        at = int(rng.integers(0, len(arguments)))
        part = CALLS[name].split()[at].lstrip(">#").partition("[")[0]
        arguments[at] = _distorted(rng, arguments[at], part)
    return Call(name, arguments, outputs)


def _array(rng, part: str, lengths: list[int], whole: bool, sides: dict) -> np.ndarray:
    if whole:
        most = {"codes": max(sides["T"], 1), "group": 3}.get(part, 9)
        return rng.integers(0, most, lengths)
    array = rng.normal(size=lengths)
    if part == "gram":
        return array @ np.swapaxes(array, -1, -2)
    if part == "L":
        return np.tril(array, -1) + np.diag(rng.uniform(0.1, 2, lengths[0]))
    if part in ("weight", "times", "s2", "square", "count", "radius", "wealth", "lams", "units"):
        return np.abs(array) + 0.1
    if part == "y":
        return np.sign(array) if rng.random() < 0.5 else array
    return {"lowest": -1, "highest": 1}[part] * np.abs(array) if "est" in part else array


def _distorted(rng, value: Any, part: str) -> Any:
    if not isinstance(value, np.ndarray):
        if isinstance(value, bool):
            return not value
        if isinstance(value, int):
            few = [0, -1, 1, 7, -(2**63)]
            return int(rng.choice(few)) if part in FEW else WILD[rng.integers(0, len(WILD))]
        return float(rng.choice(NUMBERS)) if isinstance(value, float) else None
    kind = rng.integers(0, 11)
    if kind < 4 and value.size:  # other numbers
        value, at = value.copy(), tuple(rng.integers(0, side) for side in value.shape)
        wild = WILD if value.dtype.kind == "i" else NUMBERS
        value[at] = wild[rng.integers(0, len(wild))]
        return value
    shapes = {
        4: lambda: np.asfortranarray(value) if value.ndim > 1 else value[::-1],
        5: lambda: np.concatenate([value, value])[::2],
        6: lambda: value[: len(value) // 2].copy(),
        7: lambda: np.concatenate([value, value]),
        8: lambda: value.astype(np.float32),
        9: lambda: value[..., None],
    }
    if kind in shapes:
        return shapes[kind]()
    value = value.copy()
    value.flags.writeable = False
    return value


def check(call: Call) -> None:
    """Make a call: it answers, or raises TypeError or ValueError and changes nothing."""
    core = compiled_core()
    if core is None:
        raise SystemExit("The compiled core was not built: there is nothing to fuzz.")
    before = [np.copy(call.arguments[at]) for at in call.outputs]
    try:
        getattr(core, call.name)(*call.arguments)
    except (TypeError, ValueError, MemoryError):
        for at, old in zip(call.outputs, before, strict=True):
            np.testing.assert_array_equal(call.arguments[at], old)
