"""Leaders and followers of both kinds answer alike: an Octavo broker as Apache Kafka does in its place."""

from __future__ import annotations

import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from octavo.broker.wire import api_keys as keys
from octavo.errors import ErrorCode
from tests.cluster.data_questions import (
    DEBUGGING,
    FOLLOWER,
    LEADER,
    THIRD,
    Asked,
    Topic,
    delete_records,
    elect,
    epoch_end,
    fetch,
    list_offsets,
    produce,
    reassign,
    that_mark,
    that_read,
    that_write,
)
from tests.cluster.nodes import PATIENCE_S, Cluster, PartitionState, wait_until
from tests.cluster.questions import Asking, Question, differences
from tests.unit.log.logs import TIME_MS

KAFKA, OCTAVO, OTHER = 1, 2, 3
_ASK_AGAIN_S: Final = 0.1
_ATTEMPTS: Final = 5


class Led:
    """A topic of one partition, and the brokers that have it: a leader, a follower of the other kind, and a third."""

    def __init__(self, cluster: Cluster, name: str, leader: int, config: dict[str, str]) -> None:
        follower = KAFKA if leader == OCTAVO else OCTAVO
        cluster.create(name, 1, [leader, follower, OTHER], config)
        self._brokers: Final = {LEADER: leader, FOLLOWER: follower, THIRD: OTHER}
        self._clients: Final = {
            whom: Asking(cluster.brokers[number].address) for whom, number in self._brokers.items() if whom != THIRD
        }
        wanted = Question(keys.METADATA, 12, {"topics": [{"name": name, "topic_id": bytes(16)}]})
        [told] = self._clients[LEADER].answer(wanted).topics
        self.topic: Final = Topic(name, told.topic_id)
        wait_until(self._leads, f"broker {leader} does not lead {name}")

    def _leads(self) -> bool:
        """Whether the leader knows that it is. On a busy machine it may have been fenced, and another leads since."""
        leads = self.code(list_offsets(self.topic, -1)) == 0
        if not leads:
            self._clients[LEADER].answer(elect(self.topic))
        return leads

    def ask(self, asked: Asked) -> Any:
        """The answer, in which topics and brokers have the names of their roles."""
        return self._neutral(self._clients[asked.whom].plain(asked.question))

    def _neutral(self, value: Any, name: str = "") -> Any:
        if isinstance(value, dict):
            return {key: self._neutral(each, key) for key, each in value.items() if key not in ("host", "port", "rack")}
        if isinstance(value, list):
            return [self._neutral(each) for each in value]
        if name in ("leader_id", "node_id", "preferred_read_replica"):
            return next((whom for whom, number in self._brokers.items() if number == value), value)
        return "topic" if value in self.topic else value

    def code(self, question: Question, whom: str = LEADER) -> int:
        """The error code of the only partition."""
        answer = self._clients[whom].answer(question)
        [topic] = answer.responses if hasattr(answer, "responses") else answer.topics
        several = topic.partition_responses if hasattr(topic, "partition_responses") else topic.partitions
        return int(several[0].error_code)

    def offset(self, whom: str = LEADER, *, replica: int = -1) -> int:
        """Where the log ends, for consumers or for replicas."""
        [topic] = self._clients[whom].answer(list_offsets(self.topic, -1, replica=replica)).topics
        return int(topic.partitions[0].offset)

    def number(self, whom: str) -> int:
        """The id of a broker."""
        return self._brokers[whom]

    def elect(self, cluster: Cluster, whom: str) -> None:
        """Have one of the brokers lead."""
        leader = self._brokers[whom]
        others = [number for number in self._brokers.values() if number != leader]
        for question in (reassign(self.topic, [leader, *others]), elect(self.topic)):
            assert self._clients[LEADER].answer(question).error_code == 0
        for number in (KAFKA, OCTAVO):
            wait_until(
                lambda: self._state(cluster, number).leader == leader,  # noqa: B023 (called at once)
                f"{number} does not know that {leader} leads",
            )

    def isr(self, cluster: Cluster) -> set[int]:
        """The replicas in sync, as the leader knows; nothing if it does not answer."""
        return self._state(cluster, self._brokers[LEADER]).isr

    def _state(self, cluster: Cluster, asked: int) -> PartitionState:
        told = cluster.partitions(self.topic.name, asked=cluster.brokers[asked])
        return told.get(0, PartitionState(-1, set(), set()))

    @property
    def racks(self) -> list[str]:
        """Where the brokers are: the leader, the follower and the third."""
        return [f"rack-{number}" for number in self._brokers.values()]

    @property
    def asking(self) -> Asking:
        """The client of the leader."""
        return self._clients[LEADER]

    def close(self) -> None:
        for each in self._clients.values():
            each.close()


