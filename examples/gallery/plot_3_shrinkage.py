"""
Shrinkage: own estimate, prior and adapted coefficient
======================================================

The prior of a task is its starting coefficient, computed from its side information. A task with few
rows (points) stays near its prior; a task with many rows follows its own data.
"""

# %%
# The table of coefficients has all three for every task: prior, own (least squares on the task's
# points alone) and adapted.
import matplotlib.pyplot as plt
import numpy as np

import condmeta as cm

rng = np.random.default_rng(3)
sizes = rng.integers(2, 40, size=40)
side = rng.uniform(-1, 1, size=(40, 1))
slope = 2 * side[:, 0] + 0.5 * rng.normal(size=40)
task = np.repeat(np.arange(40), sizes)
X = rng.normal(size=(len(task), 1))
y = slope[task] * X[:, 0] + rng.normal(size=len(task))
model = cm.ConditionalRidge().fit(X, y, task=task, side_info=cm.TaskTable(side, ids=range(40)))
table = model.coef_frame()
slopes = table[table["feature"] == "x0"]
print(slopes.head().round(2).to_string(index=False))

# %%
# Each arrow points from a task's own slope to its adapted slope. The line is the prior.
order = np.argsort(side[:, 0])
fig, ax = plt.subplots(figsize=(7, 3.8), layout="constrained")
ax.plot(side[order, 0], slopes["prior"].to_numpy()[order], color="#d55e00", label="prior")
for s, start, end in zip(side[:, 0], slopes["own"], slopes["adapted"], strict=True):
    ax.annotate("", (s, end), (s, start), arrowprops={"arrowstyle": "->", "color": "0.6"})
ax.scatter(side[:, 0], slopes["own"], s=2 * sizes, color="0.6", label="own (size: points)")
ax.scatter(side[:, 0], slopes["adapted"], s=2 * sizes, color="#0072b2", label="adapted")
ax.set(xlabel="side information", ylabel="slope of the task")
ax.legend(frameon=False)
plt.show()
