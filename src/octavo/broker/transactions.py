"""What the handlers of transactions have in common: who may write as part of one, and what clients are told.

Before records of a transaction are appended to a partition for the first time, the coordinator is asked whether the
partition is part of the transaction (KIP-890). Clients of version 2 do not say beforehand what is: their records add
it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from octavo.broker.passing_time import trouble
from octavo.coordinator.shard import Producer
from octavo.coordinator.transactions.epochs import BUMPS_EPOCHS
from octavo.coordinator.transactions.requests import AddRequest, Partition
from octavo.errors import ErrorCode, OctavoError
from octavo.log.append.readiness import ALLOWANCE, MustWait

if TYPE_CHECKING:
    from octavo.broker.broker import Broker
    from octavo.broker.member.verification import Verdict
    from octavo.coordinator.transactions.transaction_shard import TransactionShard
    from octavo.log.coordinator.host import Host
    from octavo.log.log import Log

ADDS_FROM: Final = 12  # the first version of Produce that adds partitions
_ABORTABLE_FROM: Final = 11  # the first version of Produce whose clients know TRANSACTION_ABORTABLE
_MS: Final = 1000
_WAITING: Final = threading.Lock()  # held by the thread that waits for the end of a transaction
_NOT_ADDED: Final = "Partition was not added to the transaction"
_UNVERIFIED: Final = "Unable to verify the partition has been added to the transaction. Underlying error: "
_RETRIED: Final = (
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)


def fenced_before(version: int, since: int, code: ErrorCode) -> ErrorCode:
    """Return an error as clients know it: those before a version have no PRODUCER_FENCED."""
    is_old = version < since and code is ErrorCode.PRODUCER_FENCED
    return ErrorCode.INVALID_PRODUCER_EPOCH if is_old else code


def is_fenced(log: Log, producer: Producer) -> bool:
    """Return whether a log has seen a larger epoch of a producer, so that its coordinator need not be asked."""
    entry = log.producers.entries.get(producer.id)
    return entry is not None and producer.epoch < entry.epoch


@contextmanager
def verified(
    broker: Broker,
    transactional_id: str,
    producer: Producer,
    partitions: Sequence[Partition],
    verdict: Verdict | None = None,
    *,
    adds: bool,
    is_patient: bool = False,
) -> Iterator[Mapping[Partition, ErrorCode]]:
    """Ask whether partitions are part of a transaction, which does not end in the body of the `with`.

    verdict: that of a coordinator on another broker, which was asked before. Guards see whether the transaction ends
    adds: they are added to it
    is_patient: the end of the transaction before is awaited, for a while

    Raises `MustWait` if the thread has an `ALLOWANCE`, and the coordinator cannot be asked at once.
    """
    if verdict is not None:
        yield {each: verdict.codes.get(each, ErrorCode.INVALID_TXN_STATE) for each in partitions}
        return
    host = broker.coordinators.find_transaction_host(transactional_id) if transactional_id else None
    if not broker.config.transaction_partition_verification_enable and not adds:
        yield dict.fromkeys(partitions, ErrorCode.NONE)
        return
    if host is None:
        code = ErrorCode.NOT_COORDINATOR if transactional_id else ErrorCode.INVALID_REQUEST
        yield dict.fromkeys(partitions, code)
        return
    request = AddRequest(transactional_id, producer, partitions, BUMPS_EPOCHS if adds else 0)
    while True:
        with host.held():
            codes = _asked(broker, host, request, adds=adds)
            if not (is_patient and ErrorCode.CONCURRENT_TRANSACTIONS in codes.values()):
                yield {partition: fenced_before(0, 1, code) for partition, code in codes.items()}
                return
        is_patient = False
        _await_end(broker, host, request)


def _asked(
    broker: Broker, host: Host[TransactionShard], request: AddRequest, *, adds: bool = False
) -> Mapping[Partition, ErrorCode]:
    codes: dict[Partition, ErrorCode] = {}
    try:
        if adds:
            host.run(lambda shard: codes.update(dict.fromkeys(request.partitions, shard.add(request))))
        else:
            codes.update(host.ask(lambda shard: shard.verify(request)))
    except (OctavoError, OSError) as error:
        broker.troubles.failed(trouble(host, error), error)
        return dict.fromkeys(request.partitions, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return codes


def _await_end(broker: Broker, host: Host[TransactionShard], request: AddRequest) -> None:
    """Wait until the markers of the transaction before are written, but not for long.

    A producer would have to send its records again. As they can be many, Kafka waits, too. Only one thread does at a
    time, so that others can append. Raises `MustWait` if the thread has an `ALLOWANCE`.
    """
    longest_ms = broker.config.add_partitions_to_txn_retry_backoff_max_ms
    if longest_ms and ALLOWANCE.left is not None:
        raise MustWait
    if longest_ms and _WAITING.acquire(blocking=False):
        try:
            deadline = time.monotonic() + longest_ms / _MS
            while ErrorCode.CONCURRENT_TRANSACTIONS in _asked(broker, host, request).values():
                if time.monotonic() >= deadline:
                    return
                time.sleep(broker.config.add_partitions_to_txn_retry_backoff_ms / _MS)
        finally:
            _WAITING.release()


def told_to_producer(version: int, code: ErrorCode) -> tuple[ErrorCode, str | None]:
    """Return what a producer is told of a partition that could not be verified, and Kafka's words for it."""
    if code is ErrorCode.INVALID_TXN_STATE or (code is ErrorCode.TRANSACTION_ABORTABLE and version < _ABORTABLE_FROM):
        return ErrorCode.INVALID_TXN_STATE, _NOT_ADDED
    if code in _RETRIED or (code is ErrorCode.CONCURRENT_TRANSACTIONS and version < ADDS_FROM):
        return ErrorCode.NOT_ENOUGH_REPLICAS, f"{_UNVERIFIED}{code.name}"
    return code, None
