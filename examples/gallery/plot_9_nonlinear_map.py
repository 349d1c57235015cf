"""
Side information with a non-linear effect
=========================================

The starting coefficients of a task are a linear function of its encoded side columns. You choose
the encoding (`feature_map`): a spline, random features, or the columns themselves.
"""

# %%
# The slope of a task is a sine of its side column.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.preprocessing import SplineTransformer

import condmeta as cm
from condmeta.feature_maps import RandomFourier

rng = np.random.default_rng(0)
s = rng.uniform(-3, 3, size=200)
task = np.repeat(np.arange(200), 6)
X = rng.normal(size=(1200, 1))
y = 2 * np.sin(2 * s[task]) * X[:, 0] + 0.5 * rng.normal(size=1200)
side = cm.TaskTable({"s": s}, ids=range(200))
maps = {
    "the column itself": "auto",
    "a spline": SplineTransformer(n_knots=10),
    "40 random features": RandomFourier(40, std=1.5, random_state=0),
}

# %%
# The same learner with three encodings.
grid = np.linspace(-3, 3, 121)
new = cm.TaskTable({"s": grid}, ids=range(1000, 1121))
fig, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
ax.plot(grid, 2 * np.sin(2 * grid), color="black", linewidth=1, label="truth")
colours = ["#0072b2", "#d55e00", "#009e73"]
for (name, feature_map), colour in zip(maps.items(), colours, strict=True):
    model = cm.ConditionalRidge(feature_map).fit(X, y, task=task, side_info=side)
    slope = model.theta_for(new)[:, 0]
    ax.plot(grid, slope, "--", color=colour, label=name)
    print(f"{name:20s} off by {np.abs(slope - 2 * np.sin(2 * grid)).mean():.2f}")
ax.set(xlabel="side information", ylabel="slope of a task without points")
ax.legend(frameon=False)
plt.show()
