"""A follower asks leaders, and changes real logs: at once, or in another thread if that would wait."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest

from octavo.broker.config_resources import ResourceType
from octavo.broker.member.following import Cluster, Following
from octavo.broker.member.quota import ReplicationQuota
from octavo.broker.member.surroundings import Surroundings
from octavo.broker.wire.api_keys import FETCH, LIST_OFFSETS
from octavo.broker.wire.messages import write_response
from octavo.broker.wire.replica_fetch import FetchLimits
from octavo.cluster.following import HOLD_MS
from octavo.cluster.leading import ClusterView
from octavo.cluster.messages import Endpoint, TopicIdPartition
from octavo.errors import ErrorCode, MalformedRequest
from octavo.log.checkpoints import Checkpoints
from octavo.log.log import Log
from octavo.log.metadata.sorted_map import SortedMap
from octavo.log.writing.segments import LogSegments
from tests.unit.broker.member.member_broker import TOPIC, MemberBroker
from tests.unit.broker.member.recorded_peers import RecordedPeers, Sent
from tests.unit.log.logs import make_batch

LEADER: Final = Endpoint("leader", 9092)
EPOCH: Final = 3


class Follower(RecordedPeers):
    """Broker 1 follows broker 2. It has no sockets, and what another thread would do waits for the test."""

    def __init__(self, folder: Path, config: dict[str, str] | None = None, *, max_bytes: int = 10 << 20) -> None:
        super().__init__()
        self.member: Final = MemberBroker(folder, config)
        self.log: Final[Log] = self.member.directory.log(TOPIC, 0)
        self.log.become_follower(EPOCH)
        self.partition: Final = TopicIdPartition(self.member.topic_id, 0)
        self.left: Final[list[Callable[[], None]]] = []  # to another thread
        self.failed: Final[list[OSError]] = []
        self.said: Final[list[str]] = []
        self.now_ms = 1000
        here = Surroundings(
            self, 1, lambda do: do(), self.left.append, self.said.append, lambda: self.now_ms, lambda: None
        )
        directory = self.member.directory
        metadata: Any = SimpleNamespace(image=directory.cluster, topics=directory.topics)
        self.following: Final = Following(
            here,
            Cluster(metadata, ClusterView(1, 77, {})),
            quota=ReplicationQuota(self.member.broker, "follower", lambda: self.now_ms),
            limits=FetchLimits(max_bytes=max_bytes),
            back_off_ms=100,
            timeout_ms=1000,
            done=lambda: None,
            failed=self.failed.append,
        )
        self.following.follow(self.partition, self.log, 2, EPOCH, LEADER)

    def close(self) -> None:
        self.member.close()

    def check(self, sent: Sent) -> None:
        """Each leader is asked by a connection of its own."""
        assert (sent.channel, sent.client_id) == ("fetch-2", "broker-1-fetcher-0")

    def work(self) -> None:
        """Do what was left to other threads."""
        while self.left:
            self.left.pop(0)()

    def poll(self) -> Sent | None:
        """Return what is asked now; None if nothing is."""
        self.following.poll(self.now_ms)
        return self.sent.pop() if self.sent else None

    def asked(self) -> Sent:
        sent = self.poll()
        assert sent is not None
        return sent

    def answer(
        self, sent: Sent, records: bytes = b"", *, high_watermark: int = 0, start: int = 0, error: int = 0
    ) -> None:
        partition = {
            "partition_index": 0,
            "error_code": error,
            "high_watermark": high_watermark,
            "last_stable_offset": high_watermark,
            "log_start_offset": start,
            "aborted_transactions": [],
            "preferred_read_replica": -1,
            "records": records,
        }
        topic = {"topic_id": self.partition.topic_id.bytes, "partitions": [partition]}
        content = {"throttle_time_ms": 0, "error_code": 0, "session_id": 0, "responses": [topic], "node_endpoints": []}
        sent.answered(memoryview(write_response(FETCH, sent.version, content)))


@pytest.fixture
def follower(tmp_path: Path) -> Iterator[Follower]:
    made = Follower(tmp_path)
    yield made
    made.close()


def batch(first: int, count: int) -> bytes:
    """A batch as the leader has it, with offsets from `first` on."""
    data = bytearray(make_batch(count, first=first))
    data[:8] = first.to_bytes(8)
    data[12:16] = EPOCH.to_bytes(4)
    return bytes(data)


def test_records_are_appended_as_the_leader_has_them(follower: Follower) -> None:
    sent = follower.asked()
    assert sent.api_key == FETCH
    assert sent.read().topics[0].partitions[0].fetch_offset == 0
    assert follower.poll() is None  # one request is under way
    follower.answer(sent, batch(0, 3), high_watermark=2)
    for do in follower.left:  # the first batch of an epoch waits for the disk
        do()
    assert (follower.log.end_offset, follower.log.high_watermark) == (3, 2)
    again = follower.asked()
    asked = again.read().topics[0].partitions[0]
    assert (asked.fetch_offset, asked.last_fetched_epoch, asked.current_leader_epoch) == (3, EPOCH, EPOCH)
    follower.left.clear()
    follower.answer(again, batch(3, 2), high_watermark=5)
    assert not follower.left  # done at once
    assert follower.log.high_watermark == 5


def test_the_leader_waits_for_little_time_while_another_log_is_being_changed(follower: Follower) -> None:
    first = follower.asked()
    other = TopicIdPartition(follower.member.topic_id, 1)
    follower.following.follow(other, follower.member.directory.log(TOPIC, 1), 2, EPOCH, LEADER)
    follower.answer(first, batch(0, 3))
    assert follower.poll() is None  # it is over in a moment, mostly
    follower.now_ms += HOLD_MS
    while_busy = follower.asked()
    for do in follower.left:
        do()
    follower.answer(while_busy)
    waits = [int.from_bytes(sent.body[:4]) for sent in (first, while_busy, follower.asked())]
    assert waits == [500, 20, 500]


def test_a_log_that_waits_is_changed_elsewhere_and_its_partition_is_busy(follower: Follower) -> None:
    follower.answer(follower.asked(), batch(0, 3))
    assert follower.following.is_busy(follower.partition)
    assert follower.poll() is None
    follower.following.forget(follower.partition)
    assert follower.following.is_busy(follower.partition)  # its log is still being changed
    [do] = follower.left
    do()
    assert not follower.following.is_busy(follower.partition)
    assert follower.log.end_offset == 3
    assert follower.poll() is None
    assert follower.disconnected == [LEADER]


def test_damaged_records_are_asked_for_again_later(follower: Follower) -> None:
    damaged = bytearray(batch(0, 3))
    damaged[-1] ^= 1
    follower.answer(follower.asked(), bytes(damaged))
    follower.work()
    assert follower.log.end_offset == 0
    assert follower.poll() is None
    follower.now_ms += 100
    follower.answer(follower.asked(), bytes(damaged))
    follower.work()
    [said] = follower.said  # once for all attempts
    assert "t-0 cannot be replicated now" in said
    follower.now_ms += 100
    follower.answer(follower.asked(), batch(0, 3))
    follower.work()
    assert follower.log.end_offset == 3
    assert follower.said[1:] == ["t-0 can be replicated again"]


def test_a_mistake_of_ours_does_not_keep_a_partition_busy(follower: Follower, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(Log, "replicate", fail)
    follower.answer(follower.asked(), batch(0, 3))
    assert not follower.following.is_busy(follower.partition)
    follower.now_ms += 10_000
    assert follower.poll() is not None


@pytest.mark.parametrize(("code", "is_reported"), [(errno.EIO, True), (errno.ENOSPC, False), (errno.EMFILE, False)])
def test_a_disk_that_fails_is_reported_and_a_full_one_is_tried_again(
    follower: Follower, monkeypatch: pytest.MonkeyPatch, code: int, is_reported: bool
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(code, "no")

    monkeypatch.setattr(Log, "replicate", fail)
    follower.answer(follower.asked(), batch(0, 3))
    for do in follower.left:
        do()
    assert bool(follower.failed) == is_reported
    follower.now_ms += 10_000
    assert (follower.poll() is None) == is_reported


def test_a_flush_that_has_failed_in_the_background_is_reported(
    follower: Follower, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, "no")

    with monkeypatch.context() as patch:
        patch.setattr(LogSegments, "sync", fail)
        with pytest.raises(OSError, match="no"):
            follower.log.flush()
    follower.answer(follower.asked(), batch(0, 3))  # which the log refuses: it has to be opened again
    for do in follower.left:
        do()
    assert [error.errno for error in follower.failed] == [errno.EIO]
    follower.now_ms += 10_000
    assert follower.poll() is None


def test_records_that_are_appended_although_the_rest_fails_are_not_asked_for_again(
    follower: Follower, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "no")

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoints, "set_start_offset", fail)
        follower.answer(follower.asked(), batch(0, 3), high_watermark=3, start=2)
        follower.work()
    assert follower.log.end_offset == 3
    assert follower.said
    follower.now_ms += 10_000
    again = follower.asked()
    assert again.read().topics[0].partitions[0].fetch_offset == 3
    follower.answer(again, batch(3, 2), high_watermark=5, start=2)
    follower.work()
    assert (follower.log.start_offset, follower.log.end_offset) == (2, 5)


def test_what_the_leader_cannot_mean_is_malformed(follower: Follower) -> None:
    sent = follower.asked()
    with pytest.raises(MalformedRequest):
        sent.answered(memoryview(b"\0" * 7))
    sent.failed("its answer makes no sense")  # as connections do then
    assert follower.poll() is None
    follower.now_ms += 100
    assert follower.poll() is not None


def test_an_offset_that_the_leader_does_not_have_is_looked_up(follower: Follower) -> None:
    follower.answer(follower.asked(), error=ErrorCode.OFFSET_OUT_OF_RANGE)
    sent = follower.asked()
    assert sent.api_key == LIST_OFFSETS
    [topic] = sent.read().topics
    assert topic.name == TOPIC


def test_partitions_that_catch_up_are_held_back_above_the_limit(tmp_path: Path) -> None:
    follower = Follower(tmp_path, {"follower.replication.throttled.replicas": "0:1"})
    image = follower.member.broker.image
    rate = {"follower.replication.throttled.rate": "100"}
    follower.member.broker.image = image._replace(configs=SortedMap([((ResourceType.BROKER, "1"), rate)]))
    records = batch(0, 3)
    follower.answer(follower.asked(), records, high_watermark=1000)
    for do in follower.left:
        do()
    assert follower.poll() is None
    follower.now_ms += 1000 * (len(records) // 100 + 1)
    sent = follower.asked()
    follower.answer(sent, batch(3, 3), high_watermark=6)
    assert follower.poll() is not None  # it has caught up, and is not held back any more
    follower.close()


def test_a_leader_that_does_not_answer_is_told_of(follower: Follower) -> None:
    sent = follower.asked()
    follower.now_ms += 4999
    follower.poll()
    assert not follower.said
    follower.now_ms += 1
    follower.poll()
    who = "broker 2, which leads partitions that are followed here,"
    assert follower.said == [f"{who} has not answered for 5 s"]
    sent.failed("there was no answer in time")
    follower.now_ms += 1000
    follower.answer(follower.asked())
    assert follower.said[1:] == [f"{who} answers, after 6 s without an answer"]


def test_nothing_more_is_fetched_while_a_slow_disk_has_enough_to_do(tmp_path: Path) -> None:
    records = batch(0, 3)
    follower = Follower(tmp_path, max_bytes=len(records))
    other = TopicIdPartition(follower.member.topic_id, 1)
    first = follower.asked()
    follower.following.follow(other, follower.member.directory.log(TOPIC, 1), 2, EPOCH, LEADER)
    follower.answer(first, records)
    assert follower.left
    follower.now_ms += 10 * HOLD_MS
    assert follower.poll() is None  # not even for the other partition
    follower.work()
    assert follower.asked().api_key == FETCH
    follower.close()
