"""Producer ids are given out once."""

from __future__ import annotations

import threading
from pathlib import Path

from octavo.log.coordinator import Coordinator, ProducerIdentity
from octavo.log.metadata import MetadataStore
from octavo.log.storage import DISK
from octavo.records import BatchBuilder
from tests.unit.log.coordinator.parts import T0, opened


def test_every_producer_has_an_id_of_its_own_and_blocks_are_never_used_again(tmp_path: Path) -> None:
    with opened(tmp_path) as data:
        coordinator = Coordinator.of(data)
        assert coordinator is data.coordinator
        assert [coordinator.init_producer_id() for _ in range(3)] == [ProducerIdentity(each, 0) for each in range(3)]
    with opened(tmp_path) as data:
        assert data.coordinator.init_producer_id().producer_id == 1000
        data.coordinator.init_producer_id("id")
    assert MetadataStore.open([tmp_path], storage=DISK, read_only=True).image.next_producer_id == 2000


def test_a_block_ends_and_the_next_begins(tmp_path: Path) -> None:
    with opened(tmp_path) as data:
        ids = [data.coordinator.init_producer_id().producer_id for _ in range(2001)]
    assert ids == list(range(2001))
    assert MetadataStore.open([tmp_path], storage=DISK, read_only=True).image.next_producer_id == 3000


def test_ids_that_are_in_the_logs_are_not_given_out_though_the_metadata_do_not_know_them(tmp_path: Path) -> None:
    with opened(tmp_path) as data:
        builder = BatchBuilder(producer_id=4711, producer_epoch=3, base_sequence=0)
        builder.append(None, b"", timestamp_ms=data.now_ms())
        data.log(*T0).append(builder.build())
        assert data.coordinator.init_producer_id().producer_id == 4712


def test_threads_get_different_ids(tmp_path: Path) -> None:
    ids: list[int] = []
    with opened(tmp_path) as data:

        def ask() -> None:
            ids.extend(data.coordinator.init_producer_id().producer_id for _ in range(600))

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(ids) == list(range(2400))