class Pair:
    """Two topics with leaders of different kinds, which are asked the same."""

    def __init__(self, cluster: Cluster, name: str, **config: str) -> None:
        settings = {"retention.ms": "-1"} | {key.replace("_", "."): value for key, value in config.items()}
        self.both: Final = [Led(cluster, f"{name}-{number}", number, settings) for number in (OCTAVO, KAFKA)]
        self.found: Final[list[str]] = []

    def compare(self, *several: Iterable[Asked], patience_s: float = 0) -> None:
        """Ask both; what may still be on its way to a broker is asked for again."""
        deadline = time.monotonic() + patience_s
        for ours, theirs in zip(*several, strict=True):
            while True:
                one, other = (led.ask(asked) for led, asked in zip(self.both, (ours, theirs), strict=True))
                news = list(differences(one, other))
                if not news or time.monotonic() >= deadline:
                    break
                time.sleep(_ASK_AGAIN_S)
            self.found.extend(f"{each[:200]}: the {ours.whom} was asked {str(ours.question)[:300]}" for each in news)

    def close(self) -> None:
        """Say what differs."""
        for each in self.both:
            each.close()
        assert not self.found, "\n".join([f"{len(self.found)} differences:", *self.found[:20]])


def test_leaders_and_followers_answer_alike(cluster: Cluster) -> None:
    pair = Pair(cluster, "alike")
    pair.compare(*(that_write(led.topic) for led in pair.both))
    ends = [led.offset(replica=3) for led in pair.both]
    assert ends[0] == ends[1] > 40
    pair.compare(*(that_read(led.topic, ends[0], led.racks) for led in pair.both), patience_s=PATIENCE_S)
    pair.compare(*(that_mark(led.topic) for led in pair.both))
    pair.close()


def test_leaders_without_a_follower_answer_alike(cluster: Cluster) -> None:
    """The third broker hangs: first it is missed, then it is out of sync, and then it comes back."""
    pair = _missed_follower(cluster)
    try:
        pair.compare(*(_of_the_end(led.topic) for led in pair.both), patience_s=PATIENCE_S)
        for led in pair.both:
            wait_until(lambda: led.isr(cluster) == {KAFKA, OCTAVO}, "the broker that hangs stays in sync")  # noqa: B023 (called at once)
            refused = ErrorCode.NOT_ENOUGH_REPLICAS  # the leader may hear of it a moment later
            wait_until(lambda: led.code(produce(led.topic, timeout_ms=500)) == refused, "two replicas are enough")  # noqa: B023 (likewise)
            assert led.code(produce(led.topic, acks=1)) == 0
        for led in pair.both:  # there is no high watermark without enough replicas in sync
            assert led.offset(replica=3) > led.offset()
    finally:
        cluster.brokers[OTHER].resume()
    cluster.await_in_sync(*(led.topic.name for led in pair.both))
    for led in pair.both:
        assert led.code(produce(led.topic)) == 0
        assert led.offset() == led.offset(replica=3)
        assert led.code(delete_records(led.topic, -1)) == 0
    pair.close()


def _missed_follower(cluster: Cluster) -> Pair:
    """Stop the third broker, and ask before it is out of sync; on a busy machine that may take several attempts."""
    for attempt in range(_ATTEMPTS):
        pair = Pair(cluster, f"without-{attempt}", min_insync_replicas="3")
        for led in pair.both:
            assert led.code(produce(led.topic, count=3)) == 0
        cluster.brokers[OTHER].pause()
        pair.compare(*([Asked(LEADER, produce(led.topic, timeout_ms=200))] for led in pair.both))
        pair.compare(*([Asked(LEADER, produce(led.topic, acks=1))] for led in pair.both))
        pair.compare(*([Asked(LEADER, delete_records(led.topic, 2, timeout_ms=200))] for led in pair.both))
        if all(led.isr(cluster) == {KAFKA, OCTAVO, OTHER} for led in pair.both):
            return pair
        cluster.brokers[OTHER].resume()
        cluster.await_in_sync(*(led.topic.name for led in pair.both))
        for led in pair.both:
            led.close()
    raise AssertionError("the broker is always out of sync at once")


