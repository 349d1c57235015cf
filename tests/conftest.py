"""Shared fixtures: both engines, and every loss."""

from __future__ import annotations

import os

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


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Turn a skip into a failure for the markers that CONDMETA_REQUIRE lists, as CI does."""
    report = yield
    required = os.environ.get("CONDMETA_REQUIRE", "").split()
    if report.skipped and any(item.get_closest_marker(name) for name in required):
        report.outcome = "failed"
        report.longrepr = f"skipped, but CONDMETA_REQUIRE asks for it: {report.longrepr}"
    return report
