"""Records and errors of kafka-python: `consumed`, `translated`."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from tests.clients.driver import PATIENCE_S, ClientError, Record

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # it reads its schemas in an old way
    from kafka.errors import KafkaError

_Result = TypeVar("_Result")


def translated(call: Callable[[], _Result]) -> _Result:
    """Call something of kafka-python, and raise its errors as all drivers do."""
    try:
        return call()
    except KafkaError as error:
        code = error.errno if isinstance(error.errno, int) and error.errno >= 0 else None
        raise ClientError(code, repr(error)) from error
    except StopIteration:
        raise ClientError(None, f"no record within {PATIENCE_S} s") from None


def consumed(record: Any) -> Record:
    """Return a record that kafka-python consumed."""
    return Record(
        key=record.key,
        value=record.value,
        headers=tuple(record.headers),
        timestamp_ms=record.timestamp,
        partition=record.partition,
        offset=record.offset,
        timestamp_type="LogAppendTime" if record.timestamp_type else "CreateTime",
    )
