"""The background ends transactions whose producers are gone."""

from __future__ import annotations

from pathlib import Path

import pytest

from octavo.errors import LogError
from octavo.log import Background
from tests.clock import Clock
from tests.unit.log.coordinator.parts import T0, T1, is_decided, opened, send


def test_a_transaction_whose_time_is_over_is_aborted_in_the_background(tmp_path: Path) -> None:
    clock = Clock()
    with opened(tmp_path, clock) as data:
        background = Background(data, clock=clock, compaction=False)
        producer = data.coordinator.init_producer_id("id", timeout_ms=15_000)
        data.coordinator.add_partitions("id", producer, [T0])
        send(data, producer, T0, b"v", 0)
        for _ in range(2):
            clock.now_ms += 10_000
            assert not is_decided(data, T0)
            assert background.run_once().failed == []
        assert is_decided(data, T0)


def test_one_that_cannot_be_aborted_keeps_no_other_open(tmp_path: Path) -> None:
    clock = Clock()
    with opened(tmp_path, clock) as data:
        for name, partition in (("first", T0), ("second", T1)):
            producer = data.coordinator.init_producer_id(name, timeout_ms=15_000)
            data.coordinator.add_partitions(name, producer, [partition])
            send(data, producer, partition, b"v", 0)
        data.log(*T0)._state.change.failure = OSError("the disk is gone")
        with pytest.raises(LogError):
            data.coordinator.abort_timed_out(clock.now_ms + 20_000)
        assert not is_decided(data, T0)
        assert is_decided(data, T1)
