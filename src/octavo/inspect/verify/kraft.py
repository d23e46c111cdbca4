"""The rules of KRaft's files: the metadata log, its snapshots, `quorum-state` and `bootstrap.checkpoint`.

Files that end in `.part` are snapshots that are being written or fetched; Kafka deletes them when it starts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Final

import numpy as np

from octavo.errors import FormatError, InvalidInput, Truncated
from octavo.inspect.kinds import FileName, Kind
from octavo.inspect.verify.batch_columns import BASE_OFFSET, LAST_OFFSET, LEADER_EPOCH, MAGIC, Table
from octavo.inspect.verify.directory import DirectoryFolder
from octavo.inspect.verify.folder import Folder
from octavo.inspect.verify.metadata_batches import Decoded, metadata_records
from octavo.inspect.verify.partition import PartitionFolder, SegmentData
from octavo.inspect.verify.problem import Problem, Rule
from octavo.log.files.meta_properties import read_uuid
from octavo.log.names import BOOTSTRAP_CHECKPOINT, CHECKPOINT, LOG, QUORUM_STATE, file_name
from octavo.log.partition_folders import METADATA_PARTITION
from octavo.records.quorum import SnapshotFooter, SnapshotHeader

SNAPSHOT_KIND: Final = "metadata snapshot"
_ANOTHER: Final = (
    "Delete the snapshot if an older one and the log after it exist; otherwise copy one from another node."
)

SNAPSHOT_NAME: Final = Rule.declare(
    "kraft-snapshot-name",
    SNAPSHOT_KIND,
    means="The name is not an offset of 20 digits, a dash and an epoch of 10; the node does not start.",
    repair="Give the snapshot the name that it had, or move it away.",
)
SNAPSHOT_BATCH: Final = Rule.declare(
    "kraft-snapshot-batch",
    SNAPSHOT_KIND,
    means="A batch of the snapshot is damaged; the node does not start.",
    repair=_ANOTHER,
)
SNAPSHOT_HEADER: Final = Rule.declare(
    "kraft-snapshot-header",
    SNAPSHOT_KIND,
    means="The snapshot does not begin with a header; the node does not start.",
    repair=_ANOTHER,
)
SNAPSHOT_FOOTER: Final = Rule.declare(
    "kraft-snapshot-footer",
    SNAPSHOT_KIND,
    means="The snapshot does not end with a footer, so that a part of it may be missing; the node does not start.",
    repair=_ANOTHER,
)
SNAPSHOT_OFFSETS: Final = Rule.declare(
    "kraft-snapshot-offsets",
    SNAPSHOT_KIND,
    means="The offsets in the snapshot have a gap: batches are missing.",
    repair=_ANOTHER,
)
SNAPSHOT_RECORD: Final = Rule.declare(
    "kraft-snapshot-record",
    SNAPSHOT_KIND,
    means="A record of the snapshot cannot be decoded; the node does not start.",
    repair=_ANOTHER,
)
SNAPSHOT_BEYOND_END: Final = Rule.declare(
    "kraft-snapshot-beyond-end",
    SNAPSHOT_KIND,
    means="The metadata log ends before the snapshot: records are missing at its end.",
    repair="Nothing: the node replaces its log by the snapshot when it starts, and fetches the rest.",
)
SNAPSHOT_EPOCH: Final = Rule.declare(
    "kraft-snapshot-epoch",
    SNAPSHOT_KIND,
    means="The snapshot's epoch is not that of the log at its offset: it is of another history.",
    repair=_ANOTHER,
)
SNAPSHOT_MISSING: Final = Rule.declare(
    "kraft-snapshot-missing",
    "metadata log",
    means="The metadata log does not begin at 0, and no snapshot has the records before it; the node does not start.",
    repair="Copy the newest snapshot from another node, or delete the folder so that the node fetches all.",
)
RECORD: Final = Rule.declare(
    "metadata-record",
    "metadata log",
    means="A record of the metadata cannot be decoded; the node stops when it reads it.",
    repair="Delete the folder on a node that is not the only controller; it fetches the log again.",
)
STATE_FORMAT: Final = Rule.declare(
    "quorum-state-format",
    "quorum state",
    means="The node cannot read its vote and its leader; it does not start.",
    repair="Delete the file if other voters are up; a lone controller writes it anew.",
)
STATE_EPOCH: Final = Rule.declare(
    "quorum-state-epoch",
    "quorum state",
    means="The metadata log has a later epoch than the node remembers: it may vote twice in that epoch.",
    repair="Delete the file; the node goes on from the last epoch of its log.",
)

_MAX_STATE: Final = 1 << 20


def _is_voters(value: object) -> bool:
    if value is None:
        return True
    return isinstance(value, list) and all(
        isinstance(each, dict) and type(each.get("voterId")) is int for each in value
    )


def _is_id(value: object) -> bool:
    try:
        return isinstance(value, str) and read_uuid(value) is not None
    except InvalidInput:
        return False


# What each version of the state has besides the fields that both have. A node does not start if one is missing.
_STATE_FIELDS: Final[dict[int, dict[str, Callable[[object], bool]]]] = {
    0: {
        "clusterId": lambda value: isinstance(value, str),
        "appliedOffset": lambda value: type(value) is int,
        "currentVoters": _is_voters,
    },
    1: {"votedDirectoryId": _is_id},
}


def check_bootstrap(folder: DirectoryFolder) -> Iterator[Problem]:
    """Check the records with which a directory was formatted."""
    if BOOTSTRAP_CHECKPOINT in folder.files:
        yield from _check_snapshot(folder, BOOTSTRAP_CHECKPOINT)


def check_metadata_folder(folder: PartitionFolder) -> Iterator[Problem]:
    """Check the snapshots, the records and the state of the quorum in the metadata log's folder."""
    if folder.partition != METADATA_PARTITION:
        return
    for name in folder.files:
        parsed = FileName.parse(name)
        if not name.endswith(CHECKPOINT):
            continue
        if parsed.base_offset is None:
            yield SNAPSHOT_NAME.broken(name)
        else:
            yield from _check_snapshot(folder, name)
    for base_offset in folder.segments:
        yield from _check_records(folder, file_name(base_offset, LOG), RECORD)
    state = _read_state(folder)
    if isinstance(state, str):
        yield STATE_FORMAT.broken(QUORUM_STATE, position=0, found=state)


