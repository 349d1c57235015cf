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
