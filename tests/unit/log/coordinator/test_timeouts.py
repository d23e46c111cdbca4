"""The background ends transactions whose producers are gone."""

from __future__ import annotations

from pathlib import Path

from octavo.log import Background
from tests.unit.log.coordinator.parts import T0, Clock, is_decided, opened, send


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
