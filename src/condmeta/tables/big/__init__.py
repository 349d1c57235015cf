"""Fit to rows in many files, in any order, that need not fit into memory (needs DuckDB)."""
