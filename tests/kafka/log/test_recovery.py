"""Opening what a crash, a full disk or somebody's hand left behind: the same is cut, kept, rebuilt and removed."""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random

import pytest

from octavo.log import Log, LogConfig
from octavo.records import read_batches
from tests.batches import TIME_MS
from tests.crash.disk import ANY_NAMES, POWER_CUTS, write_image
from tests.crash.storage import CrashStorage
from tests.kafka.judge import Judge
from tests.kafka.log.conftest import OpenBoth
from tests.kafka.log.damage import CONFIG, SETTINGS, bases_of, file_of, judged, start_at, unclean, write_source
from tests.kafka.log.ours import Ours
from tests.kafka.log.samples import batch, replicated
from tests.kafka.log.side_by_side import FOLDER
from tests.kafka.unified_log import Refused, UnifiedLog


@pytest.fixture(scope="module")
def source(kafka_broker: Judge, memory_path: Path) -> Path:
    return write_source(kafka_broker, memory_path / "source" / FOLDER)


def _positions(source: Path) -> list[int]:
    """In the newest file: around the ends of its batches and headers, and some between."""
    data = file_of(source, -1).read_bytes()
    edges = {batch.position for batch in read_batches(data)} | {len(data)}
    near = {edge + step for edge in edges for step in (-1, 0, 1, 8, 11, 12, 16, 17, 18, 60, 61, 62)}
    return sorted(position for position in near | set(range(3, len(data), 97)) if 0 <= position <= len(data))


def test_a_cut_tail(source: Path, open_both: OpenBoth) -> None:
    for position in _positions(source)[::2]:

        def damage(folder: Path, position: int = position) -> None:
            unclean(folder)
            with file_of(folder, -1).open("r+b") as file:
                file.truncate(position)

        judged(open_both, source, damage)


@pytest.mark.parametrize("kind", ["zeros", "garbage"])
def test_a_tail_of_nothing_that_was_written(kind: str, source: Path, open_both: OpenBoth) -> None:
    random = Random(3)
    for position in _positions(source)[1::3]:
        size = random.choice((0, 1, 13, 17, 61, 500))

        def damage(folder: Path, position: int = position, size: int = size) -> None:
            unclean(folder)
            file = file_of(folder, -1)
            data = file.read_bytes()
            lost = len(data) - position + size
            tail = bytes(lost) if kind == "zeros" else Random(position).randbytes(lost)
            file.write_bytes(data[:position] + tail)

        judged(open_both, source, damage)


def test_any_byte_of_any_segment(source: Path, open_both: OpenBoth) -> None:
    """Whatever is behind the first damaged batch goes, with all later segments; unless nobody looks there."""
    random = Random(5)
    bases = bases_of(source)
    compared = 0
    for _ in range(40):
        number = random.randrange(len(bases))
        recovery_point = random.choice((0, 0, bases[number], bases[-1]))
        data = file_of(source, number).read_bytes()
        at = random.randrange(len(data))
        if any(0 <= at - found.position < 8 for found in read_batches(data)):
            continue  # an offset, which no checksum covers: see below for those that go back

        def damage(folder: Path, number: int = number, at: int = at, recovery_point: int = recovery_point) -> None:
            unclean(folder, recovery_point)
            file = file_of(folder, number)
            damaged = bytearray(file.read_bytes())
            damaged[at] ^= 0x55
            file.write_bytes(damaged)

        if recovery_point <= bases[number]:
            judged(open_both, source, damage)
            compared += 1
    assert compared > 20


@pytest.mark.parametrize("clean", [True, False])
def test_leftovers_of_deletion_and_compaction(clean: bool, source: Path, open_both: OpenBoth) -> None:
    def damage(folder: Path) -> None:
        if not clean:
            unclean(folder)
        for kind in ("log", "index", "timeindex"):
            file = file_of(folder, 1, kind)
            shutil.copy(file, folder / f"{0:020d}.{kind}.deleted")
            shutil.copy(file, folder / f"{file.name}.cleaned")

    judged(open_both, source, damage)


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("numbers", [(0,), (1,), (1, 2), (-1,)])
def test_a_swap_that_was_not_finished(numbers: tuple[int, ...], clean: bool, source: Path, open_both: OpenBoth) -> None:
    """The new segments are there, and some or all of the old ones as well."""

    def damage(folder: Path) -> None:
        if not clean:
            unclean(folder)
        names = [file_of(folder, number, kind) for number in numbers for kind in ("log", "index", "timeindex")]
        for file in names:
            shutil.copy(file, folder / f"{file.name}.swap")
        names[0].unlink()

    judged(open_both, source, damage)


def test_a_swap_of_a_split_that_was_not_finished(source: Path, open_both: OpenBoth) -> None:
    """A .cleaned file says that not all of them are there: the old segments stay."""

    def damage(folder: Path) -> None:
        for number, suffix in ((1, "swap"), (2, "swap"), (2, "cleaned")):
            for kind in ("log", "index", "timeindex"):
                file = file_of(folder, number, kind)
                shutil.copy(file, folder / f"{file.name}.{suffix}")

    judged(open_both, source, damage)


@pytest.mark.parametrize("clean", [True, False])
def test_a_start_offset_anywhere(clean: bool, source: Path, open_both: OpenBoth) -> None:
    """But for one behind the end of a log that was closed cleanly: Kafka removes all of it, we go by the data."""
    bases = bases_of(source)
    for offset in (0, 1, bases[1], bases[1] + 1, bases[-1], bases[-1] + 2, *(() if clean else (10_000,))):

        def damage(folder: Path, offset: int = offset) -> None:
            if not clean:
                unclean(folder)
            start_at(folder, offset)

        judged(open_both, source, damage)


