"""The repairs that are advised for files of a partition, and what has to be considered before they are followed.

Kafka recovers a segment whose `.index` is missing, after a clean shutdown, too: it reads the batches, makes all three
indexes anew, and collects producers and leader epochs. It leaves everything else in the directory alone. If
`.kafka_cleanshutdown` is missing, in contrast, it recovers all partitions from their recovery points on, and not what
is before these. So no repair removes that mark.

Recovery cuts a segment at its first batch that is not sound, also where sound ones follow. And indexes may be the last
trace of what is lost. So `considered` replaces such advice where the log itself is damaged.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from octavo.inspect.verify.problem import Problem
from octavo.log.names import LOG

SALVAGE: Final = "Copy the partition from another replica, or keep every other batch with `octavo salvage`."
SALVAGE_MESSAGES: Final = "Copy the partition from another replica, or keep every other message with `octavo salvage`."
NAME_ANEW: Final = "Copy the partition from another replica, or let `octavo salvage` write its batches to new segments."
RESTORE: Final = "Copy the partition from another replica; Kafka itself goes on without what is lost."
READABLE: Final = "Nothing on the disk has to be repaired: Kafka serves the records. Mend the client that wrote them."

REBUILD_INDEXES: Final = (
    "Stop the broker and delete the segment's `.index` and `.timeindex`: Kafka rebuilds both when it starts."
)
REBUILD_TRANSACTIONS: Final = (
    "Stop the broker and delete the segment's `.txnindex`, `.index` and `.timeindex`: Kafka rebuilds all three when it "
    "starts."
)
CUT_TAIL: Final = (
    "Stop the broker and delete the segment's `.index` and `.timeindex`: Kafka cuts what is behind the last whole "
    "batch when it starts. Or use `octavo salvage`."
)
COLLECT_EPOCHS: Final = (
    "Stop the broker and delete the file, and the `.index` and `.timeindex` of all segments of the partition: Kafka "
    "collects the epochs from the batches when it starts."
)
READ_PRODUCERS: Final = (
    "Stop the broker and delete the file; if the partition has no earlier `.snapshot`, also the `.index` and "
    "`.timeindex` of all its segments. Kafka reads the producers from the log when it starts."
)
READ_ALL_PRODUCERS: Final = (
    "Stop the broker and delete the `.index` and `.timeindex` of all segments of the partition: Kafka reads the "
    "producers from the log when it starts."
)
BESIDE_DAMAGE: Final = (
    "The log itself is damaged: copy the partition from another replica, or keep every sound batch with "
    "`octavo salvage`, which makes this file anew."
)

_OF_DAMAGE: Final = frozenset({SALVAGE, SALVAGE_MESSAGES, NAME_ANEW, RESTORE})
_RECOVER_SEGMENT: Final = frozenset({REBUILD_INDEXES, REBUILD_TRANSACTIONS, CUT_TAIL})
_RECOVER_PARTITION: Final = frozenset({COLLECT_EPOCHS, READ_PRODUCERS, READ_ALL_PRODUCERS})


def considered(problems: Iterable[Problem]) -> list[Problem]:
    """Return the problems of one partition, with other advice where following the rule's would lose sound batches."""
    found = list(problems)
    damaged = {_segment_of(each) for each in found if each.file.endswith(LOG) and each.rule.repair in _OF_DAMAGE}
    return [replace(each, instead=BESIDE_DAMAGE) if _would_cut(each, damaged) else each for each in found]


def _would_cut(problem: Problem, damaged: set[str]) -> bool:
    if problem.rule.repair in _RECOVER_PARTITION:
        return bool(damaged)
    return problem.rule.repair in _RECOVER_SEGMENT and _segment_of(problem) in damaged


def _segment_of(problem: Problem) -> str:
    return problem.file.partition(".")[0]
