"""What type checkers and editors know of calls; checked by tests/contracts/test_types.py."""

from pathlib import Path
from typing import Any, assert_type

import numpy as np
import pandas as pd
import polars as pl

import condmeta as cm

X, y, task = np.eye(2), np.ones(2), ["a", "b"]
frame, other = pd.DataFrame({"x": [1.0]}), pl.DataFrame({"x": [1.0]})
table = cm.TaskTable({"size": [1.0, 2.0]}, ids=task)
tasks = cm.TaskSet.from_arrays(X, y, task, side_info=table)

model = cm.ConditionalRidge().fit(X, y, task=task, side_info=table)
assert_type(model, cm.ConditionalRidge)
assert_type(model.fit(frame, frame["x"], task=frame["x"], side_info=frame), cm.ConditionalRidge)
assert_type(
    model.fit(other, other["x"], task=other["x"], side_info={"a": {"size": 1.0}}),
    cm.ConditionalRidge,
)
assert_type(model.fit(tasks).update(X, y, task=task), cm.ConditionalRidge)
assert_type(model.predict(X, task=task), np.ndarray)
assert_type(model.predict(X, task=task, return_std=True), tuple[np.ndarray, np.ndarray])
assert_type(model.M_, np.ndarray)
assert_type(model.summary().noise, float | None)

one, many = model.adapt(X, y, side_info={"size": 1.0}), model.adapt(X, y, task=task)
assert_type(one, cm.TaskModel)
assert_type(many, cm.TaskModels)
assert_type(model.adapt(tasks), cm.TaskModels)
assert_type(one.predict(X), np.ndarray)
assert_type(one.predict(X, return_std=True), tuple[np.ndarray, np.ndarray])
assert_type(many["a"], cm.TaskModel)
assert_type(many.predict(X, task=task), np.ndarray)

other_learner = cm.ConditionalLogistic().fit(X, ["no", "yes"], task=task)
assert_type(other_learner, cm.ConditionalLogistic)
assert_type(other_learner.predict_proba(X, task=task), np.ndarray)
assert_type(cm.merge(model, model), cm.ConditionalRidge)

reader = cm.TableModel(task="a", target="b").fit(frame, other)
assert_type(reader, cm.TableModel)
assert_type(reader.predict(frame), np.ndarray)
assert_type(reader.predict(frame, coverage=0.9), tuple[np.ndarray, np.ndarray, np.ndarray])
assert_type(reader.score(frame), float)
reader.save(Path("a.condmeta"))

found = cm.compare(tasks)
assert_type(found, cm.Comparison)
assert_type(found.to_html(), str)
assert_type(found.to_html("a.html"), Path)
assert_type(found.advised, str)
assert_type(found.frame, Any)  # a table of the input's library
assert_type(cm.check(model, X, y, task=task), cm.CheckReport)
assert_type(cm.advantage(tasks), cm.Advantage)
assert_type(tasks.split_points(3), tuple[cm.TaskSet, cm.TaskSet])
