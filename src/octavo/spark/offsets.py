"""Offsets of partitions as Spark's Kafka connector writes them: `{"topicA":{"0":23,"1":-1},"topicB":{"0":-2}}`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from octavo.errors import InvalidInput
from octavo.log.names import TopicPartition
from octavo.records.layout import MAX_INT32, MAX_INT64, MIN_INT64

Offsets = dict[TopicPartition, int]
Nested = dict[str, dict[str, int]]  # offsets in the form of the JSON: by topic, then by partition

LATEST: Final = -1  # given in place of an offset
EARLIEST: Final = -2

_NUMBER: Final = re.compile(r"[+-]?[0-9]+")
_OFFSETS: Final = '{"topicA":{"0":23,"1":-1},"topicB":{"0":-2}}'
_TIMESTAMPS: Final = '{"topicA": {"0": 123456789, "1": 123456789}, "topicB": {"0": 123456789, "1": 123456789}}'
_PARTITIONS: Final = '{"topicA":[0,1],"topicB":[0,1]}'


def to_nested(offsets: Mapping[TopicPartition, int]) -> Nested:
    """Convert offsets to the nested form of the JSON, sorted."""
    by_topic: Nested = {}
    for partition, offset in sorted(offsets.items()):
        by_topic.setdefault(partition.topic, {})[str(partition.partition)] = offset
    return by_topic


def from_nested(by_topic: Nested) -> Offsets:
    """Convert the result of `to_nested` back to offsets."""
    return {
        TopicPartition(topic, int(number)): offset
        for topic, offsets in by_topic.items()
        for number, offset in offsets.items()
    }


def read_offsets(text: str) -> Offsets:
    """Parse offsets that a user wrote. Raises `InvalidInput`."""
    return _read_numbers(text, _OFFSETS, EARLIEST)


def read_timestamp(text: str) -> int:
    """Parse one timestamp in milliseconds for all partitions. Raises `InvalidInput`."""
    if not _NUMBER.fullmatch(text) or not MIN_INT64 <= int(text) <= MAX_INT64:
        raise InvalidInput(f"Expected a single long value, got {text}")
    return int(text)


def read_timestamps(text: str) -> Offsets:
    """Parse timestamps in milliseconds, in the same form as offsets. Raises `InvalidInput`."""
    return _read_numbers(text, _TIMESTAMPS, MIN_INT64)


def read_partitions(text: str) -> list[TopicPartition]:
    """Parse partitions such as `{"topicA":[0,1],"topicB":[0,1]}`. Raises `InvalidInput`."""
    parsed = _parse(text, _PARTITIONS)
    found = []
    for topic, numbers in parsed.items():
        if not isinstance(numbers, list) or not all(_is_number(number, 0, MAX_INT32) for number in numbers):
            raise _expected(_PARTITIONS, text)
        found += [TopicPartition(topic, number) for number in numbers]
    return found


def partition_list(partitions: Iterable[TopicPartition]) -> str:
    """List partitions for a message, at most the first 20."""
    names = [partition.folder for partition in sorted(partitions)]
    return ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")


def _read_numbers(text: str, example: str, lowest: int) -> Offsets:
    offsets: Offsets = {}
    for topic, numbers in _parse(text, example).items():
        if not isinstance(numbers, dict):
            raise _expected(example, text)
        for partition, number in numbers.items():
            if not partition.isdecimal() or not _is_number(number, lowest, MAX_INT64):
                raise _expected(example, text)
            offsets[TopicPartition(topic, int(partition))] = number
    return offsets


def _parse(text: str, example: str) -> dict[str, Any]:
    try:
        parsed = json.loads(text)
    except ValueError:
        raise _expected(example, text) from None
    if not isinstance(parsed, dict):
        raise _expected(example, text)
    return parsed


def _is_number(value: object, lowest: int, highest: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and lowest <= value <= highest


def _expected(example: str, got: str) -> InvalidInput:
    return InvalidInput(f"Expected e.g. {example}, got {got}")
