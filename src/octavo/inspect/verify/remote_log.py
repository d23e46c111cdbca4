"""The rules of files that releases 3.0 to 3.7 kept for tiered storage.

`remote_log_snapshot` lies in the folder of a partition: version (int16, 0), partition and offset of the metadata topic
(int32, int64), number of entries (int32), then each entry with its size (int32) before it. It may be empty.
`_rlmm_committed_offsets` lies in the data directory: a checkpoint with a partition and an offset in each line.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

from octavo.inspect.verify.directory import DirectoryFolder
from octavo.inspect.verify.partition import PartitionFolder
from octavo.inspect.verify.problem import Problem, Rule
from octavo.inspect.verify.text_lines import MAX_SIZE, read_checkpoint

SNAPSHOT: Final = Rule.declare(
    "remote-log-snapshot-format",
    "remote log snapshot",
    means="The list of segments in remote storage is damaged; the broker reads the metadata topic again.",
    repair="Delete the file.",
)
OFFSETS: Final = Rule.declare(
    "remote-log-offsets-format",
    "remote log offsets",
    means="How far the metadata of remote storage were read cannot be told; the broker reads the topic again.",
    repair="Delete the file.",
)

_SNAPSHOT: Final = "remote_log_snapshot"
_OFFSETS: Final = "_rlmm_committed_offsets"
_START: Final = struct.Struct(">hiqi")
_SIZE: Final = struct.Struct(">i")
assert _START.size == 18
_MAX_SNAPSHOT: Final = 256 << 20


def check_remote_snapshot(folder: PartitionFolder) -> Iterator[Problem]:
    """Check the list of remote segments of a partition."""
    if _SNAPSHOT not in folder.files:
        return
    wrong = _wrong_snapshot(folder.read(_SNAPSHOT, _MAX_SNAPSHOT))
    if wrong is not None:
        yield SNAPSHOT.broken(_SNAPSHOT, position=wrong[0], found=wrong[1])


def _wrong_snapshot(data: bytes) -> tuple[int, str] | None:
    if not data:
        return None
    if len(data) < _START.size:
        return len(data), "the file ends inside its first fields"
    version, partition, offset, count = _START.unpack_from(data)
    if version != 0:
        return 0, f"version {version}"
    if partition < 0 or offset < -1 or count < 0:
        return 2, f"partition {partition}, offset {offset}, {count} entries"
    position = _START.size
    for number in range(count):
        size = _SIZE.unpack_from(data, position)[0] if position + _SIZE.size <= len(data) else -1
        if size < 0 or position + _SIZE.size + size > len(data):
            return position, f"entry {number} of {count} does not fit"
        position += _SIZE.size + size
    return None if position == len(data) else (position, f"{len(data) - position} bytes are left over")


def check_remote_offsets(folder: DirectoryFolder) -> Iterator[Problem]:
    """Check how far the metadata of remote storage were read."""
    if _OFFSETS not in folder.files:
        return
    lines, bad = read_checkpoint(folder.read(_OFFSETS, MAX_SIZE), 2)
    if bad is not None:
        yield OFFSETS.broken(_OFFSETS, position=bad.position, found=bad.what)
    seen: set[str] = set()
    for line in lines:
        if line.words[0] in seen or line.number(0, 32) is None or line.words[0].startswith("-"):
            yield OFFSETS.broken(_OFFSETS, position=line.position, found=" ".join(line.words))
        seen.add(line.words[0])
