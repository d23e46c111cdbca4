"""Transactional ids that nobody has used for long are forgotten, and what their producers are told then."""

from __future__ import annotations

import time

from octavo.errors import ErrorCode
from octavo.schemas.transaction_state import read_transaction_key
from octavo.server.serving import Server, serve
from tests.server.test_transactions import PATIENCE_S, Transactional, committed, prepare

CONFIG = {
    "transactional.id.expiration.ms": "1",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "10",
}
UNKNOWN = ErrorCode.INVALID_PRODUCER_ID_MAPPING


def expire(producer: Transactional) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while producer.described().error_code != ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
        assert time.monotonic() < deadline


def is_forgotten(server: Server, name: str) -> bool:
    """Whether the last record of a transactional id says that it is gone."""
    states = [
        record.value
        for record in server.directory.log("__transaction_state", 0).reader().records()
        if getattr(read_transaction_key(record.key or b""), "transactional_id", None) == name
    ]
    return len(states) > 1 and states[-1] is None


def test_a_producer_whose_id_expired_is_told_so_and_goes_on_with_another_identity() -> None:
    with serve(config=CONFIG) as server:
        prepare(server)
        producer, other = (Transactional(server.bootstrap_servers, name) for name in ("open", "unused"))
        with producer.client, other.client:
            while producer.init() != ErrorCode.NONE or producer.produce(b"a", 0, 12)[0] != ErrorCode.NONE:
                pass  # it may expire before it begins
            assert other.init() == ErrorCode.NONE
            expire(other)
            assert is_forgotten(server, "unused")
            assert producer.described().transaction_state == "Ongoing"  # it does not expire
            assert producer.end(5, commit=True) == ErrorCode.NONE
            expire(producer)
            assert committed(server) == [b"a"]
            assert producer.add(0) == [UNKNOWN]
            assert producer.produce(b"b", 0, 12)[0] == UNKNOWN
            assert producer.produce(b"b", 0, 11)[0] == UNKNOWN
            assert producer.commit_offset("g", 5, 5) == UNKNOWN
            assert [producer.end(version, commit=True) for version in (4, 5)] == [UNKNOWN, UNKNOWN]
            old = producer.producer_id
            assert producer.init(producer_id=old, producer_epoch=producer.epoch) == ErrorCode.NONE
            assert producer.producer_id != old
            assert producer.epoch == 0
            assert committed(server) == [b"a"]
