"""
Prediction intervals for new tasks
==================================

`calibrate` measures the errors of the learner on held-out tasks. Its intervals are valid for new
tasks from the same population, even if the assumptions of the learner are wrong.
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
# Intervals for the new airports, without a flight and with five flights.
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
# Every twelfth interval, in order of the predicted time.
fig, axes = plt.subplots(1, 2, figsize=(8, 3.4), sharey=True, layout="constrained")
for ax, (name, (low, high)) in zip(axes, ends.items(), strict=True):
    shown = np.argsort((low + high) / 2)[::12]
    ax.vlines(range(len(shown)), low[shown], high[shown], color="#56b4e9", label="90 % interval")
    ax.plot(y[name][shown], ".", color="black", markersize=3, label="flight")
    ax.set(title=name, xlabel="flights to new airports")
axes[0].set_ylabel("minutes in the air")
axes[0].legend(frameon=False)
plt.show()
