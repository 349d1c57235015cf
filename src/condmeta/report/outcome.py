"""The outcome of a reproduction as plain data, for machines."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from condmeta.experiments.claims import claims_of
from condmeta.experiments.reproduction import Reproduction
from condmeta.experiments.summary import summarise


def outcome_of(found: Reproduction, page: Path | None = None) -> dict[str, Any]:
    """Return panels, errors, claims and files as a dict that JSON can hold; None for no number."""
    panels = {}
    for name, results in found.results.items():
        told = {key: results.provenance.get(key) for key in ("seeds", "seconds", "engine")}
        verdicts = [(claim.sentence, claim.judge(results)) for claim in claims_of(name)]
        panels[name] = {
            **told,
            "reused": name in found.reused,
            "errors": [
                {key: _number(value) for key, value in row._asdict().items() if key != "panel"}
                for row in summarise({name: results})
            ],
            "claims": [
                {"claim": sentence, "holds": verdict.holds, "numbers": verdict.numbers}
                for sentence, verdict in verdicts
            ],
        }
    files = [f"{found.out / name}.{kind}" for name in found.results for kind in ("csv", "json")]
    return {
        "panels": panels,
        "skipped": found.skipped,
        "files": files,
        "report": None if page is None else str(page),
    }


def _number(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value
