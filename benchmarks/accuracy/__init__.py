"""Accuracy on new tasks, beside the usual alternatives: `python -m benchmarks.accuracy`.

A data set is split into training tasks and new tasks. Every method is fitted to the training tasks.
It then sees n support points of a new task and predicts its query points. The rows are the same for
all methods. Errors are mean absolute errors; times are processor seconds.
"""
