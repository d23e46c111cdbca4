"""Records that were sent to one topic and are in no batch yet: `Inbox`.

Sending must be quick, from any number of threads, and a lock alone would take as long as all the rest. So a record is
four items of one plain list: key, value, time and future. One operation, which no other thread can interrupt, appends
them to the list; records are taken from its front. If a record has fields that few records have (headers, a partition
or a timestamp of its own), a `Special` takes the place of the time. A flag tells whether there are any, so that nobody
searches for them in vain.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import index
from typing import Any, Final, NamedTuple

from octavo.errors import InvalidInput, RecordTooLarge
from octavo.log.ownership.fork_safe import make_lock
from octavo.log.producer.future import Finisher
from octavo.records.fields import check_range
from octavo.records.kernels.record import nullable_size
from octavo.records.kernels.varint import varint_size
from octavo.records.layout import BATCH_HEADER, MAX_INT32, MAX_INT64, Buffer
from octavo.records.text import write_text
from octavo.records.v2 import HeaderLike

# Indexes of a record's items.
KEY: Final = 0
VALUE: Final = 1
TIME: Final = 2  # clock time, or a `Special`
FUTURE: Final = 3
ITEMS: Final = 4

Headers = tuple[tuple[bytes, bytes | None], ...]

_MAX_RECORD_OVERHEAD: Final = 21  # Kafka's upper bound for all varints of a record
_FIRST_COUNT: Final = 1024  # records to take together until their size is known
_MOST_COUNT: Final = 16_384
_LEAST_COUNT: Final = 64


class Special(NamedTuple):
    """The time of a record, and fields that most records do not have."""

    time: int  # clock time
    timestamp_ms: int | None
    partition: int | None
    headers: Headers


class Limits(NamedTuple):
    """The size limits of a producer."""

    max_request_size: int
    buffer_memory: int


class Inbox:
    """The waiting records of one topic."""

    __slots__ = (
        "_limits",
        "_lock",
        "assigned",
        "finisher",
        "full",
        "has_keys",
        "has_special",
        "held",
        "held_since_ms",
        "is_idle",
        "large_size",
        "partition_count",
        "room",
        "rows",
        "share",
        "since_ms",
        "small",
        "small_key",
        "taken_since_ms",
        "topic",
    )

    def __init__(self, topic: str, partition_count: int, finisher: Finisher, limits: Limits) -> None:
        self.topic: Final = topic
        self.partition_count = partition_count
        self.finisher = finisher
        self.rows: Final[list[Any]] = []
        self.held: list[Any] = []  # records taken but not appended, as their batch is not full; they precede `rows`
        self.assigned: list[int] = []  # partitions of the first records in `held`
        self.held_since_ms = 0  # when the oldest in `held` began to wait
        self.taken_since_ms = 0  # when the oldest of the records last taken from `rows` began to wait
        self.since_ms = 0  # lower bound for when the oldest in `rows` was sent
        self.is_idle = True
        self.has_keys = False
        self.has_special = False
        self.large_size = 0  # bytes of records that are not small
        self._limits = limits
        self._lock = make_lock()
        self.full = _FIRST_COUNT * ITEMS  # length of `rows` at which they must be taken
        self.set_share(limits.buffer_memory)

    def set_share(self, share: int) -> None:
        """Set the memory for waiting records, in bytes."""
        self.share = share
        self.set_count(self.full // ITEMS)

    def set_count(self, count: int) -> None:
        """Set the number of waiting records at which the inbox is full."""
        count = max(_LEAST_COUNT, min(count, _MOST_COUNT))
        most = (self._limits.max_request_size - BATCH_HEADER.size - _MAX_RECORD_OVERHEAD - 16) // 2
        self.small = min(self.share // count // 2, most)  # a key and a value up to this size need no further check
        self.small_key = self.small if self.has_keys else -1
        self.full = count * ITEMS
        self.set_idle(self.is_idle)

    def set_idle(self, is_idle: bool) -> None:
        """Set whether the inbox is idle. Nobody watches an idle inbox, so the next `send` must start the wait."""
        self.is_idle = is_idle
        self.room = 0 if is_idle else self.full  # length of `rows` at which `send` calls `Producer._tend`

    @property
    def is_full(self) -> bool:
        """Whether all waiting records must be taken before more are accepted."""
        return len(self.rows) >= self.full or self.large_size >= self.share

    def checked(
        self,
        key: Buffer | None,
        value: Buffer | None,
        time: int,
        partition: int | None,
        timestamp_ms: int | None,
        headers: Iterable[HeaderLike] | Mapping[str, Buffer | None] | None,
    ) -> tuple[bytes | None, bytes | None, int | Special]:
        """Check the fields of a record. Return its key, value and time, as in `rows`. Raises `InvalidInput`."""
        key, value = _bytes("key", key), _bytes("value", value)
        written = _written(headers) if headers else ()
        if partition is not None:
            partition = _whole("partition", partition)
            if not 0 <= partition < self.partition_count:
                raise InvalidInput(f"topic {self.topic!r} has no partition {partition}: it has {self.partition_count}")
        if timestamp_ms is not None:
            timestamp_ms = _whole("timestamp_ms", timestamp_ms)
            check_range("timestamp_ms", timestamp_ms, 0, MAX_INT64)
        self._count(_size_at_most(key, value, written))
        if key is not None and not self.has_keys:
            self.has_keys = True
            self.small_key = self.small
        if partition is None and timestamp_ms is None and not written:
            return key, value, time
        self.has_special = True
        return key, value, Special(time, timestamp_ms, partition, written)

    def _count(self, size: int) -> None:
        """Check the size of a record, and add it to `large_size` if it is not small."""
        limits = self._limits
        if size > limits.max_request_size:
            raise RecordTooLarge(size, limits.max_request_size, "max.request.size")
        if size > limits.buffer_memory:
            raise RecordTooLarge(size, limits.buffer_memory, "buffer.memory")
        if size > self.small:
            with self._lock:
                self.large_size += size
                if self.large_size >= self.share:
                    self.room = 0


def _size_at_most(key: bytes | None, value: bytes | None, headers: Headers) -> int:
    """The maximum size of a batch with just this record, as Kafka's producer estimates it."""
    size = BATCH_HEADER.size + _MAX_RECORD_OVERHEAD + varint_size(len(headers))
    size += nullable_size(-1 if key is None else len(key)) + nullable_size(-1 if value is None else len(value))
    for name, content in headers:
        size += nullable_size(len(name)) + nullable_size(-1 if content is None else len(content))
    return size


def _whole(name: str, number: object) -> int:
    try:
        return index(number)  # type: ignore[arg-type]  # this is what is checked here
    except TypeError:
        raise InvalidInput(f"{name} must be a whole number, not {number!r}") from None


def _bytes(what: str, content: object) -> bytes | None:
    if content is None or type(content) is bytes:
        return content
    if isinstance(content, (bytes, bytearray, memoryview)):
        return bytes(content)
    instead = "" if what == "header" else f": encode it, or give the producer a {what}_serializer"
    raise InvalidInput(f"a record's {what} must be bytes or None, not {type(content).__name__}{instead}")


def _written(headers: Iterable[HeaderLike] | Mapping[str, Buffer | None]) -> Headers:
    written = []
    for header in headers.items() if isinstance(headers, Mapping) else headers:
        try:
            name, content = header
        except (TypeError, ValueError):
            raise InvalidInput(f"a header is a pair of a name and bytes, not {header!r}") from None
        if not isinstance(name, str):
            raise InvalidInput(f"a header's name must be a text, not {type(name).__name__}")
        written.append((write_text(name), _bytes("header", content)))
    check_range("the count of headers", len(written), 0, MAX_INT32)
    return tuple(written)
