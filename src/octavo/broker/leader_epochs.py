"""Leader epochs of a log, as Kafka's leaders know them.

A leader of Kafka begins its epoch at the end of the log when it becomes leader; Octavo's logs note an epoch with its
first batch. So an epoch in which nothing was appended yet begins, and ends, at the end of the log.
"""

from __future__ import annotations

from typing import NamedTuple

from octavo.log.log import Log


class EpochEnd(NamedTuple):
    """An epoch, and the offset at which it ends; -1 for both if nothing is known."""

    epoch: int
    end_offset: int


def epoch_of_start(log: Log) -> int:
    """Return the epoch in which the log begins; -1 if the first one that is known begins later."""
    epochs = log.epochs
    if not epochs:
        return log.leader_epoch
    known = [entry.epoch for entry in epochs if entry.start_offset <= log.start_offset]
    return known[-1] if known else -1


def epoch_end(log: Log, epoch: int) -> EpochEnd:
    """Return the largest epoch up to `epoch`, and where it ends."""
    if epoch < -1:  # before all
        return EpochEnd(epoch, log.epochs[0].start_offset if log.epochs else log.end_offset)
    if epoch == log.leader_epoch:
        return EpochEnd(epoch, log.end_offset)
    if not log.epochs and 0 <= epoch < log.leader_epoch:
        return EpochEnd(epoch, log.end_offset)
    return EpochEnd(*log.end_offset_for_epoch(epoch))


def followed_epoch_end(log: Log, epoch: int) -> EpochEnd:
    """Return the same for a log that follows another broker's: it knows the epochs of its records only."""
    return EpochEnd(*log.end_offset_for_epoch(epoch))
