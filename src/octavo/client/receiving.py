"""Receive the records of a topic's partitions: `Receiver`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from octavo.broker.wire.api_keys import FETCH
from octavo.client.cluster import Cluster, TopicLeaders
from octavo.client.connection import check
from octavo.client.partition_offsets import LATEST, ask_leaders
from octavo.errors import ErrorCode, FormatError, RequestFailed, Truncated
from octavo.log.names import TopicPartition
from octavo.records.batch import Batch
from octavo.records.control import ControlType, read_control
from octavo.records.layout import BATCH_HEADER
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


class DamagedBatch(NamedTuple):
    """A batch that cannot be read."""

    partition: int
    offset: int  # from which on
    problem: str


class Receiver:
    """Fetches the records of some partitions of a topic, in the order of each.

    positions: the offsets of the next records, by partition
    ends: the high watermarks as of the last answer, or the last stable offsets, by partition
    high_watermarks: the same without regard to transactions that are open
    damage: the batches that could not be read; whoever tells of them clears it
    stopped: the partitions that have such a batch at their position, and are not fetched any more
    """

    def __init__(
        self,
        cluster: Cluster,
        topic: str,
        partitions: Sequence[int] | None,
        *,
        committed: bool,
        resync: bool = False,
    ) -> None:
        """Raises `RequestFailed` if the topic or a partition is missing.

        partitions: None for all
        resync: go on behind a batch that cannot be read
        """
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
        self.high_watermarks: dict[int, int] = {}
        self.damage: Final[list[DamagedBatch]] = []
        self.stopped: Final[set[int]] = set()
        self._resync: Final = resync
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
        going = sorted(set(wanted) - self.stopped)
        answers = self._cluster.persist(lambda: list(self._fetch(going, wait_ms)))
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
                    if part.error_code == ErrorCode.CORRUPT_MESSAGE:
                        self._stop(part.partition_index)
                        continue
                    self._check(part)
                    yield part

    def _stop(self, number: int) -> None:
        """Read no more of a partition that its broker cannot read, so that nobody can tell where to go on."""
        self.damage.append(DamagedBatch(number, self.positions[number], "its broker cannot read the batch"))
        self.stopped.add(number)

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
        self.high_watermarks[number] = part.high_watermark
        aborted = self._aborted[number]
        aborted.expect(part.aborted_transactions or ())
        reader = read_batches(part.records or b"")
        at = 0
        try:
            for batch in reader:
                at = batch.position
                if aborted.shows(batch):
                    for record in batch:
                        if record.offset >= self.positions[number]:
                            self.positions[number] = record.offset + 1
                            yield Received(number, batch, record)
                self.positions[number] = max(self.positions[number], batch.last_offset + 1)
                at = reader.position
            if reader.torn_tail == 0:  # a broker sends the first batch as a whole, however large it is
                raise Truncated(0, "the bytes end inside a batch")
        except FormatError as error:
            self._meet(number, part.records, at, error)

    def _meet(self, number: int, data: bytes, at: int, error: FormatError) -> None:
        """Note damage in the bytes of an answer, and decide where to go on."""
        position, end = self.positions[number], self.ends[number]
        base = int.from_bytes(data[at : at + 8], signed=True)
        self.damage.append(DamagedBatch(number, base if position < base < end else position, error.rule))
        if self._resync:
            self.positions[number] = max(position + 1, _behind(data, at, position, end))
        else:
            self.stopped.add(number)

    def _by_leader(self, partitions: Iterable[int]) -> list[tuple[int, list[int]]]:
        by_leader: dict[int, list[int]] = {}
        for number in partitions:
            by_leader.setdefault(self._topic.leaders[number], []).append(number)
        return sorted(by_leader.items())

    def seek(self, positions: Mapping[int, int]) -> None:
        """Go on at these offsets."""
        self.positions = dict(positions)


def _behind(data: bytes, at: int, position: int, end: int) -> int:
    """Return the offset at which to go on after a damaged batch; 0 if nothing tells it."""
    reader = read_batches(data, start=at, resync=True)
    following = next(reader, None)
    if following is not None and following.position > at:
        return following.base_offset if following.base_offset < end else 0
    if following is not None:  # its checksum is right, so that its offsets are, too
        return following.next_offset
    if len(data) < at + BATCH_HEADER.size:
        return 0
    header = BATCH_HEADER.read(data, at)
    last_offset = header.base_offset + header.last_offset_delta
    return last_offset + 1 if header.base_offset <= position <= last_offset < end else 0


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
