"""One child process for each way to run the kernels, for all tests that damage things."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.corruption.child import MODES, Child


@pytest.fixture(scope="session", params=MODES)
def child(request: pytest.FixtureRequest) -> Iterator[Child]:
    child = Child(request.param)
    yield child
    child.close()
