r"""Read and write Kafka's text checkpoints: an offset for every partition of a directory, or the epochs of a partition.

    0                    version of the format
    2                    number of lines that follow
    events 0 123         offset checkpoint: topic, partition, offset; epoch checkpoint: epoch, start offset
    events 1 456

A checkpoint is replaced as a whole, and is on disk when the function that writes it returns. A file that is missing, is
empty or ends after its version has no entries. Anything else that is wrong raises `CorruptFile`. (Kafka continues
without a bad recovery-point or log-start checkpoint; that is up to the caller here.) Negative offsets and partitions,
and invalid topic names, are refused: Kafka never writes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from octavo.errors import CorruptFile
from octavo.log.files.small_file import read_small_file
from octavo.log.names import TopicPartition, topic_name_problem
from octavo.log.storage import Storage
from octavo.records.layout import MAX_INT32, MAX_INT64

RECOVERY_POINT: Final = "recovery-point-offset-checkpoint"  # all records below this offset are on disk
LOG_START: Final = "log-start-offset-checkpoint"  # only if it differs from the base offset of the first segment
REPLICATION: Final = "replication-offset-checkpoint"  # the high watermark
CLEANER: Final = "cleaner-offset-checkpoint"  # the log is compacted up to this offset

_VERSION: Final = 0
_MAX_OFFSETS_SIZE: Final = 64 << 20  # room for a quarter of a million partitions with the longest names
_MAX_EPOCHS_SIZE: Final = 16 << 20


class EpochEntry(NamedTuple):
    """A leader epoch, and the first offset that its leader wrote or would write."""

    epoch: int
    start_offset: int


def read_offsets(storage: Storage, path: Path) -> dict[TopicPartition, int]:
    """Read an offset checkpoint. Raises `CorruptFile`."""
    data = _read(storage, path, _MAX_OFFSETS_SIZE)
    offsets: dict[TopicPartition, int] = {}
    for line in _entries(path, data):
        match line.split():
            case [topic, partition, offset] if not line[:1].isspace():
                key = TopicPartition(_topic(path, data, topic), _number(path, data, partition, MAX_INT32))
                offsets[key] = _number(path, data, offset, MAX_INT64)
            case _:
                raise _malformed(path, data, line)
    return offsets


def write_offsets(storage: Storage, checkpoints: Mapping[Path, Mapping[TopicPartition, int]]) -> None:
    """Replace offset checkpoints, several in about the time of one."""
    storage.replace_files({path: _offsets_text(offsets) for path, offsets in checkpoints.items()})


def read_epochs(storage: Storage, path: Path) -> list[EpochEntry]:
    """Read a leader epoch checkpoint, in the order of the file. Raises `CorruptFile`."""
    data = _read(storage, path, _MAX_EPOCHS_SIZE)
    epochs: list[EpochEntry] = []
    for line in _entries(path, data):
        match line.split():
            case [epoch, offset] if not line[:1].isspace():
                epochs.append(EpochEntry(_number(path, data, epoch, MAX_INT32), _number(path, data, offset, MAX_INT64)))
            case _:
                raise _malformed(path, data, line)
    return epochs


def write_epochs(storage: Storage, path: Path, epochs: Iterable[EpochEntry]) -> None:
    """Replace a leader epoch checkpoint."""
    storage.replace_file(path, _text([f"{epoch} {start_offset}" for epoch, start_offset in epochs]))


def _read(storage: Storage, path: Path, limit: int) -> bytes:
    try:
        return read_small_file(storage, path, limit)
    except FileNotFoundError:
        return b""


def _offsets_text(offsets: Mapping[TopicPartition, int]) -> bytes:
    return _text([f"{topic} {number} {offset}" for (topic, number), offset in sorted(offsets.items())])


def _text(lines: Sequence[str]) -> bytes:
    return "\n".join([str(_VERSION), str(len(lines)), *lines, ""]).encode("utf-8")


def _entries(path: Path, data: bytes) -> Sequence[bytes]:
    """Return the lines after the count. (Bytes are split into lines as in Java; `str` would split at more places.)"""
    lines = data.splitlines()
    if not lines:
        return ()
    version = _number(path, data, lines[0], MAX_INT32)
    if version != _VERSION:
        raise CorruptFile(path, 0, f"version {version} of the checkpoint format is unknown")
    if len(lines) == 1:
        return ()
    if not data.endswith((b"\n", b"\r")):
        raise CorruptFile(path, len(data), "the last line is cut")  # Kafka would accept the rest of its number
    count = _number(path, data, lines[1], MAX_INT32)
    if count != len(lines) - 2:
        raise CorruptFile(path, len(data), f"there are {len(lines) - 2} entries where {count} were announced")
    return lines[2:]


def _number(path: Path, data: bytes, digits: bytes, maximum: int) -> int:
    # int() accepts more than Java does, and no valid number has more than 19 digits.
    if digits.isdigit() and len(digits) <= 19 and (number := int(digits)) <= maximum:
        return number
    raise _malformed(path, data, digits)


def _topic(path: Path, data: bytes, word: bytes) -> str:
    name = word.decode("latin-1")  # a name that is not ASCII is invalid anyway
    if topic_name_problem(name) is not None:
        raise _malformed(path, data, word)
    return name


def _malformed(path: Path, data: bytes, found: bytes) -> CorruptFile:
    # The first occurrence of the bad text is precise enough for a person.
    return CorruptFile(path, max(data.find(found), 0), f"{found[:80]!r} has no place in a checkpoint")
