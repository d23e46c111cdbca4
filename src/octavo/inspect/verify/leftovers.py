"""The rules of names: files and folders that should not be where they are, or not be at all.

A broker that is running, or has crashed, leaves unfinished work: `.cleaned`, `.swap` and `.deleted` files, indexes of
segments that are being deleted. It ends that work when it starts. After a clean shutdown `.deleted` files remain, and
`.cleaned` files if the cleaner was at work; a swap is always ended first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from octavo.inspect.kinds import FileName, Kind
from octavo.inspect.verify.directory import DirectoryFolder
from octavo.inspect.verify.folder import Folder
from octavo.inspect.verify.partition import PartitionFolder
from octavo.inspect.verify.problem import Problem, Rule
from octavo.inspect.verify.repairs import NAME_ANEW
from octavo.log.names import (
    INDEX,
    LOG,
    PARTITION_METADATA,
    SWAP,
    TIME_INDEX,
    TXN_INDEX,
    AsideFolder,
    TopicPartition,
    file_name,
)

FOLDER_NAME: Final = Rule.declare(
    "folder-name",
    "data directory",
    means="A folder has a name that no partition has; Kafka does not start on the directory.",
    repair="Move the folder out of the data directory.",
)
NOT_A_FILE: Final = Rule.declare(
    "not-a-file",
    "file name",
    means="Something that is not a file has the name of one that Kafka reads; Kafka takes the directory offline.",
    repair="Move it away.",
)
FILE_NAME: Final = Rule.declare(
    "file-name",
    "file name",
    means="A file of a segment is not named after an offset of 20 digits; Kafka cannot load the partition.",
    repair="Name a `.log` after the offset of its first batch, and move any other file away.",
)
ORPHAN: Final = Rule.declare(
    "orphaned-index",
    "index",
    means="An index belongs to no segment: either it is left over, or its segment is lost.",
    repair="Restore the segment from another replica; otherwise nothing, for Kafka deletes the index.",
)
UNFINISHED_SWAP: Final = Rule.declare(
    "leftover-swap",
    "leftover",
    means="A segment waits to replace others in a directory that was shut down cleanly; Kafka lets it replace them.",
    repair=NAME_ANEW,
)

# Without this file Kafka puts the partition aside as a stray one.
_MOVE_TOPIC_ID: Final = "Before Kafka starts, move it away, and copy the file of another partition of the topic there."
_SEGMENT_KINDS: Final = frozenset(
    {Kind.SEGMENT, Kind.OFFSET_INDEX, Kind.TIME_INDEX, Kind.TRANSACTION_INDEX, Kind.PRODUCER_SNAPSHOT}
)
_TOLERATED_FOLDERS: Final = frozenset({"remote-log-index-cache", "@metadata-0"})  # the latter: KRaft in release 2.8


def check_folder_names(folder: DirectoryFolder) -> Iterator[Problem]:
    """Check the names of what is in a data directory."""
    for name, entry in sorted(folder.entries.items()):
        is_partition = TopicPartition.parse(name) is not None or AsideFolder.parse(name) is not None
        if entry.is_folder and FileName.parse(name).kind is Kind.UNKNOWN:
            if not is_partition and name not in _TOLERATED_FOLDERS:
                yield FOLDER_NAME.broken(name)
        elif not entry.is_file and FileName.parse(name).kind is not Kind.UNKNOWN:
            yield NOT_A_FILE.broken(name)


def check_file_names(folder: PartitionFolder) -> Iterator[Problem]:
    """Check the names of what is in a partition's folder, and whether it belongs there."""
    yield from _check_kinds(folder)
    if is_doomed(folder):
        return
    bases = set(folder.segments)
    for name in folder.files:
        parsed = FileName.parse(name)
        if parsed.renamed == SWAP and folder.beside.is_clean:
            yield UNFINISHED_SWAP.broken(name, offset=parsed.base_offset)
        elif parsed.renamed or parsed.base_offset is None or parsed.base_offset in bases:
            continue
        elif name.endswith((INDEX, TIME_INDEX, TXN_INDEX)) and not folder.beside.is_open:
            found = f"there is no {file_name(parsed.base_offset, LOG)}"
            yield ORPHAN.broken(name, offset=parsed.base_offset, found=found)


def _check_kinds(folder: Folder) -> Iterator[Problem]:
    for name, entry in sorted(folder.entries.items()):
        parsed = FileName.parse(name)
        if parsed.kind is Kind.UNKNOWN:
            continue
        if not entry.is_file:
            problem = NOT_A_FILE.broken(name)
            yield replace(problem, instead=_MOVE_TOPIC_ID) if name == PARTITION_METADATA else problem
        elif parsed.kind in _SEGMENT_KINDS and parsed.base_offset is None:
            yield FILE_NAME.broken(name)


def is_doomed(folder: PartitionFolder) -> bool:
    """Whether the partition is being deleted, so that any of its files may be gone."""
    return folder.path.absolute().name.endswith("-delete")
