"""The decisions of a follower and of a leader, carried out on real logs: these become the same, byte for byte."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from octavo.cluster.follower_effects import Append, Effect, Restart, TruncateTo, TruncateToEpoch
from octavo.cluster.following import Fetcher
from octavo.cluster.leading import ClusterView, LedPartition, Outcome
from octavo.cluster.messages import (
    LATEST,
    EpochEndOffset,
    FetchAnswer,
    FetchedPartition,
    FetchPartition,
    FetchRequest,
    ListedOffset,
    ListOffsetsRequest,
)
from octavo.errors import ErrorCode
from octavo.log import Isolation, Log
from tests.unit.cluster.leaders import broker, state
from tests.unit.cluster.partitions import A
from tests.unit.log.logs import make_batch, open_log


class Pair:
    """A leader, which is broker 1, and a follower, which is broker 2."""

    def __init__(self, folder: Path) -> None:
        for name in ("leader", "follower"):
            (folder / name).mkdir()
        self.leader: Final = open_log(folder / "leader")
        self.follower: Final = open_log(folder / "follower")
        self.effects: Final[list[Effect]] = []
        self.epoch = -1
        for log in (self.leader, self.follower):
            log.advance_high_watermark(0)

    def close(self) -> None:
        self.leader.close()
        self.follower.close()

    def replicate(self, epoch: int = 5) -> None:
        """Have the follower fetch until it has everything."""
        self.epoch = epoch
        cluster = ClusterView(1, 101, {1: broker(1), 2: broker(2)})
        self.led = LedPartition(A, cluster, min_isr=1)
        log, own = self.leader, self.follower
        start = log.become_leader(epoch)
        record = state(1, 2, replicas=(1, 2), leader_epoch=epoch)
        outcome = self.led.lead(
            record, 0, end_offset=log.end_offset, high_watermark=log.high_watermark, epoch_start=start
        )
        self._take(outcome)
        fetcher = Fetcher()
        self._carry_out(fetcher, fetcher.follow(A, self._position(), own.high_watermark))
        for now_ms in range(100):
            request = fetcher.next_request(now_ms)
            assert request is not None
            if isinstance(request, ListOffsetsRequest):
                is_end = request.partitions[A].timestamp == LATEST
                listed = ListedOffset(0, log.end_offset if is_end else log.start_offset)
                effects = fetcher.listed({A: listed}, now_ms)
            else:
                effects = fetcher.fetched(FetchAnswer(0, 0, {A: self._serve(request, now_ms)}), now_ms)
            self._carry_out(fetcher, effects)
            if own.end_offset == log.end_offset == own.high_watermark:
                return
        raise AssertionError("the follower does not catch up")

    def _position(self) -> FetchPartition:
        own = self.follower
        last_epoch = own.epochs[-1].epoch if own.epochs else -1
        return FetchPartition(self.epoch, own.end_offset, last_epoch, own.start_offset)

    def _serve(self, request: FetchRequest, now_ms: int) -> FetchedPartition:
        log, asked = self.leader, request.partitions[A]
        assert self.led.refusal(2, 102, asked.current_leader_epoch) == 0
        if asked.last_fetched_epoch >= 0:
            end = log.end_offset_for_epoch(asked.last_fetched_epoch)
            if end.epoch >= 0 and (end.epoch < asked.last_fetched_epoch or end.end_offset < asked.fetch_offset):
                return FetchedPartition(diverging_epoch=EpochEndOffset(*end))
        if not log.start_offset <= asked.fetch_offset <= log.end_offset:
            return FetchedPartition(ErrorCode.OFFSET_OUT_OF_RANGE)
        offsets = {"fetch_offset": asked.fetch_offset, "log_start_offset": asked.log_start_offset}
        self._take(self.led.fetched(2, 102, **offsets, end_offset=log.end_offset, now_ms=now_ms))
        records = bytes(log.read(asked.fetch_offset, 500, isolation=Isolation.LOG_END).records)
        return FetchedPartition(0, log.high_watermark, log.start_offset, records)

    def _take(self, outcome: Outcome) -> None:
        if outcome.high_watermark is not None:
            assert self.leader.advance_high_watermark(outcome.high_watermark) == outcome.high_watermark

    def _carry_out(self, fetcher: Fetcher, effects: list[Effect]) -> None:
        own = self.follower
        for effect in effects:
            self.effects.append(effect)
            if isinstance(effect, Append):
                if effect.restart_at is not None:
                    own.restart_at(effect.restart_at)
                own.append_as_follower(effect.records, leader_epoch=effect.leader_epoch)
                own.advance_high_watermark(effect.high_watermark)
                own.follow_start(effect.log_start_offset)
            elif isinstance(effect, TruncateToEpoch):
                own.truncate_to_epoch(effect.epoch, effect.end_offset)
            elif isinstance(effect, TruncateTo):
                own.truncate_to(effect.offset)
            else:
                own.restart_at(effect.offset)
            at = self._position()
            fetcher.moved(
                A,
                end_offset=at.fetch_offset,
                last_fetched_epoch=at.last_fetched_epoch,
                log_start_offset=own.start_offset,
            )

    def kinds(self) -> set[type[Effect]]:
        return {type(effect) for effect in self.effects}

    def check_equal(self) -> None:
        start = max(self.leader.start_offset, self.follower.start_offset)
        mine, theirs = ([bytes(batch.data) for batch in log.reader(start)] for log in (self.leader, self.follower))
        assert mine == theirs
        assert self.leader.high_watermark == self.follower.high_watermark == self.leader.end_offset


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return Pair(tmp_path)


def fill(log: Log, epoch: int, count: int) -> None:
    log.become_leader(epoch)
    for number in range(count):
        log.append(make_batch(3, first=1000 * epoch + number))


def test_a_follower_gets_everything(pair: Pair) -> None:
    fill(pair.leader, 1, 20)
    pair.replicate()
    pair.check_equal()
    assert pair.follower.epochs == pair.leader.epochs[:1]  # epoch 5 has no records yet
    assert pair.kinds() == {Append}
    pair.close()


def test_logs_that_diverged_agree_again(pair: Pair) -> None:
    fill(pair.leader, 1, 10)
    pair.replicate()
    fill(pair.follower, 6, 4)  # it led, and nobody had these
    fill(pair.leader, 7, 5)
    fill(pair.follower, 8, 4)
    pair.effects.clear()
    pair.replicate(9)
    pair.check_equal()
    assert TruncateToEpoch in pair.kinds()
    pair.close()


def test_an_empty_follower_begins_where_the_leader_begins(pair: Pair) -> None:
    fill(pair.leader, 1, 20)
    pair.leader.advance_high_watermark(60)
    pair.leader.delete_records_before(31)  # inside a batch
    pair.replicate()
    pair.check_equal()
    assert pair.follower.start_offset == 31
    assert Restart in pair.kinds()
    assert any(isinstance(effect, Append) and effect.restart_at == 30 for effect in pair.effects)
    pair.close()


def test_a_follower_that_is_ahead_of_a_leader_without_its_epochs_is_cut(pair: Pair) -> None:
    fill(pair.follower, 1, 4)
    pair.replicate()
    assert pair.follower.end_offset == 0
    pair.close()
