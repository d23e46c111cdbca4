"""A log of batches that Apache Kafka wrote, and one of them with a fault in it.

Offsets and leader epochs of batches are outside their checksums. So Kafka's batches are placed behind each other as a
broker would: one before the fault, the one with the fault, and one after it.
"""

from __future__ import annotations

import gzip
import struct
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Final, NamedTuple
from zlib import crc32

from crc32c import crc32c

from octavo.inspect.verify import Problem, check_partition
from octavo.records.layout import BATCH_HEADER, MESSAGE_V0
from tests.golden.files import load

Change = Callable[[bytes], bytes]

BEFORE_OFFSET: Final = 0  # of six records
OFFSET: Final = 100
AFTER_OFFSET: Final = 1000


class Planted(NamedTuple):
    """A fault in a batch, and where it has to be found."""

    rule: str
    batch: str  # the golden file
    change: Change
    at: int = 0  # position in the batch
    offset: int = OFFSET
    also: frozenset[str] = frozenset()
    folder: str = "planted-0"

    def __str__(self) -> str:
        return f"{self.rule} in {self.batch}"

    def found(self, target: Path, ignore: Collection[str] = ()) -> list[Problem]:
        """Write a log with the fault, and return what is found."""
        return list(check_partition(write_log(target / self.folder, self.data), ignore=ignore))

    @property
    def data(self) -> bytes:
        """The log."""
        batch = load(self.batch).data
        if batch[16] == 2:  # the old ones are at this offset already
            batch = at_offset(OFFSET, batch)
        return at_offset(BEFORE_OFFSET, BEFORE) + self.change(batch) + at_offset(AFTER_OFFSET, BEFORE)


BEFORE: Final = load("v2-none").data


def write_log(folder: Path, data: bytes, base_offset: int = 0) -> Path:
    """Write a partition with one segment and nothing else; return its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{base_offset:020d}.log").write_bytes(data)
    return folder


def at_offset(offset: int, batch: bytes) -> bytes:
    """Return a batch, or the messages of a batch, with other offsets."""
    data = bytearray(batch)
    at = 0
    first = int.from_bytes(batch[:8])
    while at < len(data):
        old = int.from_bytes(data[at : at + 8])
        data[at : at + 8] = (old - first + offset).to_bytes(8)
        at += 12 + int.from_bytes(data[at + 8 : at + 12])
    return bytes(data)


def put(at: int, new: bytes) -> Change:
    """Overwrite bytes, and leave the checksum as it was."""
    return lambda batch: batch[:at] + new + batch[at + len(new) :]


def field(name: str, value: int) -> Change:
    """Set a field of a batch of magic 2 that its checksum does not cover."""
    place = next(place for place in BATCH_HEADER.places() if place.name == name)
    return put(place.position, value.to_bytes(place.size, signed=value < 0))


def right(*changes: Change) -> Change:
    """Make changes, and the checksum right again."""

    def change(batch: bytes) -> bytes:
        for each in changes:
            batch = each(batch)
        return with_checksum(batch)

    return change


def with_checksum(batch: bytes) -> bytes:
    """Return a batch with the checksum of what it says."""
    if batch[16] == 2:
        return batch[:17] + crc32c(batch[21:]).to_bytes(4) + batch[21:]
    size = 12 + int.from_bytes(batch[8:12])  # of the first of several messages
    return batch[:12] + crc32(batch[16:size]).to_bytes(4) + batch[16:]


def record_field(record: int, name: str, new: bytes, *, header: int = 0) -> Change:
    """Overwrite a field of a record of a batch that is not compressed."""
    return lambda batch: put(record_place(batch, record, name, header), new)(batch)


def record_place(batch: bytes, record: int, name: str, header: int = 0) -> int:
    """Return the position of a field of a record."""
    at = 61
    for _ in range(record):
        length, start = _varint(batch, at)
        at = start + length
    places = {"length": at}
    _, at = _varint(batch, at)
    places["attributes"] = at
    places["timestamp"] = at + 1
    _, at = _varint(batch, at + 1)
    places["offset"] = at
    _, at = _varint(batch, at)
    for part in ("key", "value"):
        places[f"{part}_length"] = at
        length, at = _varint(batch, at)
        places[part] = at
        at += max(length, 0)
    places["headers"] = at
    count, at = _varint(batch, at)
    for number in range(count):
        for part in ("header_key_length", "header_value_length"):
            if number == header:
                places[part] = at
            length, at = _varint(batch, at)
            at += max(length, 0)
    return places[name]


def _varint(data: bytes, at: int) -> tuple[int, int]:
    raw, shift = 0, 0
    while True:
        byte = data[at]
        raw |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return (raw >> 1) ^ -(raw & 1), at


def inside(change: Change) -> Change:
    """Change what is inside a gzipped message of magic 0 or 1, and make its length and checksum right again."""

    def changed(message: bytes) -> bytes:
        header = MESSAGE_V0.size + (8 if message[16] == 1 else 0)
        start = header + 8  # after the null key and the value's length
        value = gzip.compress(change(gzip.decompress(message[start:])), mtime=0)
        body = message[16 : header + 4] + struct.pack(">i", len(value)) + value
        return message[:8] + struct.pack(">iI", 4 + len(body), crc32(body)) + body

    return changed


def inner(number: int, change: Change, *, is_right: bool = True) -> Change:
    """Change one of the messages inside, and make its checksum right again."""

    def changed(data: bytes) -> bytes:
        at = 0
        for _ in range(number):
            at += 12 + int.from_bytes(data[at + 8 : at + 12])
        end = at + 12 + int.from_bytes(data[at + 8 : at + 12])
        message = change(data[at:end])
        return data[:at] + (with_checksum(message) if is_right else message) + data[end:]

    return changed