def test_leaders_that_change_answer_alike(cluster: Cluster) -> None:
    """Leadership goes to the follower, which is of the other kind, while the third broker hangs, and comes back."""
    pair = Pair(cluster, "changing", min_insync_replicas="3")
    for led in pair.both:
        assert led.code(produce(led.topic, count=3)) == 0
    cluster.brokers[OTHER].pause()
    try:
        waiting = [Waiting(cluster, led) for led in pair.both]
        for led in pair.both:
            assert led.code(produce(led.topic, acks=1)) == 0
            end = led.offset(replica=3)
            wait_until(lambda: led.offset(FOLLOWER, replica=DEBUGGING) == end, "the follower does not follow")  # noqa: B023 (called at once)
            led.elect(cluster, FOLLOWER)
        assert {each.result() for each in waiting} == {ErrorCode.NOT_LEADER_OR_FOLLOWER}  # not at the time-out
        # The new leaders do not know yet what the old ones have shown.
        pair.compare(*(_after_an_election(led.topic) for led in pair.both), patience_s=PATIENCE_S)
        for led in pair.both:
            assert led.code(list_offsets(led.topic, -1), FOLLOWER) == ErrorCode.OFFSET_NOT_AVAILABLE
    finally:
        cluster.brokers[OTHER].resume()
    cluster.await_in_sync(*(led.topic.name for led in pair.both))
    for led in pair.both:
        wait_until(lambda: led.code(list_offsets(led.topic, -1), FOLLOWER) == 0, "nothing is committed")  # noqa: B023 (called at once)
        led.elect(cluster, LEADER)
    ends = [led.offset(replica=3) for led in pair.both]
    assert ends[0] == ends[1]
    pair.compare(*(that_read(led.topic, ends[0], led.racks) for led in pair.both), patience_s=PATIENCE_S)
    pair.close()


class Waiting:
    """A produce with acks=all that waits for the third broker."""

    def __init__(self, cluster: Cluster, led: Led) -> None:
        self._client: Final = Asking(cluster.brokers[led.number(LEADER)].address)
        self._pool: Final = ThreadPoolExecutor(1)
        self._answer: Final = self._pool.submit(self._client.answer, produce(led.topic, timeout_ms=60_000))

    def result(self) -> int:
        """The error code of the answer."""
        [topic] = self._answer.result(50).responses
        self._client.close()
        self._pool.shutdown()
        return int(topic.partition_responses[0].error_code)


def _after_an_election(topic: Topic) -> Iterable[Asked]:
    for whom in (FOLLOWER, LEADER):
        for version in (4, 5, 11):
            yield Asked(whom, list_offsets(topic, -1, version=version))
        for timestamp in (-2, -3, TIME_MS, TIME_MS + 1000):
            yield Asked(whom, list_offsets(topic, timestamp))
        for isolation in (0, 1):
            yield Asked(whom, fetch(topic, 3, isolation=isolation))
        for epoch in (0, 1, 2):
            yield Asked(whom, epoch_end(topic, epoch))
            yield Asked(whom, fetch(topic, 3, epoch=epoch))
            yield Asked(whom, fetch(topic, 4, last_epoch=epoch))
            yield Asked(whom, fetch(topic, 9, last_epoch=epoch))
        yield Asked(whom, produce(topic, version=9, acks=2))


def _of_the_end(topic: Topic) -> Iterable[Asked]:
    for offset in (0, 1, 3, 4):
        yield Asked(LEADER, fetch(topic, offset))
        yield Asked(LEADER, fetch(topic, offset, isolation=1))
    for isolation in (0, 1):
        yield Asked(LEADER, list_offsets(topic, -1, isolation=isolation))
