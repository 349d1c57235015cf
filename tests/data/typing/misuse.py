"""Mistakes that a type checker must find: one a line, each marked."""

import numpy as np

import condmeta as cm

model = cm.ConditionalRidge().fit(np.eye(2), np.ones(2), task=["a", "b"])
_ = model.predict(np.eye(2)).colour  # wrong
model.fit(np.eye(2), np.ones(2), tasks=["a", "b"])  # wrong
_ = model.summary().effect_sizes  # wrong
_ = model.adapt(np.eye(2), np.ones(2)).ids  # wrong
cm.ConditionalRidge(kapa=1.0)  # wrong
cm.TaskSet.from_arrays(np.eye(2), np.ones(2), task=object())  # wrong
cm.compare(3.5j, lerners={})  # wrong
model.adapt(np.eye(2), np.ones(2), tsk=["a", "b"])  # wrong
cm.ConditionalRidge(metric="diag")  # wrong
cm.ConditionalRidge(kappa="none")  # wrong
cm.ConditionalRidge(base=3)  # wrong
cm.ConditionalRidge(y_transform="sqrt")  # wrong
cm.ConditionalRidge(missing_side="zero")  # wrong
cm.ConditionalSGDRegressor(loss="huge")  # wrong
cm.ConditionalSGDRegressor(meta_step="fast")  # wrong
cm.ConditionalSGDRegressor(averaging="mean")  # wrong
cm.KernelConditionalSGDRegressor("cubic")  # wrong
cm.AutoRegressor(criterion="r2")  # wrong
cm.compare(np.eye(2), order="last")  # wrong
cm.compare(np.eye(2), shots="many")  # wrong
cm.calibrate(3, np.eye(2))  # wrong
cm.TableModel(task="a", target="b", missing="drop")  # wrong
cm.TableModel(task="a", target="b", dates=["year"])  # wrong
cm.theory.variance(cm.environments.Circle(), None)  # wrong
cm.environments.Circle(inputs="uniform")  # wrong
cm.plots.MapDisplay.from_estimator("model")  # wrong
_ = cm.losses.Huber(1.0).value([1.0], 0.0).colour  # wrong
cm.TableModel(task="a", target="b").fit("sales.csv")  # wrong
