"""Opening logs whose indexes are gone, padded or wrong: both make the same of them."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Final

import pytest

from tests.batches import TIME_MS
from tests.kafka.judge import Judge
from tests.kafka.log.conftest import OpenBoth
from tests.kafka.log.damage import CONFIG, SETTINGS, bases_of, file_of, judged, unclean, write_source
from tests.kafka.log.samples import batch
from tests.kafka.log.side_by_side import FOLDER
from tests.kafka.unified_log import UnifiedLog


@pytest.fixture(scope="module")
def source(kafka_broker: Judge, memory_path: Path) -> Path:
    return write_source(kafka_broker, memory_path / "source" / FOLDER)


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("kinds", [("index",), ("index", "timeindex")])
@pytest.mark.parametrize("number", [0, 1, -1])
def test_missing_indexes(number: int, kinds: tuple[str, ...], clean: bool, source: Path, open_both: OpenBoth) -> None:
    def damage(folder: Path) -> None:
        if not clean:
            unclean(folder, bases_of(folder)[-1])
        for kind in kinds:
            file_of(folder, number, kind).unlink()

    judged(open_both, source, damage)


LIES: Final[dict[str, bytes]] = {
    "empty": b"",
    "zeros": bytes(24 * 10),
    "padded": bytes(10 << 20),
    "ones": b"\xff" * 240,
    "odd": b"\0\0\0\1\0",
    "garbage": Random(1).randbytes(240),
}


@pytest.mark.parametrize("name", LIES)
@pytest.mark.parametrize("kind", ["index", "timeindex"])
def test_indexes_that_lie_after_a_crash(kind: str, name: str, source: Path, open_both: OpenBoth) -> None:
    for number in (0, 1, -1):

        def damage(folder: Path, number: int = number) -> None:
            unclean(folder)
            file_of(folder, number, kind).write_bytes(LIES[name])

        judged(open_both, source, damage)


def test_an_offset_index_without_entries_after_a_clean_end(source: Path, open_both: OpenBoth) -> None:
    def damage(folder: Path) -> None:
        file_of(folder, -1, "index").write_bytes(b"")

    judged(open_both, source, damage)


@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("number", [0, 1, -1])
def test_no_time_index(number: int, clean: bool, there: bool, source: Path, open_both: OpenBoth) -> None:
    """Here we differ: Kafka goes on with an empty one and finds less by time, we make it anew."""

    def damage(folder: Path) -> None:
        if not clean:
            unclean(folder, bases_of(folder)[-1])
        file_of(folder, number, "timeindex").unlink()
        if there:
            file_of(folder, number).with_suffix(".timeindex").write_bytes(b"")

    both = open_both(source=source, damage=damage, **SETTINGS)
    both.read_everything((1, 3000))
    both.kafka.close()
    both.octavo.close()
    for file in source.glob("*.*index"):
        assert (both.octavo_folder / file.name).read_bytes() == file.read_bytes(), file.name


def test_indexes_padded_as_kafka_leaves_them_in_a_crash(source: Path, open_both: OpenBoth) -> None:
    def damage(folder: Path) -> None:
        unclean(folder, bases_of(folder)[-1])
        for kind in ("index", "timeindex"):
            with file_of(folder, -1, kind).open("r+b") as file:
                file.truncate(10 << 20)

    judged(open_both, source, damage)


@pytest.mark.parametrize("tail", [b"", b"torn", bytes(700), Random(2).randbytes(100)])
def test_what_kafka_leaves_in_a_crash(tail: bytes, kafka_broker: Judge, open_both: OpenBoth, memory_path: Path) -> None:
    """Padded indexes, no word of epochs or of a shutdown but what was written on the way."""
    folder = memory_path / f"crash-{len(tail)}" / FOLDER
    folder.parent.mkdir()
    log = UnifiedLog.open(kafka_broker, folder, {**CONFIG, "preallocate": "true"}, clock=lambda: TIME_MS)
    for number in range(30):
        log.append(batch(number % 4 + 1, timestamp_ms=TIME_MS + number, codec="lz4" if number % 3 else "none"))
        if number % 11 == 5:
            log.become_leader(number)
    log.truncate_to(log.end_offset - 5)
    log.abandon()
    if tail:
        with file_of(folder, -1).open("ab") as file:
            file.write(tail)
    judged(open_both, folder, lambda _: None)


def test_indexes_of_segments_that_are_not_there(source: Path, open_both: OpenBoth) -> None:
    def damage(folder: Path) -> None:
        for base in (3, 100_000):
            for kind in ("index", "timeindex", "txnindex"):
                (folder / f"{base:020d}.{kind}").write_bytes(bytes(12))

    judged(open_both, source, damage)
