"""
Intervals for tasks nobody has seen
===================================

`calibrate` holds tasks out and measures how far the learner is off on them. Its intervals hold for
new tasks, whatever the learner assumes, as far as new tasks are drawn like the known ones.
"""

# %%
# Calibrate on two thirds of the airports.
import matplotlib.pyplot as plt
import numpy as np

import condmeta as cm

flights = cm.datasets.load_flights()
known, new = flights.split_tasks((66, 34), random_state=0)
learner = cm.calibrate(cm.ConditionalRidge(metric="full"), known, shots=(0, 5), n_splits=3)

# %%
# Every new airport without a flight, and with five.
few, rest = new.split_points(5, random_state=0)
task = np.repeat(rest.ids, rest.sizes)
ends = {
    "no flight seen": learner.predict_interval(rest),
    "five flights seen": learner.adapt(few).predict_interval(rest.X, task=task),
}
y = {"no flight seen": rest.restore_order(rest.y), "five flights seen": rest.y}
for name, (low, high) in ends.items():
    inside = (low <= y[name]) & (y[name] <= high)
    print(f"{name}: {inside.mean():.0%} inside, width {np.median(high - low):.0f} min")

# %%
# The intervals of the first flights of each airport, in order of their length.
fig, axes = plt.subplots(1, 2, figsize=(8, 3.4), sharey=True, layout="constrained")
for ax, (name, (low, high)) in zip(axes, ends.items(), strict=True):
    shown = np.argsort((low + high) / 2)[::12]
    ax.vlines(range(len(shown)), low[shown], high[shown], color="#56b4e9", label="90 % interval")
    ax.plot(y[name][shown], ".", color="black", markersize=3, label="flight")
    ax.set(title=name, xlabel="flights to new airports")
axes[0].set_ylabel("minutes in the air")
axes[0].legend(frameon=False)
plt.show()
