"""What two replicas differ in, and the rules for that."""

from __future__ import annotations

from typing import Final, NamedTuple

from octavo.inspect.verify.problem import Rule
from octavo.inspect.verify.replicas.replica_log import Place

KIND: Final = "replicas"

TOPIC: Final = Rule.declare(
    "replica-topic",
    KIND,
    means="The folders belong to different topics of the same name: they are not replicas of each other.",
    repair="Leave out the directories of the topic that was deleted.",
)
DIVERGED: Final = Rule.declare(
    "replica-diverged",
    KIND,
    means="The replicas have different histories from this offset on, written by different leaders.",
    repair="Kafka cuts the replica with the older epoch when it follows the other; save its records before that.",
)
CONTENT: Final = Rule.declare(
    "replica-content",
    KIND,
    means="The same leader's record is different in two replicas: one of them was changed.",
    repair="Delete the replica that is wrong, and let Kafka fetch it again.",
)
MISSING: Final = Rule.declare(
    "replica-missing",
    KIND,
    means="A replica lacks records in the middle that another has, and no compaction can have removed them.",
    repair="Delete the replica that lacks records, and let Kafka fetch it again.",
)


class Difference(NamedTuple):
    """The first offset at which two replicas differ."""

    offset: int
    what: str  # of `_COMPARED`, or "missing"
    left: Place | None  # the batch that has the offset; None if there is none
    right: Place | None
    left_epoch: int | None
    right_epoch: int | None
