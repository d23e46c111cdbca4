"""A bucket for the tests of a module."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from moto.server import ThreadedMotoServer

from tests.unit.spark.bucket import Bucket


@pytest.fixture(scope="module")
def bucket() -> Iterator[Bucket]:
    """An empty bucket on a server of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", "test")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
        server.start()
        _, port = server.get_host_and_port()
        yield Bucket(port)
        server.stop()