def _check_snapshot(folder: Folder, name: str) -> Iterator[Problem]:
    first: Decoded | None = None
    last: Decoded | None = None
    try:
        for decoded in metadata_records(folder, name):
            if first is None and not isinstance(decoded.content, SnapshotHeader):
                yield SNAPSHOT_HEADER.broken(name, position=decoded.position, offset=decoded.offset)
            if last is not None and decoded.offset != last.offset + 1:
                found = f"offset {decoded.offset} after {last.offset}"
                yield SNAPSHOT_OFFSETS.broken(name, position=decoded.position, offset=decoded.offset, found=found)
            if isinstance(decoded.content, FormatError):
                found = decoded.content.rule
                yield SNAPSHOT_RECORD.broken(name, position=decoded.position, offset=decoded.offset, found=found)
            first, last = first or decoded, decoded
    except Truncated as error:
        yield SNAPSHOT_FOOTER.broken(name, position=error.position, found="the file ends inside a batch")
        return
    except FormatError as error:
        yield SNAPSHOT_BATCH.broken(name, position=error.position, found=str(error))
        return
    if first is None:
        yield SNAPSHOT_HEADER.broken(name, position=0, found="the file is empty")
    if last is None or not isinstance(last.content, SnapshotFooter):
        position = 0 if last is None else last.position
        yield SNAPSHOT_FOOTER.broken(name, position=position, offset=None if last is None else last.offset)


def _check_records(folder: Folder, name: str, rule: Rule) -> Iterator[Problem]:
    try:
        for decoded in metadata_records(folder, name):
            if isinstance(decoded.content, FormatError):
                found = decoded.content.rule
                yield rule.broken(name, position=decoded.position, offset=decoded.offset, found=found)
    except FormatError:
        return  # the rules of segments tell what is wrong with the batch


