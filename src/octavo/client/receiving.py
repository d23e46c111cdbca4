"""Receive the records of a topic's partitions: `Receiver`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from octavo.broker.wire.api_keys import FETCH
from octavo.client.cluster import Cluster, TopicLeaders
from octavo.client.connection import check
from octavo.client.partition_offsets import LATEST, ask_leaders
from octavo.errors import ErrorCode, RequestFailed
from octavo.log.names import TopicPartition
from octavo.records.batch import Batch
from octavo.records.control import ControlType, read_control
from octavo.records.reader import read_batches
from octavo.records.record import Record

_CLIENT: Final = -1  # the number of a replica that is none
_NO_SESSION: Final = {"session_id": 0, "session_epoch": -1}
_MAX_BYTES: Final = 32 << 20
_MAX_PARTITION_BYTES: Final = 1 << 20


class Received(NamedTuple):
    """A record, with where it is from."""

    partition: int
    batch: Batch
    record: Record


class Receiver:
    """Fetches the records of some partitions of a topic, in the order of each.

    positions: the offsets of the next records, by partition
    ends: the high watermarks as of the last answer, or the last stable offsets, by partition
    """

    def __init__(self, cluster: Cluster, topic: str, partitions: Sequence[int] | None, *, committed: bool) -> None:
        """`partitions`: None for all. Raises `RequestFailed` if the topic or a partition is missing."""
        self._cluster: Final = cluster
        self._name: Final = topic
        self._isolation: Final = int(committed)
        self._topic: TopicLeaders = cluster.topic(topic)  # at once: what is missing now may never come
        wanted = sorted(self._topic.leaders) if partitions is None else sorted(set(partitions))
        for number in wanted:
            if number not in self._topic.leaders:
                raise RequestFailed(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {topic} has no partition {number}")
        self.partitions: Final = wanted
        self.positions: dict[int, int] = {}
        self.ends: dict[int, int] = {}
        self._aborted: Final[dict[int, _Aborted]] = {number: _Aborted() for number in wanted}

    def offsets(self, timestamp_ms: int) -> dict[int, int]:
        """Return the first offsets whose records have this timestamp or a later one; the end where there is none.

        `EARLIEST` and `LATEST` stand for the first offsets and for the ends.
        """
        found = self._cluster.persist(lambda: self._list_offsets(timestamp_ms))
        missing = [number for number, offset in found.items() if offset < 0]
        if missing:
            ends = self._cluster.persist(lambda: self._list_offsets(LATEST))
            found |= {number: ends[number] for number in missing}
        return found

    def _list_offsets(self, timestamp_ms: int) -> dict[int, int]:
        leaders = {TopicPartition(self._name, each): self._topic.leaders[each] for each in self.partitions}
        found: dict[int, int] = {}
        for partition, answer in ask_leaders(self._cluster, leaders, timestamp_ms, committed=bool(self._isolation)):
            self._check(answer)
            found[partition.partition] = answer.offset
        return found

    def receive(self, wanted: Iterable[int], *, wait_ms: int) -> Iterator[Received]:
        """Fetch from these partitions, and yield their records; wait if there are none.

        Positions move with the records that are taken.
        """
        answers = self._cluster.persist(lambda: list(self._fetch(sorted(wanted), wait_ms)))
        for part in answers:
            yield from self._records(part)

    def _fetch(self, wanted: list[int], wait_ms: int) -> Iterator[Any]:
        leaders = self._by_leader(wanted)
        for leader, partitions in leaders:
            asked = [
                {
                    "partition": each,
                    "fetch_offset": self.positions[each],
                    "log_start_offset": -1,
                    "partition_max_bytes": _MAX_PARTITION_BYTES,
                }
                for each in partitions
            ]
            answer = self._cluster.node(leader).ask(
                FETCH,
                {
                    "replica_id": _CLIENT,
                    "max_wait_ms": wait_ms // len(leaders),
                    "min_bytes": 1,
                    "max_bytes": _MAX_BYTES,
                    "isolation_level": self._isolation,
                    **_NO_SESSION,
                    "topics": [{"topic": self._name, "topic_id": self._topic.id, "partitions": asked}],
                    "forgotten_topics_data": [],
                    "rack_id": "",
                },
            )
            check(answer, f"topic {self._name}")
            for topic in answer.responses:
                for part in topic.partitions:
                    self._check(part)
                    yield part

    def _check(self, part: Any) -> None:
        """Raise `RequestFailed` for an error of a partition, after a look at who leads it now."""
        if part.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            position = self.positions[part.partition_index]
            raise RequestFailed(
                part.error_code,
                f"partition {part.partition_index} of topic {self._name} does not have offset {position}",
            )
        if part.error_code:
            self._topic = self._cluster.topic(self._name)
        check(part, f"partition {part.partition_index} of topic {self._name}")

    def _records(self, part: Any) -> Iterator[Received]:
        number = part.partition_index
        self.ends[number] = part.last_stable_offset if self._isolation else part.high_watermark
        aborted = self._aborted[number]
        aborted.expect(part.aborted_transactions or ())
        for batch in read_batches(part.records or b""):
            if aborted.shows(batch):
                for record in batch:
                    if record.offset >= self.positions[number]:
                        self.positions[number] = record.offset + 1
                        yield Received(number, batch, record)
            self.positions[number] = max(self.positions[number], batch.last_offset + 1)

    def _by_leader(self, partitions: Iterable[int]) -> list[tuple[int, list[int]]]:
        by_leader: dict[int, list[int]] = {}
        for number in partitions:
            by_leader.setdefault(self._topic.leaders[number], []).append(number)
        return sorted(by_leader.items())

    def seek(self, positions: Mapping[int, int]) -> None:
        """Go on at these offsets."""
        self.positions = dict(positions)


class _Aborted:
    """The aborted transactions of a partition whose records must not be shown."""

    def __init__(self) -> None:
        self._ahead: list[tuple[int, int]] = []  # first offset and producer id
        self._open: Final[set[int]] = set()  # producers whose records are aborted, up to their marker

    def expect(self, transactions: Iterable[Any]) -> None:
        """Take the list of an answer, which names all transactions that touch its records."""
        self._ahead = sorted((each.first_offset, each.producer_id) for each in transactions)

    def shows(self, batch: Batch) -> bool:
        """Return whether an application may see the records of the next batch."""
        while self._ahead and self._ahead[0][0] <= batch.last_offset:
            self._open.add(self._ahead.pop(0)[1])
        if not batch.is_control:
            return not (batch.is_transactional and batch.producer_id in self._open)
        for record in batch:
            if read_control(record).type == ControlType.ABORT:
                self._open.discard(batch.producer_id)
        return False
