"""The files of a partition, to be compared with those of another."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Final

from octavo.errors import FormatError
from octavo.records import Record, read_batches
from octavo.records.batch import Batch

EPOCHS: Final = "leader-epoch-checkpoint"
INDEXES: Final = (".index", ".timeindex")
_NOT_COMPARED: Final = (".snapshot", ".deleted", "partition.metadata", ".lost")  # the last are kept by us alone


def contents(folder: Path, closed: bool) -> dict[str, bytes]:
    """All files of a partition that are compared."""
    left_out = _NOT_COMPARED if closed else (*_NOT_COMPARED, *INDEXES)
    files = {file.name: file.read_bytes() for file in folder.iterdir() if not file.name.endswith(left_out)}
    if files.get(EPOCHS) == b"":
        del files[EPOCHS]  # Kafka makes it at once, we when there is an epoch
    return files


def deleted(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.glob("*.log.deleted"))


def fields(data: bytes) -> list[tuple[object, list[Record] | bytes | None]]:
    """Batches: those that are not compressed as they are; of others the header, but for what depends on the compressor,
    and the records, or None where these cannot be read."""
    return [(batch.header._replace(length=0, crc=0), _content(batch)) for batch in read_batches(data)]


def _content(batch: Batch) -> list[Record] | bytes | None:
    if not batch.is_compressed:
        return bytes(batch.data)
    with suppress(FormatError):
        return list(batch)
    return None


def brief(answer: object) -> str:
    if not isinstance(answer, bytes):
        return str(answer)
    return answer.hex() if len(answer) <= 96 else f"{len(answer)} bytes {answer[:61].hex()}..."
