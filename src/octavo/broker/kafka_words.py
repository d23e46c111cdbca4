"""Error messages in the words that Apache Kafka has for them, because programs and people look for these."""

from __future__ import annotations

import re
from typing import Final

from octavo.errors import InvalidConfig, RecordError
from octavo.log.config.log_config import TOPIC_OPTIONS
from octavo.log.config.values import Integer, Kind, Member, Ratio, Switch, Throttled, Word, Words
from octavo.log.names import TopicPartition, topic_name_problem
from octavo.records.layout import MAX_INT32

_OUTSIDE: Final = re.compile(r"its timestamp (-?\d+) is not between (-?\d+) and (-?\d+)")
_MAX_NAME: Final = 249
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,40}")
MALFORMED: Final = (
    "This most likely occurs because of a request being malformed by the client library or the message was sent to an "
    "incompatible broker. See the broker logs for more details."
)
NO_TIERS: Final = (
    "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log storage."
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


def record_problem(error: RecordError, partition: TopicPartition) -> RecordError:
    """Return what is wrong with a record."""
    from octavo.log.append.refusals import WHY_RECORD
    from octavo.records.kernels.validate import APPEND_TIME_CLAIMED, NO_KEY

    time = _OUTSIDE.fullmatch(error.message)
    if time is not None:
        timestamp, earliest, latest = time.groups()
        what = (
            f"Timestamp {timestamp} of message with offset {error.record_index} is out of range. The timestamp should "
            f"be within [{earliest}, {latest}]"
        )
    elif error.message == WHY_RECORD[APPEND_TIME_CLAIMED]:
        what = "Invalid timestamp type in message. Producer should not set timestamp type to LogAppendTime."
    elif error.message == WHY_RECORD[NO_KEY]:
        what = f"Compacted topic cannot accept message without key in topic partition {partition}"
    else:
        return error
    return error._replace(message=what)


def read_node_id(text: str) -> int | None:
    """Return a number that Java takes for an `int`; None if it is none."""
    number = int(text) if _INTEGER.fullmatch(text) else MAX_INT32 + 1
    return number if -MAX_INT32 - 1 <= number <= MAX_INT32 else None


def config_problem(error: InvalidConfig) -> str:
    """Return what is wrong with a setting of a topic."""
    if error.name not in TOPIC_OPTIONS.names:
        return f"Unknown topic config name: {error.name}"
    problem = value_problem(error.name, TOPIC_OPTIONS.kind(error.name), str(error.value))
    if problem is None and error.name == "min.compaction.lag.ms":
        largest = error.allowed.rpartition(" ")[2]
        return f"conflict topic config setting {error.name} ({error.value}) > max.compaction.lag.ms ({largest})"
    return problem or error.allowed


def value_problem(name: str, kind: Kind, text: str) -> str | None:
    """Return what is wrong with the value of any setting; None if nothing is."""
    invalid = f"Invalid value {text} for configuration {name}:"
    try:
        value = kind.read(text)
    except ValueError:
        return f"{invalid} {_malformed(kind)}"
    if isinstance(kind, Integer) and not kind.smallest <= value <= kind.largest:
        return f"{invalid} {_malformed(kind)}"
    if kind.accepts(value):
        return None
    if isinstance(kind, Ratio):
        bound = "at least 0" if value < 0 else "no more than 1"
        return f"Invalid value {value} for configuration {name}: Value must be {bound}"
    if isinstance(kind, Throttled):
        return (
            f"Invalid value [{', '.join(value)}] for configuration {name}: {name} must be the literal '*' or a list of "
            f"replicas in the following format: [partitionId]:[brokerId],[partitionId]:[brokerId],..."
        )
    if isinstance(kind, Words):
        wrong = next(word for word in _items(text) if word not in kind.words)
        return f"Invalid value {wrong} for configuration {name}: String must be one of: {', '.join(kind.words)}"
    if isinstance(kind, Integer):
        return f"Invalid value {value} for configuration {name}: {_out_of_range(kind, value)}"
    return f"{invalid} {_malformed(kind)}"


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.split(",")]


def _out_of_range(kind: Integer, value: int) -> str:
    if kind.also is not None:
        return f"Value must be between {kind.minimum} and {kind.maximum} or equal to {kind.also}"
    if value < kind.minimum:
        return f"Value must be at least {kind.minimum}"
    return f"Value must be no more than {kind.maximum}"


def _malformed(kind: Kind) -> str:
    if isinstance(kind, Integer):
        return f"Not a number of type {'INT' if kind.is_int32 else 'LONG'}"
    if isinstance(kind, Ratio):
        return "Not a number of type DOUBLE"
    if isinstance(kind, Switch):
        return "Expected value to be either true or false"
    if isinstance(kind, (Word, Member)):
        return f"String must be one of: {', '.join(kind.words)}"
    return f"it must be {kind.allowed}"