@pytest.mark.parametrize("offset", [0, 5, 20, 10_000])
def test_a_recovery_point_anywhere(offset: int, source: Path, open_both: OpenBoth) -> None:
    def damage(folder: Path) -> None:
        unclean(folder, offset)

    judged(open_both, source, damage)


@pytest.mark.parametrize("clean", [True, False])
def test_no_epochs(clean: bool, source: Path, open_both: OpenBoth) -> None:
    def damage(folder: Path) -> None:
        if not clean:
            unclean(folder)
        (folder / "leader-epoch-checkpoint").unlink()

    judged(open_both, source, damage)


@pytest.mark.parametrize("text", ["0\n1\n5 0\n", "0\n3\n0 0\n9 4\n20 99999\n", "0\n0\n", "0\n2\n0 0\n30 2\n"])
def test_epochs_that_do_not_agree(text: str, source: Path, open_both: OpenBoth) -> None:
    for clean in (True, False):

        def damage(folder: Path, clean: bool = clean) -> None:
            if not clean:
                unclean(folder)
            (folder / "leader-epoch-checkpoint").write_text(text)

        judged(open_both, source, damage)


def test_an_empty_newest_segment(source: Path, open_both: OpenBoth) -> None:
    for clean in (True, False):

        def damage(folder: Path, clean: bool = clean) -> None:
            if not clean:
                unclean(folder)
            for kind in ("index", "timeindex", "log"):
                file_of(folder, -1, kind).write_bytes(b"")

        judged(open_both, source, damage)


def _empty(folder: Path) -> None:
    for file in folder.iterdir():
        file.unlink()


def test_an_empty_folder_and_none(open_both: OpenBoth) -> None:
    both = open_both()
    both.close()
    both.open()
    both.append(batch())
    both.close()
    judged(open_both, both.kafka_folder, _empty)

    def damage(folder: Path) -> None:
        _empty(folder)
        start_at(folder, 77)

    judged(open_both, both.kafka_folder, damage)


@pytest.mark.parametrize("step", [-5, -1, 0, 3, 6])
def test_offsets_that_go_back(step: int, source: Path, open_both: OpenBoth, tmp_path: Path) -> None:
    """Here we differ: Kafka empties the segment, goes on behind, or does not open the log; we cut what goes back."""
    intact = open_both(source=source, **SETTINGS).state
    folder = tmp_path / "ours" / FOLDER
    shutil.copytree(source.parent, folder.parent)
    unclean(folder)
    with file_of(folder, -1).open("ab") as file:
        file.write(replicated(batch(), bases_of(folder)[-1] + step, 18))
    assert Ours.open(folder, CONFIG, clock=lambda: TIME_MS).state == intact


def test_a_batch_of_old_messages(source: Path, open_both: OpenBoth) -> None:
    def damage(folder: Path) -> None:
        unclean(folder)
        with file_of(folder, -1).open("ab") as file:
            file.write(batch(3, magic=1, base_offset=500, codec="gzip") + batch(2, magic=0, base_offset=600))

    judged(open_both, source, damage)


def test_a_power_cut_before_rolled_segments_are_flushed(kafka_broker: Judge, memory_path: Path) -> None:
    """Kafka has all that we have, and after missing batches goes on where we cut.

    It does not start where a segment is damaged and the index of a later one too: it reads the former for the sake of
    the latter before it has checked either. What we have recovered it opens always.
    """
    storage = CrashStorage(_made(memory_path / "written"))
    log = Log.open(storage.folder / FOLDER, LogConfig.from_properties(CONFIG), storage=storage, clock=lambda: TIME_MS)
    for number in range(24):
        log.append(batch(1 + number % 3, size=90, timestamp_ms=TIME_MS + number))
        if number == 5:
            log.flush()
    assert log.recovery_point < log.segments[-2].base_offset
    disk = storage.disk()
    refused, ends = 0, set()
    for number, way in enumerate((*POWER_CUTS, *ANY_NAMES) * 2):
        ours, theirs = (memory_path / f"{name}-{number}" for name in ("ours", "theirs"))
        for folder in (ours, theirs):
            write_image(disk.image(way, Random(number)), folder)
        recovered = Ours.open(ours / FOLDER, CONFIG, clock=lambda: TIME_MS, may_have_gaps=False)
        end = recovered.state.end_offset
        found = _batches(recovered, end)
        recovered.close()
        assert log.recovery_point <= end <= log.end_offset
        assert found == _batches(Ours(log), end)
        for folder in (ours, theirs):
            try:
                kafka = UnifiedLog.open(kafka_broker, folder / FOLDER, CONFIG, clock=lambda: TIME_MS)
            except Refused:
                assert folder is theirs
                refused += 1
            else:
                assert kafka.end_offset == end if folder is ours else kafka.end_offset >= end
                assert _batches(kafka, end) == found
                ends.add(kafka.end_offset)
                kafka.close()
    assert refused < number // 2
    assert len(ends) > 5
    log.close()


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _batches(log: Ours | UnifiedLog, end: int) -> list[bytes]:
    """The batches before `end`."""
    found: list[bytes] = []
    offset = 0
    while offset < end:
        data = log.read(offset, 1, isolation="LOG_END")
        found.append(data)
        [read] = read_batches(data)
        offset = read.last_offset + 1
    return found
