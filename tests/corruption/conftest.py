"""One child process for each way to run the kernels, for all tests that damage things."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from tests.corruption.child import MODES, Child


@pytest.fixture(scope="session", params=MODES)
def child(request: pytest.FixtureRequest) -> Iterator[Child]:
    if sys.platform != "linux":
        pytest.skip("guard pages and limits are made the way that Linux has them")
    child = Child(request.param)
    yield child
    child.close()
