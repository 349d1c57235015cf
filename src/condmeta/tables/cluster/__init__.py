"""Fit and predict on the workers of a Dask cluster (needs `distributed`)."""
