"""
Error against the number of rows
================================

How many labelled rows (points) does a new task need? We compare each task's own data, one model for
all tasks, and a learned prior without and with side information, on tasks that none of them has
seen.
"""

# %%
# Simulated tasks: the slopes of a task depend on its side column, plus chance.
import matplotlib.pyplot as plt
import numpy as np

import condmeta as cm

rng = np.random.default_rng(0)
n_tasks, n = 160, 24
side = rng.normal(size=(n_tasks, 1))
w = np.hstack([2 * side, 1 + 0 * side, -side]) + 0.5 * rng.normal(size=(n_tasks, 3))
task = np.repeat(np.arange(n_tasks), n)
X = rng.normal(size=(n_tasks * n, 3))
y = np.einsum("ij,ij->i", X, w[task]) + rng.normal(size=len(X))
tasks = cm.TaskSet.from_arrays(X, y, task, cm.TaskTable(side, ids=range(n_tasks)))
known, new = tasks.split_tasks((100, 60), random_state=0)

# %%
# Every learner adapts to the first points of a new task and predicts its last ten.
learners = {
    "own points only": cm.IndependentRegressor(),
    "one model for all": cm.PooledRegressor(),
    "learned prior": cm.ConditionalRidge(feature_map=None),
    "prior and side column": cm.ConditionalRidge(),
}
colours = ["#595959", "black", "#0072b2", "#d55e00"]  # those of `condmeta compare`
shots = [0, 1, 2, 3, 5, 8, 14]
first, query = new.split_points(14, order="first")
fig, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
for (name, learner), colour in zip(learners.items(), colours, strict=True):
    learner.fit(known)
    errors = []
    for shown in shots:
        models = learner.adapt(first.split_points(shown, order="first")[0])
        predicted = models.predict(query.X, task=np.repeat(query.ids, query.sizes))
        errors.append(np.abs(predicted - query.y).mean())
    ax.plot(shots, errors, marker="o", color=colour, label=name)
    print(f"{name:22s}", *(f"{error:.2f}" for error in errors))
ax.axhline(np.sqrt(2 / np.pi), color="0.6", linestyle=":", label="noise alone")
ax.set(xlabel="points of the new task", ylabel="mean absolute error", ylim=(0.7, None))
ax.legend(frameon=False)
plt.show()
