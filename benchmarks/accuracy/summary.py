"""The small table of README, from the outcomes that `--write` kept.

    python -m benchmarks.accuracy.summary

Mean absolute errors on new tasks without points and with five, divided by the error of a baseline
on the same rows: a pooled ridge, then a ridge for each task. In each cell, the mixed model is the
best of statsmodels, mixedlm and mixedlm-rs, which fit the same model as lme4 (lme4 itself was not
run), and GPBoost is the better of its linear and its tree model.
"""

from __future__ import annotations

import numpy as np

from benchmarks.accuracy import store
from benchmarks.accuracy.data import PROBLEMS
from benchmarks.accuracy.run import Outcome

DATA = {
    "flights-destination": "flights: airports",
    "flights-plane": "flights: planes",
    "wages": "wages: men",
    "hsb82": "mathematics: schools",
    "exam": "exams: schools",
}
COLUMNS = {
    "ConditionalRidge": ("ridge",),
    "AutoRegressor": ("auto",),
    "mixed model (best of 3 Python packages)": ("statsmodels", "mixedlm", "mixedlm-rs"),
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
    """Return the table as Markdown; the best of a data set and number of points is bold."""
    kept = store.read()
    lines = ["| new tasks of | " + " | ".join(COLUMNS) + " |", "|---" * (len(COLUMNS) + 1) + "|"]
    for name, title in DATA.items():
        at = [PROBLEMS[name].sizes.index(points) for points in POINTS]
        found = [[ratio(kept[name], methods, j) for j in at] for methods in COLUMNS.values()]
        best = np.nanmin(found, axis=0)
        cells = [
            " / ".join(
                f"**{value:.2f}**" if value <= least + 0.005 else f"{value:.2f}"
                for value, least in zip(values, best, strict=True)
            )
            for values in found
        ]
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
