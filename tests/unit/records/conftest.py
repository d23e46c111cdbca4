"""Fixtures for tests of the formats."""

from __future__ import annotations

import pytest


@pytest.fixture(params=["interpreted", "compiled"])
def each_kind_of_kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs a test twice: one source, and one meaning, whether it is compiled or not."""
    monkeypatch.setenv("OCTAVO_KERNELS", request.param)
