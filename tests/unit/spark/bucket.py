"""A bucket of an S3-compatible server on loopback."""

from __future__ import annotations

from pathlib import Path

import boto3


class Bucket:
    """A bucket, and its address."""

    def __init__(self, port: int) -> None:
        self._query = f"?region=us-east-1&scheme=http&endpoint_override=127.0.0.1%3A{port}"
        self._client = boto3.client("s3", endpoint_url=f"http://127.0.0.1:{port}", region_name="us-east-1")
        self._client.create_bucket(Bucket="logs")

    def address(self, path: str, scheme: str = "s3") -> str:
        """Of something in it."""
        return f"{scheme}://logs/{path}{self._query}"

    def put(self, folder: Path, prefix: str) -> None:
        """Copy a folder there, as a backup does."""
        for path in folder.rglob("*"):
            if path.is_file():
                self._client.upload_file(str(path), "logs", f"{prefix}/{path.relative_to(folder)}")

    def remove(self, key: str) -> None:
        """Remove an object."""
        self._client.delete_object(Bucket="logs", Key=key)
