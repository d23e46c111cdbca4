"""Mend 1.1, for consumers: records of a poll that was interrupted, as by Ctrl-C, were not read."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from octavo.log import Consumer
from octavo.log.consumer.assignment import Assigned, Assignment
from octavo.log.consumer.fetched_records import Fetched
from octavo.log.consumer.fetcher import Fetcher
from tests.unit.log.consumer.parts import T0, T1, opened, write
from tests.unit.log.producer.test_interrupted import ctrl_c, interrupted

COUNT = 40
PLACES: list[tuple[type, str]] = [(Fetched, "take"), (Assigned, "go_on"), (Assignment, "end_turn")]


def by_list(consumer: Consumer) -> list[int]:
    return [int(record.value or b"-1") for record in consumer.poll()]


def by_one(consumer: Consumer) -> list[int]:
    return [int(record.value or b"-1") for record in consumer.poll(max_records=1)]


def by_few(consumer: Consumer) -> list[int]:
    return [int(record.value or b"-1") for record in consumer.poll(max_records=3)]


def by_columns(consumer: Consumer) -> list[int]:
    columns = consumer.poll_arrow(max_records=7)
    return [] if columns is None else [int(value) for value in columns.column("value").to_pylist()]


WAYS: dict[str, Callable[[Consumer], list[int]]] = {
    "all": by_list,
    "one": by_one,
    "few": by_few,
    "columns": by_columns,
}
CASES = [
    (way, where, name, after)
    for way in WAYS
    for where, name in ([*PLACES[1:], (Fetcher, "take_columns")] if way == "columns" else PLACES)
    for after in (0, 2)
]


@pytest.mark.parametrize("is_done", [False, True])
@pytest.mark.parametrize(("way", "where", "name", "after"), CASES)
def test_1_1_what_an_interrupted_poll_took_is_read_by_the_next(
    tmp_path: Path, way: str, where: type, name: str, after: int, is_done: bool
) -> None:
    poll = WAYS[way]
    with opened(tmp_path) as data:
        for number in (0, 1):
            write(data.log("t", number), number * COUNT, COUNT)
        settings: dict[str, Any] = {"group.id": "g", "auto.offset.reset": "earliest", "enable.auto.commit": "false"}
        with Consumer(data, settings) as consumer:
            consumer.assign([T0, T1])
            seen = [value for _ in range(after) for value in poll(consumer)]
            with suppress(KeyboardInterrupt), interrupted(where, name, is_done=is_done):
                while got := poll(consumer):
                    seen += got
                    consumer.position(T0)
            before = [sum(value < COUNT for value in seen), sum(value >= COUNT for value in seen)]
            assert [consumer.position(partition) for partition in (T0, T1)] == before
            consumer.commit()
            told = consumer.committed([T0, T1])
            assert [0 if offset is None else offset.offset for offset in told.values()] == before
            while got := poll(consumer):
                seen += got
            assert sorted(seen) == list(range(2 * COUNT))


def test_1_1_closing_after_an_interrupt_commits_what_was_returned(tmp_path: Path) -> None:
    with opened(tmp_path) as data:
        write(data.log("t", 0), 0, COUNT)
        settings = {"group.id": "g", "auto.offset.reset": "earliest", "enable.auto.commit": "true"}
        consumer = Consumer(data, settings)
        consumer.assign([T0])
        assert by_few(consumer) == [0, 1, 2]
        with ctrl_c(Assigned, "go_on", is_done=True):
            by_few(consumer)
        consumer.close()
        with Consumer(data, settings) as another:
            another.assign([T0])
            assert by_list(another)[0] == 3
