"""Accuracy on new tasks, beside what users pick instead: `python -m benchmarks.accuracy`.

A data set is split into training tasks and new tasks. Every method is fitted to the former; of a
new task it then sees n support points and predicts the query points. The rows are the same for
all methods. Errors are mean absolute errors; times are processor seconds.
"""
