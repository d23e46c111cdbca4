"""What a producer is told of its records, and when: with acks=all, once all replicas in sync have them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from octavo.broker.answers import Parts, Wait
from octavo.broker.member.current_leaders import current_leader, endpoints
from octavo.broker.member.leaders import Committed, Led
from octavo.broker.request import Client
from octavo.broker.wire.produce import LEADERS, PartitionResult, write_produce
from octavo.errors import ConnectionRefused, ErrorCode

if TYPE_CHECKING:
    from octavo.broker.broker import Broker

Key = tuple[str | bytes, int]  # the name or the id of a topic, and a partition
Results = dict[str | bytes, list[PartitionResult]]  # by topic
Appended = dict[Key, PartitionResult]
Needs = dict[Key, tuple[Led, int]]  # of acks=all: the partitions to wait for, with the end of the records in each


def answer_produce(
    broker: Broker,
    version: int,
    client: Client,
    acks: int,
    results: Results,
    needs: Needs,
    deadline: float,
    *,
    is_elsewhere: bool = False,
) -> Parts | Wait | None:
    """Return the answer, or a wait until enough replicas have the records. `is_elsewhere`: in another thread."""
    if acks == 0:
        failed = next((each for several in results.values() for each in several if each.error_code), None)
        if failed is not None:
            raise ConnectionRefused(
                f"a produce without acknowledgement failed with {ErrorCode(failed.error_code).name}"
            )
        return None
    if not needs:
        return _written(broker, version, client, results)

    def retry(is_over: bool) -> Parts | None:
        for key, (led, end_offset) in needs.items():
            code = led.acknowledgement(end_offset)
            if code is None:
                if not is_over:
                    return None
                code = ErrorCode.REQUEST_TIMED_OUT
            if code:
                _note(results, key, code)
        return _written(broker, version, client, results)

    leaders = broker.leaders
    assert leaders is not None
    if not is_elsewhere:
        for led, _ in needs.values():
            leaders.appended(led)
        parts = retry(is_over=False)
        if parts is not None:
            return parts
    return Committed(deadline, list(needs.values()), retry)


def _note(results: Results, key: Key, code: int) -> None:
    """Note the error of records that were appended, but not acknowledged."""
    topic, partition = key
    results[topic] = [
        each._replace(error_code=code) if each.partition == partition else each for each in results[topic]
    ]


def _written(broker: Broker, version: int, client: Client, results: Results) -> Parts:
    """Return the answer. If other brokers lead partitions, it says which."""
    moved = ErrorCode.NOT_LEADER_OR_FOLLOWER
    if broker.leaders is None or version < LEADERS or not _has(results, moved):
        return [write_produce(version, list(results.items()))]
    told = [
        (
            topic,
            [
                each._replace(current_leader=current_leader(broker, topic, each.partition))
                if each.error_code == moved
                else each
                for each in several
            ],
        )
        for topic, several in results.items()
    ]
    leaders = [each.current_leader for _, several in told for each in several]
    return [write_produce(version, told, endpoints(broker, client, leaders))]


def _has(results: Results, code: int) -> bool:
    return any(each.error_code == code for several in results.values() for each in several)
