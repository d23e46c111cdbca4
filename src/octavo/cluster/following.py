"""Follow one leader: `Fetcher` says what to ask of it, and what its answers mean for the logs.

    fetcher.follow(partition, position, high_watermark)     # metadata name the leader, in a new epoch
    request = fetcher.next_request(now_ms)                  # FetchRequest, ListOffsetsRequest, or None: nothing to ask
    effects = fetcher.fetched(answer, now_ms)               # or `listed`, or `failed` if the leader does not answer
    fetcher.moved(partition, end_offset=..., ...)           # an effect was carried out: where the log is now

One request is under way at a time. A partition that has an effect to be carried out is not asked for until `moved`,
`refused` or `broken` is called. Effects of an old epoch are carried out before `follow` names a new one. Only what the
leader says truncates a log, never the change of leaders itself (KIP-101).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import Enum, auto
from typing import Final

from octavo.cluster.follower_effects import Append, Effect, Restart, TruncateTo, TruncateToEpoch
from octavo.cluster.leader_session import LeaderSession
from octavo.cluster.messages import (
    EARLIEST_LOCAL,
    LATEST,
    NO_EPOCH,
    NONE,
    FetchAnswer,
    FetchedPartition,
    FetchPartition,
    FetchRequest,
    ListedOffset,
    ListOffsetsPartition,
    ListOffsetsRequest,
    TopicIdPartition,
)
from octavo.errors import ErrorCode

BACK_OFF_MS: Final = 1000  # replica.fetch.backoff.ms
_FIRST_BACK_OFF_MS: Final = 20  # then twice as long each time: a leader often learns of its partitions a moment later
HOLD_MS: Final = 50  # for an append that takes longer, others are not held up
_BASE_OFFSET_SIZE: Final = 8  # every batch begins with its base offset


class _Stage(Enum):
    FETCH = auto()  # ask for records
    FIND_END = auto()  # the offset was out of range: ask where the leader's log ends
    FIND_START = auto()  # then, where it begins
    BUSY = auto()  # an effect is being carried out
    WAIT = auto()  # until metadata bring a new epoch


# What is asked for at stages at which ListOffsets is asked; and those at which nothing is.
_TIMESTAMPS: Final = {_Stage.FIND_END: LATEST, _Stage.FIND_START: EARLIEST_LOCAL}
_STILL: Final = (_Stage.BUSY, _Stage.WAIT)


class _Followed:
    """One partition that is followed."""

    __slots__ = ("at", "back_off_ms", "lag", "not_before_ms", "stage", "told")

    def __init__(self, at: FetchPartition) -> None:
        self.at = at
        self.stage = _Stage.FETCH
        self.not_before_ms = 0
        self.back_off_ms = _FIRST_BACK_OFF_MS  # the next time
        self.lag: int | None = None  # behind the leader's high watermark; None if that is not known
        self.told: tuple[int, int] | None = None  # the leader's high watermark and start offset, as the log knows them


class Fetcher:
    """Fetches from one leader all partitions that follow it."""

    def __init__(self, *, back_off_ms: int = BACK_OFF_MS) -> None:
        """Follow nothing yet. `back_off_ms`: the longest time to wait after an error."""
        self._back_off_ms: Final = back_off_ms
        self._followed: Final[dict[TopicIdPartition, _Followed]] = {}
        self._session: Final = LeaderSession()
        self._asked: Mapping[TopicIdPartition, FetchPartition] | None = None  # in the request that is under way
        self._is_fetch = False  # it is a Fetch, and no ListOffsets
        # Partitions with something new since the last request. The others are looked at only if they are in one of
        # the sets below, so that a request costs what has changed, and not what is followed.
        self._touched: dict[TopicIdPartition, None] = {}
        self._pausing: Final[set[TopicIdPartition]] = set()  # after an error
        self._finding: Final[set[TopicIdPartition]] = set()  # to be asked for by ListOffsets
        self._held_back: Final[set[TopicIdPartition]] = set()  # when there was last a request
        self._appending: Final[set[TopicIdPartition]] = set()  # their records are being appended
        self._hold_until_ms = 0  # nothing is asked meanwhile

    # -------------------------------------------------------------------------------------------------- what to follow

    def follow(self, partition: TopicIdPartition, at: FetchPartition, high_watermark: int) -> list[Effect]:
        """Follow a partition from the end of its log, in a new leader epoch.

        at: `fetch_offset` is the end of the log, and `last_fetched_epoch` that of its last batch, -1 if it has none.
            Then nothing tells where it differs from the leader's, so it is cut at its high watermark
        """
        known = self._followed.get(partition)
        if known is not None and known.at.current_leader_epoch == at.current_leader_epoch:
            return []
        self._followed[partition] = followed = _Followed(at)
        self._touched[partition] = None
        self._appending.discard(partition)
        if at.last_fetched_epoch == NO_EPOCH and at.fetch_offset > high_watermark:
            followed.stage = _Stage.BUSY
            return [TruncateTo(partition, high_watermark)]
        return []

    def forget(self, partition: TopicIdPartition) -> None:
        """Follow a partition no more. An answer that is still to come does not count for it."""
        self._followed.pop(partition, None)
        self._touched[partition] = None
        self._appending.discard(partition)

    @property
    def partitions(self) -> Collection[TopicIdPartition]:
        """The partitions that are followed."""
        return self._followed.keys()

    def lag(self, partition: TopicIdPartition) -> int | None:
        """Return how far a partition is behind the leader's high watermark; None if that is not known."""
        followed = self._followed.get(partition)
        return None if followed is None else followed.lag

    # ------------------------------------------------------------------------------------------------------ what to ask

    def next_request(
        self, now_ms: int, *, held_back: Collection[TopicIdPartition] = ()
    ) -> FetchRequest | ListOffsetsRequest | None:
        """Return what to ask now; None if a request is under way, or there is nothing to ask.

        While records are appended, nothing is asked for a while: a Fetch without their partition might wait at the
        leader for others, which would learn only then that this replica has them.

        held_back: partitions that are throttled, while more is fetched than they may. Those in sync are asked for
            all the same
        """
        if self._asked is not None or (self._appending and now_ms < self._hold_until_ms):
            return None
        self._sort(now_ms, held_back)
        if self._finding:
            asked = {partition: self._followed[partition] for partition in self._finding}
            self._asked, self._is_fetch = {partition: followed.at for partition, followed in asked.items()}, False
            return ListOffsetsRequest(
                {
                    partition: ListOffsetsPartition(followed.at.current_leader_epoch, _TIMESTAMPS[followed.stage])
                    for partition, followed in asked.items()
                }
            )
        if not self._session.wanted:
            return None
        self._asked, self._is_fetch = self._session.wanted, True
        return self._session.request()

    def _sort(self, now_ms: int, held_back: Collection[TopicIdPartition]) -> None:
        """Look at the partitions of which something else may have to be asked than in the last request."""
        touched, self._touched = self._touched, {}
        touched.update(dict.fromkeys(self._pausing))
        touched.update(dict.fromkeys(self._held_back))
        touched.update(dict.fromkeys(held_back))
        for sorted_before in (self._pausing, self._finding, self._held_back):
            sorted_before.difference_update(touched)
        for partition in touched:
            followed = self._followed.get(partition)
            if followed is None or followed.stage in _STILL:
                self._session.drop(partition)
            elif followed.not_before_ms > now_ms:
                self._session.drop(partition)
                self._pausing.add(partition)
            elif followed.stage in _TIMESTAMPS:
                self._session.drop(partition)
                self._finding.add(partition)
            elif followed.lag != 0 and partition in held_back:
                self._session.drop(partition)
                self._held_back.add(partition)
            else:
                self._session.want(partition, followed.at)

    @property
    def next_ms(self) -> int | None:
        """The time at which there may be something to ask again; None if only an event can bring that."""
        if self._asked is not None:
            return None
        earliest_ms = self._hold_until_ms if self._appending else 0
        touched = self._touched
        ready = (self._session.wanted, self._finding, self._held_back)
        if any(partition not in touched for several in ready for partition in several):
            return earliest_ms
        followed = (self._followed.get(partition) for partition in (*touched, *self._pausing))
        times = [each.not_before_ms for each in followed if each is not None and each.stage not in _STILL]
        return max(min(times), earliest_ms) if times else None

    # ---------------------------------------------------------------------------------------------------------- answers

    def fetched(self, answer: FetchAnswer, now_ms: int) -> list[Effect]:
        """Take the answer to a Fetch."""
        asked = self._take_asked()
        if not self._session.answered(answer):
            if answer.error_code not in _NEW_SESSION:
                self._back_off_all(asked, now_ms)
            return []
        effects: list[Effect] = []
        for partition, part in answer.partitions.items():
            followed = self._current(partition, asked)
            if followed is not None:
                self._touched[partition] = None
                effects += self._fetched_one(partition, followed, part, now_ms)
        return effects

    def _fetched_one(
        self, partition: TopicIdPartition, followed: _Followed, part: FetchedPartition, now_ms: int
    ) -> list[Effect]:
        if part.error_code != NONE:
            self._take_error(followed, part.error_code, now_ms)
            return []
        if part.diverging_epoch is not None:  # nothing else in this answer counts (KAFKA-14704)
            followed.stage = _Stage.BUSY
            return [TruncateToEpoch(partition, *part.diverging_epoch)]
        restart_at = None
        if len(part.records) >= _BASE_OFFSET_SIZE:
            first = int.from_bytes(part.records[:_BASE_OFFSET_SIZE], signed=True)
            if first < followed.at.fetch_offset:
                is_empty = followed.at.log_start_offset == followed.at.fetch_offset
                if not is_empty or first < 0:
                    self._back_off(followed, now_ms)
                    return []
                restart_at = first
        watermark, start = told = part.high_watermark, part.log_start_offset
        followed.lag = max(0, watermark - followed.at.fetch_offset)
        if not part.records and told == followed.told:
            followed.back_off_ms = _FIRST_BACK_OFF_MS
            return []
        followed.stage, followed.told = _Stage.BUSY, told
        if part.records:
            self._appending.add(partition)
            self._hold_until_ms = now_ms + HOLD_MS
        return [Append(partition, part.records, followed.at.current_leader_epoch, watermark, start, restart_at)]

    def listed(self, answer: dict[TopicIdPartition, ListedOffset], now_ms: int) -> list[Effect]:
        """Take the answer to a ListOffsets."""
        asked = self._take_asked()
        effects: list[Effect] = []
        for partition in asked:
            followed = self._current(partition, asked)
            if followed is None:
                continue
            self._touched[partition] = None
            found = answer.get(partition, ListedOffset(ErrorCode.UNKNOWN_SERVER_ERROR))
            if found.error_code != NONE:
                self._take_error(followed, found.error_code, now_ms)
            elif found.offset < 0:
                self._back_off(followed, now_ms)
            else:
                effects += self._listed_one(partition, followed, found.offset, now_ms)
        return effects

    def _listed_one(self, partition: TopicIdPartition, followed: _Followed, offset: int, now_ms: int) -> list[Effect]:
        own_end = followed.at.fetch_offset
        if followed.stage is _Stage.FIND_END:
            if offset < own_end:
                followed.stage = _Stage.BUSY
                return [TruncateTo(partition, offset)]
            followed.stage = _Stage.FIND_START
            return []
        if offset > own_end:
            followed.stage = _Stage.BUSY
            return [Restart(partition, offset)]
        followed.stage = _Stage.FETCH  # the leader's log has changed meanwhile; if not, this must not go in circles
        self._back_off(followed, now_ms)
        return []

    def failed(self, now_ms: int) -> None:
        """Note that the leader did not answer, or that the connection was lost."""
        asked = self._take_asked()
        if self._is_fetch:
            self._session.lost()
        self._back_off_all(asked, now_ms)

    # ---------------------------------------------------------------------------------------------------- what was done

    def moved(
        self, partition: TopicIdPartition, *, end_offset: int, last_fetched_epoch: int, log_start_offset: int
    ) -> None:
        """Note where the log is after an effect. `last_fetched_epoch`: the last epoch of the log, not the leader's."""
        followed = self._done(partition)
        if followed is None or followed.stage is not _Stage.BUSY:
            return
        if followed.lag is not None:
            followed.lag = max(0, followed.lag - (end_offset - followed.at.fetch_offset))
        followed.at = FetchPartition(followed.at.current_leader_epoch, end_offset, last_fetched_epoch, log_start_offset)
        followed.stage = _Stage.FETCH
        followed.back_off_ms = _FIRST_BACK_OFF_MS

    def refused(self, partition: TopicIdPartition, now_ms: int, position: tuple[int, int, int] | None = None) -> None:
        """Note that the log has refused the records. They are asked for again: the leader may be about to change.

        position: where the log is, as for `moved`, if a part of the effect may have been carried out
        """
        followed = self._done(partition)
        if followed is not None and followed.stage is _Stage.BUSY:
            if position is not None:
                followed.at = FetchPartition(followed.at.current_leader_epoch, *position)
            followed.stage = _Stage.FETCH
            followed.told = None
            self._back_off(followed, now_ms)

    def broken(self, partition: TopicIdPartition) -> None:
        """Note that the disk has failed under a log. It is asked for no more, in this epoch."""
        followed = self._done(partition)
        if followed is not None:
            followed.stage = _Stage.WAIT

    # ---------------------------------------------------------------------------------------------------------- details

    def _done(self, partition: TopicIdPartition) -> _Followed | None:
        """Return a partition of which an effect was carried out, if it is still followed."""
        self._appending.discard(partition)
        followed = self._followed.get(partition)
        if followed is not None:
            self._touched[partition] = None
        return followed

    def _take_asked(self) -> Mapping[TopicIdPartition, FetchPartition]:
        assert self._asked is not None
        asked, self._asked = self._asked, None
        return asked

    def _current(
        self, partition: TopicIdPartition, asked: Mapping[TopicIdPartition, FetchPartition]
    ) -> _Followed | None:
        """Return a partition if it is still where it was when it was asked for."""
        followed = self._followed.get(partition)
        if followed is None or followed.at != asked.get(partition) or followed.stage in _STILL:
            return None
        return followed

    def _take_error(self, followed: _Followed, error_code: int, now_ms: int) -> None:
        if error_code == ErrorCode.OFFSET_OUT_OF_RANGE and followed.stage is _Stage.FETCH:
            followed.stage = _Stage.FIND_END
        elif error_code == ErrorCode.FENCED_LEADER_EPOCH:
            followed.stage = _Stage.WAIT  # there is a newer epoch, and metadata will bring it
        else:
            self._back_off(followed, now_ms)

    def _back_off(self, followed: _Followed, now_ms: int) -> None:
        followed.not_before_ms = now_ms + min(followed.back_off_ms, self._back_off_ms)
        followed.back_off_ms = min(2 * followed.back_off_ms, self._back_off_ms)

    def _back_off_all(self, asked: Mapping[TopicIdPartition, FetchPartition], now_ms: int) -> None:
        for partition in asked:
            followed = self._current(partition, asked)
            if followed is not None:
                self._touched[partition] = None
                self._back_off(followed, now_ms)


# Errors of a whole answer after which a new session is begun at once. The others say that something is not ready.
_NEW_SESSION: Final = (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH)
