"""The paper's experiments, made small: a few tasks, two values a parameter."""

from __future__ import annotations

import numpy as np

from condmeta.experiments import PANELS, Setting

GRID = np.geomspace(0.1, 10, 2)


def shrink_panels(monkeypatch) -> None:
    """Cut every synthetic panel down to 24 tasks; the real ones need data, and stay."""
    for name, panel in PANELS.items():
        if not panel.is_real:
            small = panel._replace(setting=Setting((12, 6, 6), 0.5), grid=GRID)
            monkeypatch.setitem(PANELS, name, small)


def hide_data(monkeypatch, folder) -> None:
    """Let no real data be found: no variable, an empty cache."""
    import pooch

    monkeypatch.delenv("CONDMETA_DATA", raising=False)
    monkeypatch.setattr(pooch, "os_cache", lambda name: folder / "cache" / name)
