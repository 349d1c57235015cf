"""
A first model: flights to a new airport
=======================================

Fit a model to many airports. Predict a new airport without any flight, then with five flights.
"""

# %%
# The data come with the library: the time in the air by hour and season, and the location of each
# airport.
import matplotlib.pyplot as plt
import numpy as np

import condmeta as cm

flights = cm.datasets.load_flights()
new = flights.position("SEA")
known = flights.subset([t for t in range(len(flights)) if t != new])
seattle = flights[new]
print(known)

# %%
# Fitting takes one line. Without a flight, the starting coefficients are computed from the location
# alone.
model = cm.ConditionalRidge().fit(known)
start = model.adapt(side_info=seattle.side)
five = model.adapt(cm.TaskSet.from_tasks([seattle]).split_points(5, random_state=0)[0])
print(f"start: {start.intercept_:.0f} min + {start.coef_[1]:.0f} min in winter")

# %%
# Predictions of both models for all flights to Seattle.
day = np.argsort(np.arctan2(seattle.X[:, 2], seattle.X[:, 1]) % (2 * np.pi))
rows = seattle.X[day]
fig, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
ax.plot(seattle.y[day], ".", color="0.6", label="flights to Seattle, January to December")
ax.plot(start.predict(rows), color="#0072b2", label="no flight seen")
ax.plot(five[seattle.id].predict(rows), color="#d55e00", label="five flights seen")
ax.set(xlabel="flight", ylabel="minutes in the air")
ax.legend(frameon=False)
plt.show()
