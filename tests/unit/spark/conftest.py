"""A bucket for the tests of a module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.unit.spark.bucket import Bucket, serving


@pytest.fixture(scope="module")
def bucket() -> Iterator[Bucket]:
    """An empty bucket on a server of its own."""
    with serving() as bucket:
        yield bucket
