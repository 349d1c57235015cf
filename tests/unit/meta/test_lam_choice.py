"""The choice of lam, against the same cross-validation written out."""

from __future__ import annotations

import numpy as np
import pytest

from condmeta.inner.algorithms import Batch
from condmeta.losses import get_loss
from condmeta.meta.lam_choice import GRID, choose_lam
from condmeta.tasks.points import Points
from condmeta.tasks.splits import SupportQuery


def draw(seed, weighted):
    """Return support and query of four ragged problems."""
    rng = np.random.default_rng(seed)

    def points(sizes):
        n, offsets = sum(sizes), np.append(0, np.cumsum(sizes))
        X = rng.normal(size=(n, 2))
        y = X @ [1.0, -1.0] + np.repeat(rng.normal(size=4), sizes) * X[:, 0] + rng.normal(size=n)
        return Points(X, y, offsets, rng.uniform(0.2, 5, size=n) if weighted else None)

    return SupportQuery(points([3, 5, 2, 4]), points([1, 2, 9, 3]))


def written_out(held: SupportQuery, theta) -> dict[float, float]:
    """Return the mean over problems of the (weighted) mean squared loss, for each lam."""
    (X, y, cuts, m), (Xq, yq, cuts_q, mq) = held
    m = np.ones(len(y)) if m is None else m
    mq = np.ones(len(yq)) if mq is None else mq
    scores = {}
    for lam in GRID:
        losses = []
        for p in range(4):
            a, b = slice(*cuts[p : p + 2]), slice(*cuts_q[p : p + 2])
            S = (X[a].T * m[a]) @ X[a] + lam * m[a].sum() * np.eye(2)
            w = theta + np.linalg.solve(S, (X[a].T * m[a]) @ (y[a] - X[a] @ theta))
            losses.append(np.average((Xq[b] @ w - yq[b]) ** 2, weights=mq[b]))
        scores[lam] = np.mean(losses)
    return scores


@pytest.mark.parametrize("weighted", [False, True])
def test_lam_has_the_least_mean_loss_over_the_problems(weighted):
    theta, chosen = np.array([0.5, 0.0]), set()
    for seed in range(25):
        held = draw(seed, weighted)
        found = choose_lam(
            held.support, lambda _, held=held: held, theta, lambda lam: Batch(lam, "squared"),
            get_loss("squared"), 1,
        )  # fmt: skip
        scores = written_out(held, theta)
        assert found == min(scores, key=scores.get)
        chosen.add(found)
    assert len(chosen) > 5


def test_of_equally_good_ones_the_largest_is_taken():
    held = draw(0, False)
    flat = held.query._replace(X=np.zeros_like(held.query.X))  # every lam predicts 0
    found = choose_lam(
        held.support, lambda _: SupportQuery(held.support, flat), np.zeros(2),
        lambda lam: Batch(lam, "squared"), get_loss("squared"), 1,
    )  # fmt: skip
    assert found == GRID[-1]
