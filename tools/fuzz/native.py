"""Calls of the compiled core with hostile arguments: shapes, offsets, strides, types, numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from condmeta.engine import compiled_core
from condmeta.losses import LOSSES

# The arguments of every function: "name[sides]" is an array of doubles, "#name" one of int64, and
# ">" marks arrays that the call changes. N rows of T tasks, d features, k side features, L lanes,
# V evaluation tasks with Q query rows, p columns of sides; k1 = k + 1, d1 = d + 1, tri entries of a
# triangle of d1 rows.
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
    "scaled_squares": "triangles[T,tri] mean[T,d1] mass[N] #at[N] centre[d1] by[d1] flag",
    "scaled_posterior_pass": "triangles[T,tri] mean[T,d1] mass[N] #at[N] centre[d1] by[d1] "
    "intercept count[N] theta[N,d1] L[d1,d1] s2[N] n_jobs flag rounds lam",
    "tree_up": "gram[T,d,d] moment[T,d] theta[T,d] L[d,d] s2[T] n_jobs",
    "tree_down": "messages[N,d,d] g[N,d] mean[T,d] covariance[T,d,d] #parent[N] n_jobs",
    "row_scores": "X[N,d] weights[T,d] #codes[N] n_jobs",
    "sgd_pass": f"{STATE} {TASKS} Phi[T,k] lam loss step flag flag flag tol",
    "kernel_pass": f"sides[T,p] >gradients[T,d] start {TASKS} kernel lam loss step flag tol",
    "kernel_theta": "rows[V,p] sides[T,p] weights[T,d] kernel n_jobs",
    "coin_pass": f"{MAPS} >phi_sum[k1] >residual[1] scales[4] {TASKS} Phi[T,k]",
    "climb_prior": f"{STATISTICS} Phi1[T,k1] lam W[k1,d] L[d,d] s2_all basis[d,d] C[k1,k1] "
    "units[3] metric lowest[free] highest[free] tol most",
    "grid_train": f">grad_sum[k1,d,L] >weighted_sum[k1,d,L] >phi_sum[k1] {TASKS} Phi[T,k] lams[L] "
    "steps[L] loss flag flag >gradients[T,d,L] n_jobs",
    "grid_score": f"theta[T,d,L] {QUERY} lams[L] loss n_jobs",
    "grid_curves": f"gradients[V,d,L] kk[V,T] {QUERY} #group[T] groups lams[L] steps[L] loss flag "
    "flag n_jobs",
}
WILD = [0, -1, 1, 2**31, 2**63 - 1, -(2**63)]
NUMBERS = [np.nan, np.inf, -np.inf, 0.0, -0.0, 5e-324, 1e308, -1e308]
FEW = {"rounds", "most", "groups"}  # a call takes time, or memory, in proportion
POSITIVE = {"weight", "times", "s2", "square", "count", "radius", "wealth", "lams", "units", "mass"}
FAULTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {  # of arrays, beside other numbers
    "order": lambda array: np.asfortranarray(array) if array.ndim > 1 else array[::-1],
    "strides": lambda array: np.concatenate([array, array])[::2],
    "half": lambda array: array[: len(array) // 2].copy(),
    "double": lambda array: np.concatenate([array, array]),
    "empty": lambda array: array[:0].copy(),
    "type": lambda array: array.astype(np.float32),
    "axis": lambda array: array[..., None],
    "none": lambda array: None,
}


class Call(NamedTuple):
    """A function of the core, its arguments, and the positions of those that it changes."""

    name: str
    arguments: list
    outputs: list[int]
    faults: list[str]


@st.composite
def calls(draw, names: Sequence[str] = tuple(CALLS)) -> Call:
    """Return calls: valid ones, of which some have one or two arguments with a fault."""
    name = draw(st.sampled_from(sorted(names)))
    metric = draw(st.integers(0, 2))
    sides = _sides(draw, name, metric)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))  # of the numbers alone
    kernel = draw(st.integers(0, 2)), 0.5
    loss = LOSSES[draw(st.sampled_from(sorted(LOSSES)))]().native
    plain = {
        "offsets": np.append(0, np.cumsum(sides["sizes"])),
        "offsets_q": np.append(0, np.cumsum(sides["queries"])),
        "loss": loss, "kernel": kernel, "n_jobs": 4, "start": 0, "metric": metric, "most": 5,
        "groups": 3, "rounds": 2, "s2_all": 0.5, "tol": 1e-6, "intercept": True,
    }  # fmt: skip
    words = CALLS[name].split()
    parts = [word.lstrip(">#").partition("[")[0] for word in words]
    arguments: list[Any] = []
    for word, part in zip(words, parts, strict=True):
        if "[" in word:
            shape = word.partition("[")[2].rstrip("]").split(",")
            lengths = [sides[side] if side in sides else int(side) for side in shape]
            arguments.append(_array(rng, part, lengths, "#" in word, sides["T"]))
        elif part in plain:
            arguments.append(plain[part])
        else:
            arguments.append(draw(st.booleans()) if part == "flag" else rng.uniform(0.1, 2))
    faults = draw(st.lists(st.integers(0, len(words) - 1), max_size=2, unique=True))
    said = [_distort(draw, arguments, at, parts[at]) for at in faults]
    outputs = [at for at, word in enumerate(words) if word.startswith(">")]
    return Call(name, arguments, outputs, said)


def _sides(draw, name: str, metric: int) -> dict[str, Any]:
    """Return the lengths of arrays by the letters of `CALLS`, and the sizes of tasks."""
    sides: dict[str, Any] = {side: draw(st.integers(0, 5)) for side in "TdkLVp"}
    if draw(st.sampled_from([False, False, False, True])):  # beyond one vector, one chunk of tasks
        sides |= {"d": draw(st.integers(1, 35)), "T": draw(st.integers(1, 300))}
    least = int(name in ("kernel_pass", "grid_train"))  # every task needs a point
    rng = np.random.default_rng(draw(st.integers(0, 255)))
    sides["sizes"], sides["queries"] = (rng.integers(least, 7, sides["T"]) for _ in range(2))
    d = sides["d"]
    free = (sides["k"] + 1) * d + (1 if metric == 0 else d) + (d * (d - 1) // 2) * (metric == 2) + 1
    rows, queries = sides["sizes"].sum(), sides["queries"].sum()
    more = {"k1": sides["k"] + 1, "d1": d + 1, "N": rows, "Q": queries, "free": free}
    return sides | more | {"tri": (d + 1) * (d + 2) // 2}


def _array(rng, part: str, lengths: list[int], whole: bool, tasks: int) -> np.ndarray:
    if whole:
        most = {"group": 3, "count": 9}.get(part, max(tasks, 1))
        return rng.integers(0, most, lengths)
    array = rng.normal(size=lengths)
    if part in ("gram", "covariance", "messages"):
        return array @ np.swapaxes(array, -1, -2)
    if part == "L":
        return np.tril(array, -1) + np.diag(rng.uniform(0.1, 2, lengths[0]))
    if part in POSITIVE:
        return np.abs(array) + 0.1
    if part == "y":
        return np.sign(array) if rng.random() < 0.5 else array
    return {"lowest": -1, "highest": 1}[part] * np.abs(array) if "est" in part else array


def _distort(draw, arguments: list, at: int, part: str) -> str:
    """Put a fault into the argument at a position; return what was done."""
    value = arguments[at]
    if isinstance(value, np.ndarray):
        numbers = ["number"] * 4 if value.size else []
        fault = draw(st.sampled_from([*numbers, "read-only", *FAULTS]))
        if fault in FAULTS:
            arguments[at] = FAULTS[fault](value)
            return f"{part}: {fault}"
        arguments[at] = value.copy()
        if fault == "read-only":
            arguments[at].flags.writeable = False
            return f"{part}: read-only"
        number = draw(st.sampled_from(WILD if value.dtype.kind == "i" else NUMBERS))
        arguments[at].flat[draw(st.integers(0, value.size - 1))] = number
        return f"{part}: {number}"
    if isinstance(value, bool):
        wild: list = [not value]
    elif isinstance(value, int):
        wild = [0, -1, 1, 7, -(2**63)] if part in FEW else WILD
    else:
        wild = NUMBERS if isinstance(value, float) else [None]
    arguments[at] = draw(st.sampled_from(wild))
    return f"{part}: {arguments[at]}"


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
