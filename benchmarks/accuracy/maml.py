"""First-order MAML: a small network of inputs and side columns, adapted by gradient steps."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from benchmarks.accuracy.design import Design, slices
from condmeta.tasks import TaskSet

WIDTH = 40  # of two hidden layers, as in the sine experiment of the MAML paper
INNER_STEPS, INNER_RATE = 5, 0.01
ROUNDS, TASKS, OUTER_RATE = 2000, 25, 1e-3
CLIP = 10.0  # of every entry of a gradient, as in the code of the MAML paper
SHOTS = (1, 3, 5, 10)
QUERIES = 10


class FirstOrderMaml:
    """Meta-train an initialisation so that a few gradient steps on the support suit the query."""

    def __init__(self):
        import torch

        torch.set_num_threads(1)
        self.torch = torch

    def fit(self, train: TaskSet) -> None:
        """Meta-train with Adam on batches of tasks, all with one number of support points."""
        torch = self.torch
        torch.manual_seed(0)
        self.design = Design(train)
        X = torch.tensor(self.design.both(train), dtype=torch.float32)
        y = torch.tensor(self.design.target(train), dtype=torch.float32)
        tasks, rng = slices(train), np.random.default_rng(0)
        self.start = self._initial(X.shape[1])
        outer = torch.optim.Adam(self.start, lr=OUTER_RATE)
        for _ in range(ROUNDS):
            shots = int(rng.choice(SHOTS))
            rows = np.stack([
                _draw(tasks[t], shots + QUERIES, rng) for t in rng.integers(len(tasks), size=TASKS)
            ])  # fmt: skip
            known, asked = rows[:, :shots], rows[:, shots:]
            own = self._adapt(X[known], y[known])
            loss = self._losses(own, X[asked], y[asked]).mean()
            for parameter, gradient in zip(self.start, torch.autograd.grad(loss, own), strict=True):
                # As if the steps did not depend on the start.
                parameter.grad = gradient.sum(dim=0).clamp(-CLIP, CLIP)
            outer.step()

    def predict(self, support: TaskSet, query: TaskSet) -> np.ndarray:
        """Predict the query points, (N,)."""
        torch, design = self.torch, self.design
        X, new = (torch.tensor(design.both(t), dtype=torch.float32) for t in (support, query))
        y = torch.tensor(design.target(support), dtype=torch.float32)
        out = np.empty(len(new))
        for known, asked in zip(slices(support), slices(query), strict=True):
            own = self._adapt(X[known][None], y[known][None])
            with torch.no_grad():
                out[asked] = _network(torch, own, new[asked][None])[0].numpy()
        return design.to_user(out)

    def _initial(self, width: int):
        torch, sizes, start = self.torch, (width, WIDTH, WIDTH, 1), []
        for n_in, n_out in pairwise(sizes):
            start += [torch.randn(n_in, n_out) * (2 / n_in) ** 0.5, torch.zeros(1, n_out)]
        return [parameter.requires_grad_() for parameter in start]

    def _adapt(self, X, y):
        """Return the parameters of each task (B, ...) after the steps on its support."""
        own = [p.detach().expand(len(X), *p.shape).requires_grad_() for p in self.start]
        for _ in range(INNER_STEPS if X.shape[1] else 0):
            gradients = self.torch.autograd.grad(self._losses(own, X, y).sum(), own)
            own = [
                (p - INNER_RATE * g.clamp(-CLIP, CLIP)).detach().requires_grad_()
                for p, g in zip(own, gradients, strict=True)
            ]
        return own

    def _losses(self, own, X, y):
        return ((_network(self.torch, own, X) - y) ** 2).mean(dim=1)


def _network(torch, own, X):
    """Return the outputs (B, n) of B networks, each for its own rows (B, n, width)."""
    hidden = X
    for weight, bias in zip(own[:-2:2], own[1:-2:2], strict=True):
        hidden = torch.relu(hidden @ weight + bias)
    return (hidden @ own[-2] + own[-1])[..., 0]


def _draw(rows: slice, count: int, rng: np.random.Generator) -> np.ndarray:
    """Draw rows of a task, some twice where it has too few."""
    n = rows.stop - rows.start
    return rows.start + rng.choice(n, size=count, replace=n < count)
