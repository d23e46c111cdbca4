"""The files of a table, as the tasks that wrote them report them.

A file holds rows of one partition and one day, in the order of their offsets. Its name tells the partition and the
range of offsets; its folder tells topic and day, in the way of Hive:

    topic=orders/day=2026-11-16/3-00000000000000000000-00000000000000012345-5f1d0c3a.parquet
    topic=orders/day=__HIVE_DEFAULT_PARTITION__/...          records without a timestamp that a date can hold

The topic is not in the file's name: together with two offsets it might be longer than a file system allows.
"""

from __future__ import annotations

import json
import re
import uuid
from datetime import date, timedelta
from typing import Any, Final, NamedTuple

from octavo.errors import BadTable
from octavo.log.names import TopicPartition
from octavo.records.layout import MAX_INT64

NO_DAY: Final = "__HIVE_DEFAULT_PARTITION__"  # what Hive, Spark and others read as null
SUFFIX: Final = ".parquet"

_EPOCH: Final = date(1970, 1, 1)
_PATH: Final = re.compile(
    r"topic=([a-zA-Z0-9._-]+)/day=([0-9]{4}-[0-9]{2}-[0-9]{2}|__HIVE_DEFAULT_PARTITION__)/"
    r"(0|[1-9][0-9]{0,9})-([0-9]{20})-([0-9]{20})-[0-9a-f]{8}\.parquet"
)


class WrittenFile(NamedTuple):
    """A data file of a table. The path is relative to the table, with `/` between folders."""

    path: str
    topic: str
    partition: int
    day: int | None  # days since 1970-01-01 in UTC; None if the records have no timestamp that a date can hold
    first_offset: int
    last_offset: int  # of the last row: compacted and transactional topics have gaps
    row_count: int
    size: int  # number of bytes of the file
    min_timestamp_us: int | None  # None if no row has a timestamp
    max_timestamp_us: int | None
    rejected: int = 0  # number of rows whose value could not be parsed

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition that the rows are from."""
        return TopicPartition(self.topic, self.partition)

    def to_json(self) -> str:
        """Return the file as one line of JSON."""
        return json.dumps(self._asdict(), separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> WrittenFile:
        """Read what `to_json` wrote. Raises `BadTable` if it is anything else."""
        try:
            return cls.from_fields(json.loads(text))
        except ValueError as error:
            raise BadTable("", f"this is no line about a file of a table: {error}") from None

    @classmethod
    def from_fields(cls, fields: Any) -> WrittenFile:
        """Check the fields of a file that were read from JSON. Raises `BadTable`."""
        if not isinstance(fields, dict) or fields.keys() != set(cls._fields):
            raise BadTable("", f"a file of a table has the fields {', '.join(cls._fields)}, not {fields!r:.200}")
        path, topic, *values = (fields[name] for name in cls._fields)
        partition, day, first, last, row_count, size, earliest, latest, rejected = values
        if (
            not isinstance(path, str)
            or not all(type(each) is int and 0 <= each <= MAX_INT64 for each in (row_count, size, rejected))
            or not all(each is None or type(each) is int for each in (earliest, latest))
            or not _tells(path, topic, day, partition, first, last)
        ):
            raise BadTable(str(path), "what is noted about this file is not what an export writes")
        return cls(**fields)


class PathParts(NamedTuple):
    """What the path of a data file tells."""

    topic: str
    day: int | None
    partition: int
    first_offset: int
    last_offset: int


def _tells(path: str, topic: Any, day: Any, partition: Any, first: Any, last: Any) -> bool:
    """Whether a path fits to what is noted. The file may end before the offset in its name (see `NewFile.finish`)."""
    parts = parse_path(path)
    return (
        parts is not None
        and parts[:4] == (topic, day, partition, first)
        and type(last) is int
        and first <= last <= parts.last_offset
    )


def new_path(partition: TopicPartition, day: int | None, first_offset: int, last_offset: int) -> str:
    """Return a path for a new data file, which no other file has. Raises `InvalidInput` for impossible topics."""
    _ = partition.folder  # checks the names
    token = uuid.uuid4().hex[:8]
    name = f"{partition.partition}-{first_offset:020d}-{last_offset:020d}-{token}{SUFFIX}"
    return f"topic={partition.topic}/day={day_text(day)}/{name}"


def parse_path(path: str) -> PathParts | None:
    """Return what a path tells; None if it is not the path of a data file. No other path may be touched."""
    found = _PATH.fullmatch(path)
    if found is None or TopicPartition(found[1], int(found[3])).problem is not None:
        return None
    try:
        day = None if found[2] == NO_DAY else (date.fromisoformat(found[2]) - _EPOCH).days
    except ValueError:
        return None
    return PathParts(found[1], day, int(found[3]), int(found[4]), int(found[5]))


def day_text(day: int | None) -> str:
    """Return a day as it is written in the name of a folder."""
    return NO_DAY if day is None else (_EPOCH + timedelta(days=day)).isoformat()
