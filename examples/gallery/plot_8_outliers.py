"""
Outliers and quantiles
======================

Outliers have a large effect on a squared loss. `ConditionalERMRegressor` minimises the absolute
loss, or the loss of a quantile, over all tasks. A duality gap certifies the minimum.
"""

# %%
# Student noise with one and a half degrees of freedom: some labels are outliers.
import matplotlib.pyplot as plt
import numpy as np

import condmeta as cm

rng = np.random.default_rng(0)
size = rng.uniform(-2, 2, size=60)
task = np.repeat(np.arange(60), 8)
X = rng.normal(size=(480, 1))
y = 2 * size[task] * X[:, 0] + rng.standard_t(1.5, size=480)
side = cm.TaskTable(size[:, None], ids=range(60), columns=["size"])
models = {
    "squared loss": cm.ConditionalRidge(),
    "absolute loss": cm.ConditionalERMRegressor(),
    "90 % quantile": cm.ConditionalERMRegressor(loss=cm.losses.Pinball(0.9)),
}
for model in models.values():
    model.fit(X, y, task=task, side_info=side)

# %%
# Left: the starting slope of a task against its side information; the truth is a line. Right: the
# predicted median and the predicted 90 % quantile.
grid = np.linspace(-2, 2, 41)
fig, (left, right) = plt.subplots(1, 2, figsize=(8, 3.4), layout="constrained")
left.plot(grid, 2 * grid, color="black", linewidth=1, label="truth")
colours = {"squared loss": "#0072b2", "absolute loss": "#d55e00", "90 % quantile": "#009e73"}
for name in ("squared loss", "absolute loss"):
    slope = [models[name].theta_for({"size": s})[0] for s in grid]
    off = f"{name}: {np.abs(slope - 2 * grid).mean():.2f} off"
    left.plot(grid, slope, "--", color=colours[name], label=off)
left.set(xlabel="size", ylabel="slope without points")
left.legend(frameon=False)
for name in ("absolute loss", "90 % quantile"):
    colour = colours[name]
    predicted = models[name].predict(X, task=task)
    right.plot(X[:, 0], predicted, ".", markersize=3, color=colour)
    right.plot([], [], ".", color=colour, label=f"{name}: {np.mean(y <= predicted):.0%} below")
right.set(xlabel="x", ylabel="prediction")
right.legend(frameon=False)
plt.show()
