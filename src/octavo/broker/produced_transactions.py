"""Produced records of transactions, before they are appended: which of them the coordinator has to be asked about.

A member of a cluster asks a coordinator on another broker, and goes on when that has answered.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from octavo.broker.answers import Answer, Later, Parked, Wait, Work
from octavo.broker.member.verification import Codes, Guard, Verdict
from octavo.broker.produce_answers import Key
from octavo.broker.produced_batches import has_identity, identity
from octavo.broker.request import Request
from octavo.broker.transactions import ADDS_FROM, is_fenced
from octavo.broker.wire.produce import PartitionProduce, ProduceRequest, read_produce
from octavo.coordinator.shard import Producer
from octavo.coordinator.transactions.requests import Partition
from octavo.errors import ErrorCode

if TYPE_CHECKING:
    from octavo.broker.broker import Broker

_MS = 1000
GoOn = Callable[[Request, ProduceRequest, Verdict], Answer]


class SortedOut(NamedTuple):
    """Partitions with records of transactions."""

    producers: set[Producer]
    fenced: set[Key]  # there was a newer producer
    opened: dict[Key, Producer]  # they were verified before; the log sees whether the transaction ends now
    unverified: dict[Key, Partition]


def sort_out(broker: Broker, wanted: Mapping[Key, PartitionProduce]) -> SortedOut:
    """Return what has to be done about partitions before records are appended. Others are left out."""
    found_all = SortedOut(set(), set(), {}, {})
    for key, each in wanted.items():
        found = broker.led_log(each.topic, each.partition)
        if isinstance(found, int) or each.records is None or not has_identity(each.records):
            continue
        producer, _ = identity(each.records)
        found_all.producers.add(producer)
        if is_fenced(found.log, producer):
            found_all.fenced.add(key)
        elif found.log.producers.has_open(*producer):
            found_all.opened[key] = producer
        else:
            found_all.unverified[key] = (found.topic.name, each.partition)
    return found_all


def verify_first(broker: Broker, request: Request, asked: ProduceRequest, go_on: GoOn) -> Wait | None:
    """Ask a coordinator on another broker about the partitions of a request, and have it go on with the answer.

    Returns None if there is nothing to ask: the request can go on at once.
    """
    adds = request.version >= ADDS_FROM
    longest_ms = min(broker.config.add_partitions_to_txn_retry_backoff_max_ms, broker.config.request_timeout_ms)
    until = time.monotonic() + (longest_ms / _MS if adds else 0)

    def ask(request: Request, asked: ProduceRequest) -> Wait | None:
        producer, guards = _begin_verification(broker, asked)
        if producer is None:
            return None
        kept = request.kept()
        parked = Parked(broker.wake, lambda codes: take(kept, codes, guards))
        if not asked.transactional_id:
            parked.give(dict.fromkeys(guards, ErrorCode.INVALID_REQUEST))
        elif not adds and not broker.config.transaction_partition_verification_enable:
            parked.give(dict.fromkeys(guards, ErrorCode.NONE))
        elif broker.verification is None:
            parked.give(dict.fromkeys(guards, ErrorCode.COORDINATOR_NOT_AVAILABLE))
        else:
            broker.verification.verify(asked.transactional_id, producer, list(guards), adds=adds, answered=parked.give)
        return parked

    def take(kept: Request, codes: Codes, guards: Mapping[Partition, Guard]) -> Answer:
        now = time.monotonic()
        if ErrorCode.CONCURRENT_TRANSACTIONS in codes.values() and now < until:
            # The markers of the transaction before are not all written. The producer would have to send everything
            # again.
            pause_s = broker.config.add_partitions_to_txn_retry_backoff_ms / _MS
            return Wait(now + pause_s, (), lambda is_over: ask_again(kept) if is_over else None)
        return finish(kept, Verdict(codes, guards))

    def ask_again(kept: Request) -> Answer:
        # With new guards: a marker that has come meanwhile ended the transaction before, not this one.
        return ask(kept, read_produce(kept.body, kept.version)) or finish(kept, Verdict({}, {}))

    def finish(kept: Request, verdict: Verdict) -> Answer:
        answer = go_on(kept, read_produce(kept.body, kept.version), verdict)
        return Later(lambda: None, Work.APPEND) if answer is None else answer  # None: the client wants no answer

    return ask(request, asked)


def _begin_verification(broker: Broker, asked: ProduceRequest) -> tuple[Producer | None, dict[Partition, Guard]]:
    """Return the producer of a request, with a guard for each partition that is not verified yet.

    The producer is None if there is nothing to ask about.
    """
    found = sort_out(broker, {(each.topic, each.partition): each for each in asked.partitions})
    guards: dict[Partition, Guard] = {}
    if not found.unverified or len(found.producers) != 1:
        return None, guards
    [producer] = found.producers
    for key, place in found.unverified.items():
        log = broker.led_log(*key)
        if not isinstance(log, int) and log.led is not None:
            guards[place] = Guard(log.led, producer.id, log.led.begin_verification(producer.id))
    return producer, guards
