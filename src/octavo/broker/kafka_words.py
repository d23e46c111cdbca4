"""Error messages in the words that Apache Kafka has for them, because programs and people look for these."""

from __future__ import annotations

import contextlib
from typing import Final

from octavo.errors import InvalidConfig
from octavo.log.config.log_config import TOPIC_OPTIONS
from octavo.log.config.values import Integer, Kind, Ratio, Switch
from octavo.log.names import TopicPartition, topic_name_problem

_MAX_NAME: Final = 249
MALFORMED: Final = (
    "This most likely occurs because of a request being malformed by the client library or the message was sent to an "
    "incompatible broker. See the broker logs for more details."
)


def name_problem(name: str) -> str | None:
    """Return what is wrong with the name of a topic; None if nothing is."""
    if topic_name_problem(name) is None:
        return None
    if not name:
        what = "the empty string is not allowed"
    elif name in (".", ".."):
        what = f"'{name}' is not allowed"
    elif len(name) > _MAX_NAME:
        what = f"the length of '{name}' is longer than the max allowed length {_MAX_NAME}"
    else:
        what = f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    return f"Topic name is invalid: {what}"


def no_key(partition: TopicPartition) -> str:
    """Return what is wrong with a record without a key in a compacted topic."""
    return f"Compacted topic cannot accept message without key in topic partition {partition}"


def config_problem(error: InvalidConfig) -> str:
    """Return what is wrong with a setting of a topic."""
    if error.name not in TOPIC_OPTIONS.names:
        return f"Unknown topic config name: {error.name}"
    kind = TOPIC_OPTIONS.kind(error.name)
    value = error.value
    with contextlib.suppress(ValueError):
        value = kind.read(str(value)) if isinstance(kind, Ratio) else value
    return f"Invalid value {value} for configuration {error.name}: {_why(kind, error)}"


def _why(kind: Kind, error: InvalidConfig) -> str:
    try:
        value = kind.read(str(error.value))
    except ValueError:
        if isinstance(kind, Integer):
            return f"Not a number of type {'INT' if kind.is_int32 else 'LONG'}"
        if isinstance(kind, Ratio):
            return "Not a number of type DOUBLE"
        if isinstance(kind, Switch):
            return "Expected value to be either true or false"
        return error.allowed
    if isinstance(kind, Integer) and isinstance(value, int):
        limit = kind.minimum
        return f"Value must be at least {limit}" if value < limit else f"Value must be no more than {kind.maximum}"
    if isinstance(kind, Ratio):
        return "Value must be at least 0" if value < 0 else "Value must be no more than 1"
    return error.allowed
