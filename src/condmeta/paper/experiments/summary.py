"""Final errors beside those of the authors, as rows of a table and as plain data for JSON."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from condmeta.paper.experiments.claims import claims_of
from condmeta.paper.experiments.panels import PANELS
from condmeta.paper.experiments.reproduction import Reproduction
from condmeta.paper.experiments.results import Results, standard_error


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
        """Our mean minus the authors' mean, as a share of theirs."""
        return (self.mean - self.authors_mean) / self.authors_mean

    def cells(self) -> tuple[str, str, str, str]:
        """Return method, our error, their error and the difference as text; "-" for no number.

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
        return self.method, ours, theirs, f"{self.difference:+z.1%}"


def summarise(results: Mapping[str, Results]) -> list[Row]:
    """Return the rows of some panels; nan where the authors published no error."""
    rows = []
    for panel, found in results.items():
        for method in found.methods:
            finals = found.finals(method)
            published = PANELS[panel].published.get(method)
            theirs = (published.mean, published.std) if published else (np.nan, np.nan)
            rows.append(Row(panel, method, float(finals.mean()), standard_error(finals), *theirs))
    return rows


def to_json(found: Reproduction, page: Path | None = None) -> dict[str, Any]:
    """Return panels, errors, claims and files as a dict for JSON; a missing number is None."""
    panels = {}
    for name, results in found.results.items():
        panels[name] = {
            **{key: results.provenance.get(key) for key in ("seeds", "seconds", "engine")},
            "reused": name in found.reused,
            "errors": [
                {key: _number(value) for key, value in row._asdict().items() if key != "panel"}
                for row in summarise({name: results})
            ],
            "claims": [
                {"claim": claim.sentence, **claim.judge(results)._asdict()}
                for claim in claims_of(name)
            ],
        }
    files = [f"{found.out / name}.{kind}" for name in found.results for kind in ("csv", "json")]
    report = None if page is None else str(page)
    return {"panels": panels, "skipped": found.skipped, "files": files, "report": report}


def _number(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value
