"""Compare coin betting with tuned Algorithm 1 and independent learning, on other tasks.

    python examples/coin_elsewhere.py [SEEDS]

d = 6, Gaussian inputs, noise of one size, 300 training tasks, half of the points of a task to learn
from. The tuned learners choose lam and meta_step on 100 further tasks. Prints a Markdown table.
"""

import sys

import numpy as np

import condmeta as cm
from condmeta.environments import Circle, Clusters
from condmeta.experiments import Setting, run
from condmeta.feature_maps import CircleMap, Identity, MeanInput

GRID = np.geomspace(1e-4, 1e4, 13)
MAP = np.random.default_rng(7).normal(size=(6, 3))


class LinearWeights:
    """Draw tasks with weights M s + spread u: s are three normal side columns, u is normal."""

    def __init__(self, n: int = 20, spread: float = 1.0):
        self.n, self.spread = n, spread

    def sample(self, n_tasks: int, random_state=None) -> cm.TaskSet:
        """Draw tasks with n points of six normal inputs each, and noise of standard deviation 1."""
        rng = np.random.default_rng(random_state)
        s = rng.normal(size=(n_tasks, 3))
        W = s @ MAP.T + self.spread * rng.normal(size=(n_tasks, 6))
        X = rng.normal(size=(n_tasks, self.n, 6))
        y = np.einsum("tnd,td->tn", X, W) + rng.normal(size=(n_tasks, self.n))
        task = np.repeat(np.arange(n_tasks), self.n)
        side = cm.TaskTable(s, ids=range(n_tasks))
        return cm.TaskSet.from_arrays(X.reshape(-1, 6), y.ravel(), task, side_info=side)


GAUSSIAN = {"d": 6, "radius": 3.0, "inputs": "gaussian", "noise": 1.0}
SETTINGS = {
    "circle, inputs around 0": (Circle(x_center=0.0, **GAUSSIAN), CircleMap()),
    "circle, inputs around 1": (Circle(x_center=1.0, **GAUSSIAN), CircleMap()),
    "linear weights": (LinearWeights(), Identity()),
    "linear weights, small spread": (LinearWeights(spread=0.3), Identity()),
    "linear weights, 60 points": (LinearWeights(n=60), Identity()),
    "two clusters": (Clusters(np.outer([2, 0], np.ones(6)), np.outer([1, -1], np.ones(6)),
                              noise=1.0), MeanInput()),
}  # fmt: skip


def errors(name: str, seeds: int) -> dict[str, float]:
    """Return the mean absolute errors of independent, tuned and coin learning after 300 tasks."""
    environment, feature_map = SETTINGS[name]
    methods = {
        "independent": cm.FixedBiasRegressor(),
        "tuned": cm.ConditionalSGDRegressor(feature_map),
        "coin": cm.ConditionalCoinRegressor(feature_map),
    }
    results = run(
        environment, methods, setting=Setting((300, 100, 80)), seeds=seeds, at=[300],
        grid={"lam": GRID, "meta_step": GRID},
    )  # fmt: skip
    return {method: float(results.finals(method).mean()) for method in methods}


if __name__ == "__main__":
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    print("| tasks | independent | Algorithm 1, tuned | coin | coin against tuned |")
    print("|---|---|---|---|---|")
    for name in SETTINGS:
        own, tuned, coin = errors(name, seeds).values()
        print(f"| {name} | {own:.2f} | {tuned:.2f} | {coin:.2f} | {coin / tuned - 1:+.1%} |")
