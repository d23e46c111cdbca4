"""Change the log of a follower as its `Fetcher` says: `change`."""

from __future__ import annotations

from octavo.cluster.follower_effects import Append, Effect, Restart, TruncateTo, TruncateToEpoch
from octavo.cluster.messages import NO_EPOCH
from octavo.log.log import Log


def last_epoch(log: Log) -> int:
    """Return the epoch of the last batch of a log; -1 if it has none."""
    epochs = log.epochs
    return epochs[-1].epoch if epochs else NO_EPOCH


def kept(effect: Effect) -> Effect:
    """Return an effect that can be kept: its records are a copy."""
    return effect._replace(records=bytes(effect.records)) if isinstance(effect, Append) else effect


def change(log: Log, effect: Effect) -> None:
    """Change a log as the leader's answer says."""
    if isinstance(effect, Append):
        if effect.restart_at is not None:
            log.restart_at(effect.restart_at)
        log.replicate(
            effect.records,
            leader_epoch=effect.leader_epoch,
            high_watermark=effect.high_watermark,
            start_offset=effect.log_start_offset,
        )
    elif isinstance(effect, TruncateToEpoch):
        log.truncate_to_epoch(effect.epoch, effect.end_offset)
    elif isinstance(effect, TruncateTo):
        log.truncate_to(effect.offset)
    else:
        assert isinstance(effect, Restart)
        log.restart_at(effect.offset)
