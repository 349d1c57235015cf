"""Figures (matplotlib) and HTML pages of models and results."""
