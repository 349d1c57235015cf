"""Bad values of the arguments that most calls share: X, y, task and side_info."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pandas as pd
import polars as pl

N, D = 24, 2
rng = np.random.default_rng(0)
X = rng.normal(size=(N, D))
TASK = np.repeat([f"store {t}" for t in range(8)], 3)
SIDE = pd.DataFrame({"size": rng.normal(size=8), "city": list("ABABABAB")}, index=sorted(set(TASK)))
Y = X @ [1.0, -2.0] + np.repeat(SIDE["size"].to_numpy(), 3) + 0.1 * rng.normal(size=N)
FRAME = pd.DataFrame(X, columns=["price", "rain"])
GAPPY = pd.array([None] + [True] * (N - 1), "boolean")
BEYOND = 10**400  # an integer that no column of numbers can hold


def put(array: Any, at: Any, value: Any, dtype: Any = object) -> np.ndarray:
    """Return a copy with one value changed."""
    copy = np.array(array, dtype=dtype)
    copy[at] = value
    return copy


def with_one(array: np.ndarray, at: Any) -> dict[str, Any]:
    """Return kinds of arrays in which one value is bad."""
    kinds = {
        "NaN": np.nan, "infinity": np.inf, "minus infinity": -np.inf, "None": None,
        "text": "red", "an empty text": "", "a complex number": 1j, "bytes": b"red",
        "a dict": {}, "a list": [1.0], "a date": datetime.date(2024, 1, 31),
        "an integer of 400 digits": BEYOND, "a function": print,
    }  # fmt: skip
    return {
        f"{name} in one cell": put(array, at, value, float if isinstance(value, float) else object)
        for name, value in kinds.items()
    }


BAD_X = with_one(X, (3, 1)) | {
    "numbers written as text": X.astype(str),
    "complex numbers": X + 1j,
    "dates": X.astype("datetime64[D]"),
    "durations": X.astype("timedelta64[s]"),
    "a masked array": np.ma.masked_array(X, X > 1),
    "a structured array": np.zeros(N, dtype=[("a", float), ("b", float)]),
    "one dimension": X[:, 0],
    "three dimensions": X[:, :, None],
    "a number": 3.0,
    "a text": "rows.csv",
    "a set": {1.0, 2.0},
    "a dict of columns": {"price": X[:, 0]},
    "a generator": (row for row in X),
    "a class": np.ndarray,
    "rows of different lengths": [[1.0, 2.0], [3.0]] * (N // 2),
    "no rows": X[:0],
    "no columns": X[:, :0],
    "a frame with text": FRAME.assign(rain="wet"),
    "a frame with NaN": FRAME.assign(rain=put(X[:, 1], 3, np.nan, float)),
    "a frame with dates": FRAME.assign(rain=pd.Timestamp("2024-01-31")),
    "a frame with a category": FRAME.assign(rain=pd.Categorical(["wet"] * N)),
    "a frame with booleans and NA": FRAME.assign(rain=GAPPY),
    "a frame with a column twice": FRAME[["price", "price"]],
    "a frame of polars with null": pl.DataFrame({"price": X[:, 0], "rain": [None, *X[1:, 1]]}),
    "a frame of polars with text": pl.DataFrame({"price": X[:, 0], "rain": ["wet"] * N}),
}  # fmt: skip
OTHER_WIDTHS = {
    "a column fewer": X[:, :1],
    "a column more": np.column_stack([X, X[:, 0]]),
    "a frame with other names": FRAME.rename(columns={"rain": "snow"}),
    "a frame with other order": FRAME[["rain", "price"]],
}
BAD_Y = with_one(Y, 3) | {
    "nothing (None)": None,
    "a value fewer": Y[:-1],
    "a value more": np.append(Y, 1.0),
    "no values": Y[:0],
    "two columns": np.column_stack([Y, Y]),
    "a number": 3.0,
    "a text": "sold",
    "numbers written as text": Y.astype(str),
    "complex numbers": Y + 1j,
    "dates": Y.astype("datetime64[D]"),
    "durations": Y.astype("timedelta64[s]"),
    "a masked array": np.ma.masked_array(Y, Y > 1),
    "a series with NaN": pd.Series(put(Y, 3, np.nan, float)),
    "a series of text": pd.Series(["high"] * N),
    "a series of booleans with NA": pd.Series(GAPPY),
}  # fmt: skip
BAD_CLASSES = {
    "one class": np.zeros(N, int),
    "numbers that are no classes": Y,
    "a label that is missing (None)": put(np.where(Y > 0, "yes", "no"), 3, None),
    "a label that is NaN": put(np.where(Y > 0, 1.0, 0.0), 3, np.nan, float),
    "labels of two types": put(np.where(Y > 0, 1, 0), 3, "1"),
    "labels that are lists": put(np.where(Y > 0, 1, 0), 3, [1]),
    "two columns of labels": np.column_stack([Y > 0, Y < 0]),
    "a label fewer": (Y > 0)[:-1],
}
BAD_TASK = {
    "an id fewer": TASK[:-1],
    "an id more": np.append(TASK, "store 1"),
    "no ids": TASK[:0],
    "a number": 3,
    "an id that is None": put(TASK, 3, None),
    "an id that is NaN": put(np.repeat(np.arange(8.0), 3), 3, np.nan, float),
    "an id that is a list": put(TASK, 3, ["a"]),
    "an id that is a dict": put(TASK, 3, {}),
    "3 and '3' as ids": put(np.repeat(np.arange(8), 3), 3, "3"),
    "a column that does not exist": "shop",
    "three dimensions": TASK[:, None, None],
    "a masked array": np.ma.masked_array(np.repeat(np.arange(8), 3), np.arange(N) == 3),
}
BAD_SIDE = {
    "an array without ids": SIDE[["size"]].to_numpy(),
    "a row for some tasks only": SIDE[:3],
    "a task twice": pd.concat([SIDE, SIDE[:1]]),
    "no rows": SIDE[:0],
    "infinity": SIDE.assign(size=put(SIDE["size"], 3, np.inf, float)),
    "complex numbers": SIDE.assign(size=SIDE["size"] + 1j),
    "dates": SIDE.assign(size=pd.Timestamp("2024-01-31")),
    "lists": SIDE.assign(size=[[1.0]] * 8),
    "ids of another type": SIDE.set_axis(range(8)),
    "ids that are None": SIDE.set_axis(put(SIDE.index, 3, None)),
    "a number": 3.0,
    "a text": "stores.csv",
    "a column twice": SIDE[["size", "size"]],
    "a dict of other tasks": {"store 99": 1.0},
}
