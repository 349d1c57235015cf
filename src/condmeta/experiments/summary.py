"""Final errors beside the authors', one row a panel and method."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from condmeta.experiments.paper import PANELS
from condmeta.experiments.results import Results


class Row(NamedTuple):
    """The final error of one method: ours (mean, standard error) and the authors' (mean, std)."""

    panel: str
    method: str
    mean: float
    standard_error: float
    authors_mean: float
    authors_std: float

    @property
    def difference(self) -> float:
        """Ours above the authors', in parts of theirs."""
        return (self.mean - self.authors_mean) / self.authors_mean

    def cells(self) -> tuple[str, str, str, str]:
        """Return method, ours, theirs and difference as text; a dash where there is no number.

        Examples
        --------
        >>> Row("lenk", "ITL", 3.62, 0.05, 3.56, 0.19).cells()
        ('ITL', '3.62 (0.05)', '3.56 (0.19)', '+1.7%')
        """
        ours = f"{self.mean:.2f}"
        if not np.isnan(self.standard_error):
            ours += f" ({self.standard_error:.2f})"
        if np.isnan(self.authors_mean):
            return self.method, ours, "-", "-"
        theirs = f"{self.authors_mean:.2f} ({self.authors_std:.2f})"
        return self.method, ours, theirs, f"{self.difference:+.1%}"


def summarise(results: Mapping[str, Results]) -> list[Row]:
    """Return the rows of some panels; nan where the authors published nothing."""
    rows = []
    for panel, found in results.items():
        for method in found.methods:
            finals = found.finals(method)
            error = np.std(finals, ddof=1) / np.sqrt(len(finals)) if len(finals) > 1 else np.nan
            told = PANELS[panel].published.get(method)
            theirs = (told.mean, told.std) if told else (np.nan, np.nan)
            rows.append(Row(panel, method, float(finals.mean()), float(error), *theirs))
    return rows
