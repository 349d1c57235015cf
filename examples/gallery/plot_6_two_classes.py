"""
Two classes: calibrated probabilities
=====================================

Will a customer of a new shop buy? `ConditionalLogistic` averages over the uncertainty about the
coefficients of a task. So its probabilities are calibrated, even for tasks with few rows or none.
"""

# %%
# Simulated shops: the coefficients of a shop depend in part on its side column.
import matplotlib.pyplot as plt
import numpy as np

import condmeta as cm

rng = np.random.default_rng(0)


def draw(first, shops, n):
    """Return customers of some shops, and the side information of the shops."""
    size = rng.normal(size=(shops, 1))
    w = size @ [[1.0, -1.0, 0.0]] + 1.2 * rng.normal(size=(shops, 3))
    shop = np.repeat(np.arange(shops), n)
    X = rng.normal(size=(shops * n, 3))
    buys = rng.random(len(X)) < 1 / (1 + np.exp(-np.einsum("ij,ij->i", X, w[shop])))
    ids = np.arange(first, first + shops)
    return cm.TaskSet.from_arrays(X, buys, shop + first, cm.TaskTable(size, ids, ["size"]))


known, new = draw(0, 200, 15), draw(1000, 300, 30)
model = cm.ConditionalLogistic().fit(known)

# %%
# Calibration on new shops: predicted probabilities against actual shares.
few, rest = new.split_points(5, order="first")
shop = np.repeat(rest.ids, rest.sizes)
said = {
    "no customer seen": model.predict_proba(rest.X, task=shop, side_info=new.side)[:, 1],
    "five seen": model.adapt(few).predict_proba(rest.X, task=shop)[:, 1],
}
fig, ax = plt.subplots(figsize=(5, 4.2), layout="constrained")
ax.plot([0, 1], [0, 1], ":", color="0.6")
for (name, p), colour in zip(said.items(), ("#0072b2", "#d55e00"), strict=True):
    bins = np.digitize(p, np.linspace(0, 1, 11)[1:-1])
    mean = [p[bins == b].mean() for b in np.unique(bins)]
    share = [rest.y[bins == b].mean() for b in np.unique(bins)]
    ax.plot(mean, share, marker="o", color=colour, label=name)
    print(f"{name}: log loss {-np.log(np.where(rest.y == 1, p, 1 - p)).mean():.3f}")
ax.set(xlabel="predicted probability", ylabel="share that buys")
ax.legend(frameon=False)
plt.show()
