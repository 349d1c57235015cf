"""
A stream of tasks, and more rows of known tasks
===============================================

`partial_fit` adds new tasks and improves the map from side information to starting coefficients.
`update` adds rows (points) of known tasks: it changes their own models and leaves the map as it is.
"""

# %%
# Tasks arrive in groups of five. The learner keeps statistics of each task, not its rows.
import matplotlib.pyplot as plt
import numpy as np

import condmeta as cm

rng = np.random.default_rng(1)
M = rng.normal(size=(3, 2))


def draw(first, count, n=6):
    """Return tasks; their ids start at `first`."""
    side = rng.normal(size=(count, 2))
    w = side @ M.T + 0.3 * rng.normal(size=(count, 3))
    task = np.repeat(np.arange(count), n)
    X = rng.normal(size=(count * n, 3))
    y = np.einsum("ij,ij->i", X, w[task]) + 0.5 * rng.normal(size=len(X))
    table = cm.TaskTable(side, ids=range(first, first + count))
    return cm.TaskSet.from_arrays(X, y, task + first, table)


new = draw(10_000, 200)
model, seen, errors = cm.ConditionalRidge(metric="diagonal", noise="shared"), [], []
for day in range(12):
    model.partial_fit(draw(5 * day, 5))
    errors.append(np.abs(model.predict(new) - new.restore_order(new.y)).mean())
    seen.append(model.n_tasks_)
print(*(f"{n}: {error:.2f}" for n, error in zip(seen, errors, strict=True)))


# %%
# Ten more points of task 7 change its own model, but not the prior of any task.
def of_task_7(model):
    """Return its coefficients as a table: prior, own, adapted, shift, n."""
    table = model.coef_frame()
    return table[table["task"] == 7].round(2).to_string(index=False)


print(of_task_7(model))
X = rng.normal(size=(10, 3))
model.update(X, X @ [1.0, 1.0, 1.0], task=np.full(10, 7))
print(of_task_7(model))

# %%
# With more tasks, the predictions for tasks without points improve.
fig, ax = plt.subplots(figsize=(6.5, 3.4), layout="constrained")
ax.plot(seen, errors, marker="o", color="#d55e00")
ax.set(xlabel="tasks seen", ylabel="error on new tasks without points")
plt.show()
