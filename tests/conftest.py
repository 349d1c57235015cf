"""Shared fixtures: both engines, and every loss."""

from __future__ import annotations

import pytest

from condmeta.engine import compiled_core
from condmeta.losses import LOSSES

ENGINES = ["numpy"] if compiled_core() is None else ["numpy", "native"]


@pytest.fixture(params=ENGINES)
def engine(request, monkeypatch):
    """Run the test once on each engine that is installed."""
    monkeypatch.setenv("CONDMETA_ENGINE", request.param)
    return request.param


@pytest.fixture(params=list(LOSSES))
def loss(request):
    """Run the test once for each loss, by name."""
    return request.param
