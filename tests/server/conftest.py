"""A broker for all tests of a module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from octavo.server.serving import Server, serve
from tests.retention import KEPT_FOR_NOW


@pytest.fixture(scope="module")
def served() -> Iterator[Server]:
    with serve(config=KEPT_FOR_NOW) as server:
        yield server
