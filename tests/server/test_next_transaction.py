"""A produce that begins a transaction while the markers of the last one are written."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from octavo.broker import transactions
from octavo.errors import ErrorCode
from octavo.log.append.readiness import ALLOWANCE, Unperformed
from octavo.log.coordinator.host import Host
from octavo.log.coordinator.markers import Markers
from octavo.server.serving import Server, serve
from tests.server.raw import PATIENCE_S
from tests.server.test_transactions import Transactional, committed, prepare

LONGEST = "add.partitions.to.txn.retry.backoff.max.ms"


@contextmanager
def markers_held(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Have markers be written when an event is set."""
    let_go = threading.Event()
    really = Markers.write

    def write(markers: Markers, host: Host[Any], wanted: Any, durable: bool) -> None:
        if ALLOWANCE.left is not None:
            raise Unperformed(wanted)
        assert let_go.wait(PATIENCE_S)
        really(markers, host, wanted, durable)

    monkeypatch.setattr(Markers, "write", write)
    try:
        yield let_go
    finally:
        let_go.set()


@contextmanager
def ending(server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Transactional, threading.Event]]:
    """Yield a producer whose last transaction is decided, with its next epoch, and what has the markers be written."""
    first, again = (Transactional(server.bootstrap_servers, "id") for _ in range(2))
    with first.client, again.client, markers_held(monkeypatch) as let_go:
        assert first.init() == ErrorCode.NONE
        assert first.produce(b"a", 0, 12)[0] == ErrorCode.NONE
        committing = threading.Thread(target=lambda: first.end(5, commit=True))
        committing.start()
        again.producer_id, again.epoch = first.producer_id, first.epoch + 1
        deadline = time.monotonic() + PATIENCE_S
        while again.described().transaction_state != "PrepareCommit":
            assert time.monotonic() < deadline
        yield again, let_go
        let_go.set()
        committing.join()


def test_it_waits_for_the_markers(monkeypatch: pytest.MonkeyPatch) -> None:
    with serve(config={LONGEST: "60000"}) as server:
        prepare(server)
        with ending(server, monkeypatch) as (producer, let_go):
            told: list[Any] = []
            producing = threading.Thread(target=lambda: told.append(producer.produce(b"b", 0, 12)))
            producing.start()
            deadline = time.monotonic() + PATIENCE_S
            while not transactions._WAITING.locked():
                assert not told
                assert time.monotonic() < deadline
            let_go.set()
            producing.join()
            assert told == [(ErrorCode.NONE, None)]
            assert producer.end(5, commit=True) == ErrorCode.NONE
        assert committed(server) == [b"a", b"b"]


@pytest.mark.parametrize("longest_ms", ["0", "1"])
def test_it_is_refused_if_that_takes_too_long(monkeypatch: pytest.MonkeyPatch, longest_ms: str) -> None:
    with serve(config={LONGEST: longest_ms}) as server:
        prepare(server)
        with ending(server, monkeypatch) as (producer, _):
            assert producer.produce(b"b", 0, 12) == (ErrorCode.CONCURRENT_TRANSACTIONS, None)
