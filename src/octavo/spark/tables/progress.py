"""How far an export has come: for each partition, the topic's id and the first offset that is not in the table yet.

A table format stores this in the very commit that adds the rows, so that both are there or neither.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple
from uuid import UUID

from octavo.errors import BadTable, InvalidInput
from octavo.log.files.meta_properties import read_uuid, write_uuid
from octavo.log.names import TopicPartition
from octavo.records.layout import MAX_INT64


class Reached(NamedTuple):
    """How far one partition is exported."""

    topic_id: UUID | None  # None if the log does not tell it (there is no partition.metadata)
    next_offset: int  # all offsets below it are in the table, or were not there to be exported


class Progress(Mapping[TopicPartition, Reached]):
    """How far each partition is exported. Immutable.

    A topic that was created again has the same name and another id: only the last one is in here.
    """

    def __init__(self, reached: Mapping[TopicPartition, Reached] | None = None) -> None:
        self._reached: Final = dict(sorted((reached or {}).items()))

    def __getitem__(self, partition: TopicPartition) -> Reached:
        return self._reached[partition]

    def __iter__(self) -> Iterator[TopicPartition]:
        return iter(self._reached)

    def __len__(self) -> int:
        return len(self._reached)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Progress) and self._reached == other._reached

    def __hash__(self) -> int:
        return hash(tuple(self._reached.items()))

    def __repr__(self) -> str:
        return f"Progress({self._reached!r})"

    def advanced(self, reached: Mapping[TopicPartition, Reached]) -> Progress:
        """Return the progress after these partitions have been exported further. The others stay as they are."""
        return Progress({**self._reached, **reached})

    def changed_since(self, before: Progress) -> dict[TopicPartition, Reached]:
        """Return the partitions that are not as they are in `before`."""
        return {partition: reached for partition, reached in self.items() if before.get(partition) != reached}

    def to_fields(self) -> dict[str, Any]:
        """Return the progress as values that JSON can hold, by topic."""
        topics: dict[str, Any] = {}
        for (topic, partition), (topic_id, next_offset) in self.items():
            id_text = None if topic_id is None else write_uuid(topic_id)
            topics.setdefault(topic, {})[str(partition)] = [id_text, next_offset]
        return topics

    @classmethod
    def from_fields(cls, fields: Any) -> Progress:
        """Read what `to_fields` wrote. Raises `BadTable` if it is anything else."""
        try:
            return cls(
                {
                    _partition(topic, number): Reached(None if text is None else read_uuid(text), _offset(offset))
                    for topic, partitions in fields.items()
                    for number, (text, offset) in partitions.items()
                }
            )
        except (AttributeError, TypeError, ValueError, InvalidInput) as error:
            raise BadTable("", f"{json.dumps(fields)[:200]} does not tell how far an export came: {error}") from None


def _partition(topic: str, number: str) -> TopicPartition:
    partition = TopicPartition.parse(f"{topic}-{number}")
    if partition is None:
        raise ValueError(f"there is no partition {topic}-{number}")
    return partition


def _offset(value: Any) -> int:
    if type(value) is not int or not 0 <= value <= MAX_INT64:
        raise ValueError(f"{value!r} is no offset")
    return value
