"""
Does side information help, and which column?
=============================================

Before you collect more columns, measure on held-out tasks how much the present ones help.
"""

# %%
# The tasks are airports. Their side columns are latitude, longitude, altitude and time zone.
import matplotlib.pyplot as plt

import condmeta as cm

flights = cm.datasets.load_flights().subset(range(0, 100, 2))
found = cm.advantage(flights, shots=(0, 1, 5), n_splits=3)
print(found)

# %%
# Left: the variance of task coefficients that a column explains alone, and the part that is lost
# without it. Longitude and time zone contain nearly the same information. Right: the error on new
# airports.
columns, gains = found.columns_frame, found.frame
fig, (left, right) = plt.subplots(1, 2, figsize=(8, 3.4), layout="constrained")
places = range(len(columns))
left.barh([p + 0.2 for p in places], columns["alone"], height=0.4, color="#d55e00", label="alone")
left.barh(
    [p - 0.2 for p in places], columns["unique"], height=0.4, color="#0072b2",
    label="lost without it",
)  # fmt: skip
left.set_yticks(places, columns["column"])
left.set(xlabel="variance of coefficients explained")
left.legend(frameon=False)
for name, colour, label in (
    ("without", "#0072b2", "without side columns"),
    ("with_side", "#d55e00", "with"),
):
    right.plot(gains["n_support"], gains[name], marker="o", color=colour, label=label)
right.set(xlabel="flights seen", ylabel="error, minutes", yscale="log")
right.legend(frameon=False)
plt.show()
