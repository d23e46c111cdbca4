"""The records of one fetch: decoded in bulk, handed out as objects a few at a time.

Decoding fills columns (offsets, timestamps, keys and so on). A column is a list, or one value for all records. Objects
are built from slices of the columns, by functions that run no Python code for a single record. So only the objects that
the caller holds are alive. Python's garbage collector would traverse any others again and again.

A small file may hold millions of records. So a fetch is decoded in pieces, one piece ahead of what is handed out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from itertools import islice, pairwise, repeat
from typing import TYPE_CHECKING, Any, Final

from octavo.errors import DeserializationFailed, FormatError
from octavo.log.consumer.record import ConsumerRecord
from octavo.log.names import TopicPartition
from octavo.records import read_batches
from octavo.records.kernels import kernels
from octavo.records.layout import Buffer, TimestampType
from octavo.records.record import Header

if TYPE_CHECKING:
    import pyarrow as pa

    from octavo.records.arrow.decoder import ArrowDecoder

Deserializer = Callable[[bytes], Any]  # gets the bytes of a key or value

PIECE: Final = 1 << 15  # records decoded at once
FEW: Final = 16 << 10  # below this many bytes, decoding record by record is faster than in bulk
_COLUMNS: Final = ("offset", "timestampMs", "timestampType", "key", "value", "headers", "leaderEpoch")
_TYPES: Final = {int(member): member for member in TimestampType}
_AT_ONCE: Final = 200  # minimum number of objects to build at once
_NEW: Final = tuple.__new__  # what a named tuple's own constructor does, without a Python call


class _Same:
    """A column with the same value for all records."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __getitem__(self, rows: slice) -> Iterable[Any]:
        return repeat(self.value)


Column = Sequence[Any] | _Same


class Fetched:
    """A piece of the fetched records of a partition, and how many of them have been handed out."""

    __slots__ = (
        "_at",
        "_columns",
        "_end",
        "_key",
        "_made",
        "_made_from",
        "_partition",
        "_value",
        "count",
        "following",
        "offsets",
    )

    def __init__(
        self,
        partition: TopicPartition,
        offsets: list[int],
        columns: Sequence[Column],
        next_offset: int,
        deserializers: tuple[Deserializer | None, Deserializer | None],
        following: Callable[[], Fetched] | None = None,
    ) -> None:
        """`columns` are the fields of a `ConsumerRecord` from the timestamp on. `following` decodes the next piece."""
        self.following: Final = following
        self.offsets: Final = offsets
        self.count: Final = len(offsets)
        self._partition = partition
        self._columns = columns
        self._end = next_offset
        self._key, self._value = deserializers
        self._at = 0
        self._made: list[ConsumerRecord] = []  # objects built already, of which some may not be taken yet
        self._made_from = 0  # row of the first of them

    @property
    def left(self) -> int:
        """Number of records that have not been handed out."""
        return self.count - self._at

    @property
    def next_offset(self) -> int:
        """The offset of the next record to hand out; after the last one, the offset at which to go on."""
        return self.offsets[self._at] if self._at < self.count else self._end

    def offset_at(self, back: int) -> int:
        """Return what `next_offset` was `back` records ago."""
        return self.offsets[self._at - back] if back else self.next_offset

    def give_back(self, count: int) -> None:
        """Take back the last `count` records, so that they are handed out again."""
        self._at -= count

    def take(self, count: int) -> list[ConsumerRecord]:
        """Return the next records, at most `count`. Raises `DeserializationFailed` if that fails for the first one."""
        if count >= _AT_ONCE:
            records = self._make(count)
        else:
            first = self._at - self._made_from
            records = self._made[first : first + count] if first >= 0 else []
            if len(records) < min(count, self.left):
                self._made, self._made_from = [], self._at
                self._made = self._make(_AT_ONCE)
                records = self._made[:count]
        self._at += len(records)
        return records

    def _make(self, count: int) -> list[ConsumerRecord]:
        rows = slice(self._at, min(self._at + count, self.count))
        offsets = self.offsets[rows]
        timestamps, types, keys, values, headers, epochs = (column[rows] for column in self._columns)
        if self._key is not None or self._value is not None:
            keys = self._deserialized("key", self._key, keys, offsets)
            values = self._deserialized("value", self._value, values, offsets)
        topic, partition = self._partition
        fields = zip(
            repeat(topic), repeat(partition), offsets, timestamps, types, keys, values, headers, epochs, strict=False
        )
        return list(map(_NEW, repeat(ConsumerRecord), fields))

    def _deserialized(
        self, what: str, function: Deserializer | None, stored: Iterable[Any], offsets: Sequence[int]
    ) -> Iterable[Any]:
        """Deserialize keys or values, up to the first for which the function fails. Null stays null."""
        if function is None:
            return stored
        made: list[Any] = []
        for offset, each in zip(offsets, stored, strict=False):
            try:
                made.append(None if each is None else function(each))
            except Exception as error:
                if not made:
                    raise DeserializationFailed(self._partition, offset, what) from error
                break
        return made


