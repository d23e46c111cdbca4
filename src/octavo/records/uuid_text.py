"""The text of a UUID, as Kafka writes it."""

from __future__ import annotations

import base64
import re
import uuid
from typing import Final

from octavo.errors import InvalidInput

_ID_TEXT: Final = re.compile(r"[A-Za-z0-9_-]{22}(?:==)?")


def write_uuid(value: uuid.UUID) -> str:
    """Return an id as Kafka writes it: 22 characters of URL-safe base64, without padding."""
    return base64.urlsafe_b64encode(value.bytes).rstrip(b"=").decode("ascii")


def read_uuid(text: str) -> uuid.UUID:
    """Parse an id written by `write_uuid` or by Kafka. Raises `InvalidInput`."""
    if _ID_TEXT.fullmatch(text) is None:
        raise InvalidInput(f"{text[:40]!r} is no id: 22 characters of URL-safe base64 are")
    return uuid.UUID(bytes=base64.urlsafe_b64decode(text[:22] + "=="))
