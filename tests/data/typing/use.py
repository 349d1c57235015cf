"""What type checkers and editors know of calls; checked by tests/contracts/test_types.py."""

from pathlib import Path
from typing import Any, assert_type

import numpy as np
import pandas as pd
import polars as pl
from sklearn.linear_model import LinearRegression
from sklearn.preprocessing import StandardScaler

import condmeta as cm
from condmeta.typing import Estimator

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

# Parameters take all that the documentation says.
cm.ConditionalRidge(metric="full", noise="per_task", kappa=1.0, random=["x"], drift=("ar", 0.9))
cm.ConditionalRidge(None, base="boosting", x_transform="splines", y_transform="log", context=True)
cm.ConditionalRidge(StandardScaler(), base=LinearRegression(), x_transform=StandardScaler())
cm.ConditionalRidge([cm.feature_maps.MeanInput(), cm.feature_maps.Identity()], side_key=["a", "b"])
cm.ConditionalSGDRegressor(loss=cm.losses.Huber(1.0), meta_step=cm.outer_steps.Adam(0.1))
cm.ConditionalSGDRegressor(meta_step=lambda t: 1.0 / t, averaging="last", scale="rows")
cm.KernelConditionalSGDRegressor(cm.kernels.GaussianKernel(2.0), lam=0.1)
cm.KernelConditionalSGDRegressor(lambda a, b: float(a @ b))
cm.AutoRegressor(shots=(0, 1), criterion="log density", random_state=np.random.default_rng(0))
cm.ConditionalERMRegressor(lam="auto", kappa=2.0, loss="pinball")
cm.ConditionalOrdinal(classes=["low", "high"])
cm.ConditionalSGDRegressorCV(lams=np.logspace(-3, 3, 7), split=cm.TaskSplit(3, support=1))
cm.TableModel(cm.ConditionalRidge(), task=["a", "b"], target="y", dates=["days"], decimal=",")

env = cm.environments.Circle(d=2)
sample = env.sample(5, random_state=0)
assert_type(cm.theory.variance(env, "best").value, float)
assert_type(cm.theory.gap(env, lambda tasks: np.zeros((5, 2))).root, float)
assert_type(cm.theory.excess_risk(env, sample, sample.weights), np.ndarray)
assert_type(
    cm.theory.excess_risk(env, sample, sample.weights, return_error=True),
    tuple[np.ndarray, np.ndarray],
)
assert_type(cm.theory.best_linear(env, cm.feature_maps.CircleMap()), cm.theory.BestLinear)
assert_type(cm.theory.best_linear(env, cm.kernels.GaussianKernel()), cm.theory.BestKernel)
assert_type(
    cm.experiments.run(env, {"ridge": model}, setting=(9, (5, 2, 2)), metric="squared"),
    cm.experiments.Results,
)
assert_type(cm.calibrate(model, tasks, bounds=(0.0, 1.0)), cm.Calibrated)
assert_type(cm.compare(tasks, learners={"one": model}, criterion="squared").model, Estimator)
assert_type(cm.plots.MapDisplay.from_estimator(model), cm.plots.MapDisplay)
assert_type(cm.plots.MapDisplay.from_estimator(reader), cm.plots.MapDisplay)
assert_type(cm.losses.Huber(1.0).value([1.0], 0.0), np.ndarray)
assert_type(cm.datasets.load_schools(Path("a")), cm.TaskSet)
assert_type(cm.TaskSet.from_frame(frame, "a", "b"), cm.TaskSet)
assert_type(cm.TaskSet.from_frame(other, ["a", "b"]), cm.TaskSet)
assert_type(cm.from_formula("y ~ x | g", frame), cm.FormulaModel)
assert_type(cm.plots.ShotCurveDisplay.from_frame(frame), cm.plots.ShotCurveDisplay)
assert_type(many.coef_, np.ndarray)
assert_type(cm.plots.CoverageDisplay.from_estimator(model, X, y), cm.plots.CoverageDisplay)
assert_type(cm.shrink({"a": 1.0}, std_errors={"a": 0.1}), cm.Shrinkage)


class Step:
    def sample(self, n_tasks: int, random_state: int) -> Any:
        return n_tasks + random_state


cm.experiments.run(Step(), {"ridge": model}, setting=(9, (5, 2, 2)))
