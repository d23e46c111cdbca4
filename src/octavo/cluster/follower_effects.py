"""What a follower has to do with its logs after an answer of the leader: `Effect`."""

from __future__ import annotations

from typing import NamedTuple

from octavo.cluster.messages import TopicIdPartition


class Append(NamedTuple):
    """Append the records, then set the high watermark, then the start offset (`Log.follow_start`).

    The log's `append_as_follower` gets the leader's epoch. `restart_at`: empty the log first, and begin it there: the
    leader's log begins inside a batch, and this log is empty.
    """

    partition: TopicIdPartition
    records: bytes | memoryview
    leader_epoch: int
    high_watermark: int
    log_start_offset: int
    restart_at: int | None = None


class TruncateToEpoch(NamedTuple):
    """Remove what the leader does not have, as `Log.truncate_to_epoch` does."""

    partition: TopicIdPartition
    epoch: int
    end_offset: int


class TruncateTo(NamedTuple):
    """Remove everything from an offset on."""

    partition: TopicIdPartition
    offset: int


class Restart(NamedTuple):
    """Empty the log, and begin it at an offset, which is the high watermark then, too (KAFKA-9491)."""

    partition: TopicIdPartition
    offset: int


Effect = Append | TruncateToEpoch | TruncateTo | Restart
