"""A broker for all tests of a module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from octavo.server.serving import Server, serve


@pytest.fixture(scope="module")
def served() -> Iterator[Server]:
    with serve() as server:
        yield server