def _read_state(folder: PartitionFolder) -> int | str | None:
    """Return the epoch of `quorum-state`, or what is wrong with it; None if there is no such file."""
    if QUORUM_STATE not in folder.files:
        return None
    data = folder.read(QUORUM_STATE, _MAX_STATE)
    try:
        state = json.loads(data)
    except (ValueError, RecursionError):
        return f"{data[:60]!r} is not JSON"
    if not isinstance(state, dict) or state.get("data_version") not in (0, 1):
        return "it has no data_version 0 or 1"
    for key in ("leaderId", "leaderEpoch", "votedId"):
        if type(state.get(key)) is not int or state[key] < (0 if key == "leaderEpoch" else -1):
            return f"{key} is {state.get(key)!r}"
    for key, is_right in _STATE_FIELDS[state["data_version"]].items():
        if key not in state:
            return f"{key} is missing"
        if not is_right(state[key]):
            return f"{key} is {state[key]!r}"[:300]
    epoch: int = state["leaderEpoch"]
    return epoch


class MetadataLog:
    """Compares the snapshots and the state of the quorum with the batches of the metadata log."""

    def __init__(self, folder: PartitionFolder) -> None:
        self._folder = folder
        self._is_meant = folder.partition == METADATA_PARTITION
        self._snapshots = {
            name: (parsed.base_offset, parsed.epoch)
            for name in folder.files
            if self._is_meant
            and name.endswith(CHECKPOINT)
            and (parsed := FileName.parse(name)).kind is Kind.METADATA_SNAPSHOT
            and parsed.base_offset is not None
        }
        self._epochs: dict[int, int] = {}  # of the batches that end where a snapshot does
        self._first_base: int | None = None
        self._end_offset = 0
        self._last_epoch = -1
        self._is_sound = True

    def begin(self, segment: SegmentData) -> tuple[Problem, ...]:
        """Note where the log begins."""
        if self._first_base is None:
            self._first_base = segment.base_offset
        return ()

    def batches(self, table: Table) -> tuple[Problem, ...]:
        """Note the epochs of the batches before each snapshot."""
        if self._is_meant:
            self._last_epoch = max(self._last_epoch, int(table[:, LEADER_EPOCH].max()))
            for offset, _ in self._snapshots.values():
                has = (table[:, BASE_OFFSET] < offset) & (table[:, LAST_OFFSET] >= offset - 1) & (table[:, MAGIC] == 2)
                for row in np.flatnonzero(has).tolist():
                    self._epochs[offset] = int(table[row, LEADER_EPOCH])
        return ()

    def end(self, segment: SegmentData) -> tuple[Problem, ...]:
        """Note where the log ends."""
        self._end_offset = max(segment.base_offset, segment.end_offset)
        self._is_sound = self._is_sound and segment.is_sound
        return ()

    def finish(self) -> Iterator[Problem]:
        """Compare."""
        if not self._is_meant or self._first_base is None:
            return
        newest = max((offset for offset, _ in self._snapshots.values()), default=0)
        if self._first_base > newest:
            found = f"the log begins at {self._first_base}"
            yield SNAPSHOT_MISSING.broken(file_name(self._first_base, LOG), offset=self._first_base, found=found)
        for name, (offset, epoch) in self._snapshots.items():
            known = self._epochs.get(offset)
            if known is not None and known != epoch:
                found = f"epoch {epoch}, but the log has {known} at offset {offset - 1}"
                yield SNAPSHOT_EPOCH.broken(name, offset=offset, found=found)
            if offset > self._end_offset and self._is_sound and self._folder.beside.is_clean:
                found = f"the log ends at {self._end_offset}"
                yield SNAPSHOT_BEYOND_END.broken(name, offset=offset, found=found)
        state = _read_state(self._folder)
        if isinstance(state, int) and state < self._last_epoch:
            found = f"epoch {state}, but the log has {self._last_epoch}"
            yield STATE_EPOCH.broken(QUORUM_STATE, position=0, found=found)
