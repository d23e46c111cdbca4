"""A bucket of an S3-compatible server on loopback."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import boto3
import pytest
from moto.server import ThreadedMotoServer


class Bucket:
    """A bucket, and its address."""

    def __init__(self, port: int) -> None:
        self._query = f"?region=us-east-1&scheme=http&endpoint_override=127.0.0.1%3A{port}"
        self._client = boto3.client("s3", endpoint_url=f"http://127.0.0.1:{port}", region_name="us-east-1")
        self._client.create_bucket(Bucket="logs")

    def address(self, path: str, scheme: str = "s3") -> str:
        """Of something in it."""
        return f"{scheme}://logs/{path}{self._query}"

    def address_with_keys(self, path: str) -> str:
        """The same, for processes that do not have the keys in their environment."""
        return self.address(path).replace("://", "://test:test@", 1)

    def put(self, folder: Path, prefix: str) -> None:
        """Copy a folder there, as a backup does."""
        for path in folder.rglob("*"):
            if path.is_file():
                self._client.upload_file(str(path), "logs", f"{prefix}/{path.relative_to(folder)}")

    def remove(self, key: str) -> None:
        """Remove an object."""
        self._client.delete_object(Bucket="logs", Key=key)


@contextmanager
def serving() -> Iterator[Bucket]:
    """An empty bucket on a server of its own, whose keys are in the environment."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", "test")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
        server.start()
        _, port = server.get_host_and_port()
        yield Bucket(port)
        server.stop()
