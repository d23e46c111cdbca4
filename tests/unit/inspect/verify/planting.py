"""Plant faults in a directory that Apache Kafka wrote, and find them."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Final, NamedTuple

from crc32c import crc32c

from octavo.inspect.verify import Problem, Rule, check_directory, check_partition

SNAPSHOT_ENTRY: Final = struct.Struct(">qhiqiqiq")
TXN_ENTRY: Final = struct.Struct(">hqqqq")
_SNAPSHOT_START: Final = 10


class Fault(NamedTuple):
    """A fault, and where it has to be found."""

    rule: str
    plant: Callable[[Path], object]  # is given the data directory
    file: str  # below the directory; with a star, the last that matches
    position: int | bytes | None = None  # bytes: where these are in the file
    offset: int | None = None
    also: frozenset[str] = frozenset()  # other rules that the same bytes break

    def __str__(self) -> str:
        return self.rule

    def check(self, directory: Path, partition: str) -> None:
        """Plant the fault, and check that it is found where it is, and nothing else."""
        self.plant(directory)
        file = str(max(directory.glob(self.file)).relative_to(directory)) if "*" in self.file else self.file
        position = self.position
        if isinstance(position, bytes):
            position = (directory / file).read_bytes().index(position)
        found = problems(directory, partition)
        places = [(each.rule.name, each.file, each.position, each.offset) for each in found]
        assert (self.rule, file, position, self.offset) in places, found
        assert {each.rule.name for each in found} == {self.rule, *self.also}


def problems(directory: Path, partition: str | None = None) -> list[Problem]:
    """Return the problems of a directory's own files and of one partition, with files below the directory."""
    found = [*check_directory(directory)]
    if partition is not None:
        found += [
            Problem(_below(partition, each.file), each.position, each.offset, each.rule, each.found)
            for each in check_partition(directory / partition)
        ]
    return found


def _below(partition: str, file: str) -> str:
    return file[3:] if file.startswith("../") else f"{partition}/{file}"


def rewrite(file: str, change: Callable[[bytes], bytes]) -> Callable[[Path], object]:
    """Return a plant that replaces the bytes of a file."""

    def plant(directory: Path) -> None:
        path = directory / file
        path.write_bytes(change(path.read_bytes()))

    return plant


def put(at: int, new: bytes) -> Callable[[bytes], bytes]:
    """Return a change that overwrites bytes."""
    return lambda data: data[:at] + new + data[at + len(new) :]


def replace(old: bytes, new: bytes) -> Callable[[bytes], bytes]:
    """Return a change that replaces some bytes, which occur once."""

    def change(data: bytes) -> bytes:
        assert data.count(old) == 1, (old, data)
        return data.replace(old, new)

    return change


def write(file: str, data: bytes) -> Callable[[Path], object]:
    """Return a plant that writes a whole file."""
    return lambda directory: (directory / file).write_bytes(data)


def txn_entry(file: str, number: int, **fields: int) -> Callable[[Path], object]:
    """Return a plant that changes fields of an entry of a transaction index, by the given amounts."""
    names = ("version", "producer_id", "first_offset", "last_offset", "last_stable_offset")

    def change(data: bytes) -> bytes:
        values = list(TXN_ENTRY.unpack_from(data, number * TXN_ENTRY.size))
        for name, amount in fields.items():
            values[names.index(name)] += amount
        return put(number * TXN_ENTRY.size, TXN_ENTRY.pack(*values))(data)

    return rewrite(file, change)


def snapshot(change: Callable[[list[list[int]]], object]) -> Callable[[bytes], bytes]:
    """Return a change of the entries of a producer snapshot, whose count and checksum are right afterwards."""

    def changed(data: bytes) -> bytes:
        entries = [list(each) for each in SNAPSHOT_ENTRY.iter_unpack(data[_SNAPSHOT_START:])]
        change(entries)
        return with_crc(data[:6] + len(entries).to_bytes(4) + b"".join(SNAPSHOT_ENTRY.pack(*each) for each in entries))

    return changed


def with_crc(data: bytes) -> bytes:
    """Return a producer snapshot with the right checksum."""
    return data[:2] + crc32c(data[6:]).to_bytes(4) + data[6:]


def batches_of(data: bytes) -> list[bytes]:
    """Return the batches of a file."""
    found = []
    while data:
        size = 12 + int.from_bytes(data[8:12])
        found.append(data[:size])
        data = data[size:]
    return found


def with_batch_crc(batch: bytes) -> bytes:
    """Return a batch with the right checksum."""
    return batch[:17] + crc32c(batch[21:]).to_bytes(4) + batch[21:]


def rules_of(*modules: ModuleType) -> set[str]:
    """Return the names of the rules that some modules declare."""
    return {rule.name for module in modules for rule in vars(module).values() if isinstance(rule, Rule)}
