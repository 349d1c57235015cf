"""The small table of README, from the outcomes that `--write` kept.

    python -m benchmarks.accuracy.summary

Mean absolute errors on new tasks with no point and with five, relative to the pooled ridge followed
by a ridge per task on the same rows. The mixed model is the best of statsmodels, mixedlm and
mixedlm-rs, which fit lme4's model; GPBoost the better of its linear and its tree model.
"""

from __future__ import annotations

import numpy as np

from benchmarks.accuracy import store
from benchmarks.accuracy.data import PROBLEMS
from benchmarks.accuracy.run import Outcome

DATA = {
    "flights-destination": "flights, by destination",
    "flights-plane": "flights, by plane",
    "wages": "wages, by man",
    "hsb82": "mathematics, by school",
    "exam": "exam, by school",
}
COLUMNS = {
    "ConditionalRidge": ("ridge",),
    "AutoRegressor": ("auto",),
    "mixed model (lme4's)": ("statsmodels", "mixedlm", "mixedlm-rs"),
    "GPBoost": ("gpboost", "gpboost-trees"),
    "LightGBM + task mean": ("lightgbm",),
}
POINTS = 0, 5
PEER = "pooled"


def ratio(outcomes: dict[str, Outcome], methods: tuple[str, ...], at: int) -> float:
    """Return the error of the best of some methods over that of the peer, on the splits of both."""
    found = []
    for method in methods:
        own, peer = outcomes.get(method), outcomes[PEER]
        if own is not None and own.errors:
            n = min(len(own.errors), len(peer.errors))
            mean = [np.mean([row[at] for row in each.errors[:n]]) for each in (own, peer)]
            found.append(float(mean[0] / mean[1]))
    return min(found, default=float("nan"))


def table() -> str:
    """Return the table as Markdown; the best of a row is bold."""
    kept = store.read()
    lines = [
        "| data, points shown | " + " | ".join(COLUMNS) + " |",
        "|---" * (len(COLUMNS) + 1) + "|",
    ]
    for name, title in DATA.items():
        for points in POINTS:
            at = PROBLEMS[name].sizes.index(points)
            cells = [ratio(kept[name], methods, at) for methods in COLUMNS.values()]
            best = np.nanmin(cells)
            shown = [f"**{c:.2f}**" if c <= best + 0.005 else f"{c:.2f}" for c in cells]
            lines.append(f"| {title}, {points} | " + " | ".join(shown) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