class FetchDecoder:
    """Decodes the records of one fetch after another."""

    def __init__(self, *, verify: bool, deserializers: tuple[Deserializer | None, Deserializer | None]) -> None:
        self._verify: Final = verify
        self._deserializers: Final = deserializers

    def decode(self, partition: TopicPartition, data: Buffer, offset: int, next_offset: int) -> Fetched:
        """Decode the first piece of the records in `data` from `offset` on. `next_offset` is the offset after `data`.

        Raises a `FormatError` if the first batch is damaged. A fetch ends before a later batch that is damaged.
        """
        is_little = len(data) < FEW or not kernels(len(data)).compiled
        pieces = _few(data, offset, self._verify) if is_little else self._many(data, offset)
        first = next(pieces, _NOTHING)
        return _piece(first, pieces, partition, next_offset, self._deserializers)

    def _many(self, data: Buffer, offset: int) -> Iterator[_Decoded]:
        return map(_columns, self._decoder.read(data, offsets=(offset, None)))

    @cached_property
    def _decoder(self) -> ArrowDecoder:
        from octavo.records.arrow.decoder import ArrowDecoder

        return ArrowDecoder(columns=_COLUMNS, max_rows=PIECE, verify=self._verify)


_Decoded = tuple[list[int], Sequence[Column]]
_NOTHING: Final[_Decoded] = ([], [[]] * (len(_COLUMNS) - 1))


def _piece(
    decoded: _Decoded,
    others: Iterator[_Decoded],
    partition: TopicPartition,
    end_offset: int,
    deserializers: tuple[Deserializer | None, Deserializer | None],
) -> Fetched:
    """Build a piece from decoded records, with a function that builds the next one."""
    ahead = None
    is_last = True
    try:
        ahead = next(others, None)
        is_last = ahead is None
    except FormatError:
        is_last = False
    offsets, columns = decoded
    following = None if ahead is None else partial(_piece, ahead, others, partition, end_offset, deserializers)
    return Fetched(partition, offsets, columns, end_offset if is_last else offsets[-1] + 1, deserializers, following)


def _few(data: Buffer, offset: int, verify: bool) -> Iterator[_Decoded]:
    rows: list[tuple[Any, ...]] = []
    try:
        for batch in read_batches(data, verify=verify):
            kind, epoch = batch.timestamp_type, batch.leader_epoch
            records = iter(batch)
            is_over = False
            while not is_over:
                is_over = batch.count is not None and batch.count <= PIECE
                taken = list(records if is_over else islice(records, PIECE))
                is_over = is_over or not taken
                rows += [
                    (record.offset, record.timestamp_ms, kind, record.key, record.value, record.headers, epoch)
                    for record in taken
                    if record.offset >= offset
                ]
                if len(rows) >= PIECE:
                    yield _transposed(rows)
                    rows.clear()
    except FormatError:
        if rows:
            yield _transposed(rows)
        raise
    if rows:
        yield _transposed(rows)


def _transposed(rows: Iterable[tuple[Any, ...]]) -> _Decoded:
    offsets, *columns = (list(column) for column in zip(*rows, strict=True))
    return offsets, columns


def _listed(column: Column, count: int) -> Iterable[Any]:
    return [column.value] * count if isinstance(column, _Same) else column


def _columns(chunk: pa.RecordBatch) -> tuple[list[int], Sequence[Column]]:
    offsets, timestamps, types, keys, values, headers, epochs = chunk.columns
    kinds = _numbers(types)
    return offsets.to_numpy().tolist(), (
        timestamps.to_numpy().tolist(),
        _Same(_TYPES[kinds.value]) if isinstance(kinds, _Same) else [_TYPES[kind] for kind in kinds],
        _byte_strings(keys),
        _byte_strings(values),
        _headers(headers),
        _numbers(epochs),
    )


def _numbers(column: pa.Array) -> Column:
    numbers = column.to_numpy()
    first = numbers[0]
    return _Same(int(first)) if (numbers == first).all() else numbers.tolist()


def _byte_strings(column: pa.Array) -> Column:
    if column.null_count == len(column):
        return _Same(None)
    strings: list[bytes | None] = column.to_numpy(zero_copy_only=False).tolist()
    return strings


def _headers(column: pa.Array) -> Column:
    items = column.values
    if not len(items):
        return _Same(())
    made = list(map(Header, items.field("key").to_pylist(), _listed(_byte_strings(items.field("value")), len(items))))
    ends = column.offsets.to_numpy().tolist()
    return [tuple(made[first:last]) for first, last in pairwise(ends)]
