"""What a log keeps beside its data is damaged: it is named, not used, and made anew. The data decide; nothing is lost.

Of each file: cut at every length, every byte another, of a version to come, with offsets behind the end, empty.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from octavo.errors import BadDirectory, CorruptFile
from octavo.log import DataDirectory, Isolation, Log, Origin
from octavo.log.config.broker_defaults import TopicConfig
from octavo.log.config.log_config import LogConfig
from octavo.log.directory.data_folder import DataFolder
from octavo.log.names import TopicPartition
from octavo.log.producer_state.snapshot import read_snapshot, write_snapshot
from octavo.log.segment.transaction_index import AbortedEntry
from octavo.log.storage import DISK
from octavo.records import BatchBuilder, read_batches
from octavo.records.control import end_transaction_marker
from tests.crash.storage import FastStorage

TIME_MS: Final = 1_700_000_000_000
STARTED: Final = TopicPartition("deleted", 0)  # a log from which records have been deleted
COMPACTED: Final = TopicPartition("compacted", 0)
CONFIGS: Final = {
    STARTED: {"internal.segment.bytes": "700", "index.interval.bytes": "200"},
    COMPACTED: {"internal.segment.bytes": "700", "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0"},
}
STORAGE: Final = FastStorage()
CHECKPOINTS: Final = (
    "recovery-point-offset-checkpoint",
    "log-start-offset-checkpoint",
    "replication-offset-checkpoint",
    "cleaner-offset-checkpoint",
)
EPOCHS: Final = "deleted-0/leader-epoch-checkpoint"


def open_folder(path: Path) -> DataFolder:
    """Both logs, to be written."""
    folder = DataFolder(path, STORAGE)
    for partition in folder.partitions:
        folder.check(partition, may_have_gaps=True)
    folder.begin()
    for partition, config in CONFIGS.items():
        if partition not in folder.partitions:
            folder.make_partitions([partition])
        known = TopicConfig(LogConfig.from_properties(config), is_known=True, may_be_compacted=True)
        folder.open_log(partition, known, clock=lambda: TIME_MS, on_progress=None)
    return folder


def send(log: Log, producer_id: int, sequence: int, *, transactional: bool = False) -> None:
    builder = BatchBuilder(
        producer_id=producer_id, producer_epoch=0, base_sequence=sequence, transactional=transactional
    )
    for number in range(2):
        builder.append(b"%d" % (sequence % 3), b"%d %d %d" % (producer_id, sequence, number), timestamp_ms=TIME_MS)
    log.append(builder.build())


def end(log: Log, producer_id: int, *, commit: bool) -> None:
    marker = end_transaction_marker(
        commit, timestamp_ms=TIME_MS, producer_id=producer_id, producer_epoch=0, coordinator_epoch=3
    )
    log.append(marker, origin=Origin.COORDINATOR)


def fill(log: Log) -> None:
    """Producers of all kinds, transactions that go from segment to segment, and one that nobody ends."""
    for number in range(8):
        log.become_leader(number // 3)
        send(log, 1, 2 * number)
        send(log, 2, 2 * number, transactional=True)
        send(log, 3, 2 * number, transactional=True)
        if number % 2:
            end(log, 2, commit=number == 3)
        if number in (2, 5):
            end(log, 3, commit=number == 5)
    send(log, 9, 0, transactional=True)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("written") / "data"
    path.mkdir()
    folder = open_folder(path)
    for log in folder.logs.values():
        fill(log)
        assert len(log.segments) > 3
    folder.logs[STARTED].delete_records_before(3)
    assert folder.logs[COMPACTED].compact(TIME_MS) is not None
    folder.close()
    return path


class Known(NamedTuple):
    """All that a log holds, knows and shows."""

    batches: list[bytes]
    start_offset: int
    last_stable_offset: int
    committed: list[tuple[int, bytes | None]]
    producers: dict[int, tuple[int, ...]]
    aborted: list[AbortedEntry]
    epochs: tuple[tuple[int, int], ...]


def known(log: Log) -> Known:
    batches = []
    offset = log.start_offset
    while data := bytes(log.read(offset, 1 << 20, isolation=Isolation.LOG_END).records):
        for batch in read_batches(data):
            batches.append(bytes(batch.data))
            offset = batch.last_offset + 1
    committed = log.reader(isolation=Isolation.READ_COMMITTED, buffer_size=200).records()
    return Known(
        batches,
        log.start_offset,
        log.last_stable_offset,
        [(record.offset, record.value) for record in committed],
        {
            producer_id: (entry.epoch, entry.last_sequence, entry.last_offset, entry.txn_first_offset)
            for producer_id, entry in log.producers.entries.items()
        },
        [entry for segment in log._view.segments for entry in segment.txn_index.entries()],
        log.epochs,
    )


@pytest.fixture(scope="module")
def expected(written: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[TopicPartition, Known]:
    copy = tmp_path_factory.mktemp("expected") / "data"
    shutil.copytree(written, copy)
    folder = open_folder(copy)
    told = {partition: known(log) for partition, log in folder.logs.items()}
    folder.close()
    assert len(told[STARTED].aborted) == 4
    assert len(told[STARTED].epochs) == 3
    return told


class Opened(NamedTuple):
    """What came of a damaged directory."""

    named: set[str]
    logs: dict[TopicPartition, Known]
    again: set[str]  # what is named when it is opened once more


def open_damaged(written: Path, folder: Path, name: str, data: bytes, *, clean: bool = True) -> Opened:
    """Put `data` in place of a file of a copy, open that, close it, and open it again."""
    shutil.copytree(written, folder)
    try:
        (folder / name).write_bytes(data)
        if not clean:
            (folder / ".kafka_cleanshutdown").unlink()
        named, logs = _open(folder)
        again, same = _open(folder)
        assert {partition: one.batches for partition, one in same.items()} == {
            partition: one.batches for partition, one in logs.items()
        }
        return Opened(named, logs, again)
    finally:
        shutil.rmtree(folder)


def _open(path: Path) -> tuple[set[str], dict[TopicPartition, Known]]:
    folder = open_folder(path)
    try:
        reports = [log.recovery.ignored for log in folder.logs.values()]
        named = {found.file for report in (folder.checkpoints.ignored, *reports) for found in report}
        return named, {partition: known(log) for partition, log in folder.logs.items()}
    finally:
        folder.close()


def cuts(data: bytes) -> Iterator[bytes]:
    """The file cut at every length."""
    return (data[:size] for size in range(len(data)))


def flips(data: bytes) -> Iterator[bytes]:
    """Every byte another."""
    for position in range(len(data)):
        yield data[:position] + bytes([data[position] ^ (0x11, 0x80)[position % 2]]) + data[position + 1 :]


# ---------------------------------------------------------------------------------------------------------- snapshots


def newest(written: Path, suffix: str, *, before_end: bool) -> str:
    """The newest file of that kind of the first log; `before_end`: that begins a segment."""
    folder = written / STARTED.folder
    paths = sorted(folder.glob("*" + suffix))
    if before_end:
        paths = [path for path in paths if path.with_suffix(".log").exists()]
    return str(paths[-1].relative_to(written))


def test_any_damage_of_a_snapshot_is_noticed(written: Path, tmp_path: Path) -> None:
    right = (written / newest(written, ".snapshot", before_end=False)).read_bytes()
    for data in [*cuts(right), *flips(right), right + b"\0", right + right]:
        (tmp_path / "snapshot").write_bytes(data)
        with pytest.raises(CorruptFile):
            read_snapshot(DISK, tmp_path / "snapshot")


@pytest.mark.parametrize("clean", [True, False])
def test_a_damaged_snapshot(clean: bool, written: Path, expected: dict[TopicPartition, Known], tmp_path: Path) -> None:
    name = newest(written, ".snapshot", before_end=not clean)
    right = (written / name).read_bytes()
    for data in [*cuts(right)][::13] + [*flips(right)][::13]:
        opened = open_damaged(written, tmp_path / "copy", name, data, clean=clean)
        assert opened.logs == expected
        assert opened.named == {Path(name).name}
        assert not opened.again


def test_a_snapshot_that_knows_what_is_behind_it(
    written: Path, expected: dict[TopicPartition, Known], tmp_path: Path
) -> None:
    """As a whole it is sound: but nobody can have made it."""
    name = newest(written, ".snapshot", before_end=False)
    entries = read_snapshot(DISK, written / name)
    entries[1].numbers[1] = 1_000_000
    write_snapshot(DISK, tmp_path / "snapshot", entries)
    opened = open_damaged(written, tmp_path / "copy", name, (tmp_path / "snapshot").read_bytes())
    assert (opened.named, opened.logs, opened.again) == ({Path(name).name}, expected, set())


@pytest.mark.parametrize("clean", [True, False])
def test_a_snapshot_of_an_offset_behind_the_end(
    clean: bool, written: Path, expected: dict[TopicPartition, Known], tmp_path: Path
) -> None:
    newest_snapshot = (written / newest(written, ".snapshot", before_end=False)).read_bytes()
    name = f"deleted-0/{10**9:020d}.snapshot"
    opened = open_damaged(written, tmp_path / "copy", name, newest_snapshot, clean=clean)
    assert (opened.named, opened.logs, opened.again) == ({Path(name).name}, expected, set())


# ------------------------------------------------------------------------------------------------ transaction indexes


@pytest.mark.parametrize("clean", [True, False])
def test_a_damaged_transaction_index(
    clean: bool, written: Path, expected: dict[TopicPartition, Known], tmp_path: Path
) -> None:
    """Also where it is as long as it should be: its entries are compared with the batches."""
    for name in [str(path.relative_to(written)) for path in sorted((written / STARTED.folder).glob("*.txnindex"))][:2]:
        right = (written / name).read_bytes()
        for data in [*cuts(right)][:: 3 if clean else 17] + [*flips(right)][:: 1 if clean else 17]:
            opened = open_damaged(written, tmp_path / "copy", name, data, clean=clean)
            assert opened.logs == expected, data.hex()
            assert not opened.again
            assert opened.named == {Path(name).name}, data.hex()


def test_a_transaction_index_that_is_not_that_of_its_segment(
    written: Path, expected: dict[TopicPartition, Known], tmp_path: Path
) -> None:
    one, *_, other = sorted((written / STARTED.folder).glob("*.txnindex"))
    opened = open_damaged(written, tmp_path / "copy", str(one.relative_to(written)), other.read_bytes())
    assert (opened.named, opened.logs, opened.again) == ({one.name}, expected, set())


# -------------------------------------------------------------------------------------------------------- checkpoints


def is_text_of_another(data: bytes, right: bytes) -> bool:
    """Whether a checkpoint that was changed still is one: it has no checksum, and is believed then."""
    lines, whole = data.splitlines(), right.splitlines()
    return len(lines) < 2 or (
        data.endswith(b"\n")
        and lines[:2] == whole[:2]
        and len(lines) == len(whole)
        and all(len(line.split()) == len(other.split()) for line, other in zip(lines, whole, strict=True))
        and all(word.isdigit() for line in lines for word in line.split()[-2:])
    )


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_a_damaged_checkpoint_of_all_partitions(
    name: str, written: Path, expected: dict[TopicPartition, Known], tmp_path: Path
) -> None:
    """Without the start offset nothing is hidden any more; without the others nothing is missed."""
    right = (written / name).read_bytes()
    damaged = [*cuts(right)][::3] + [*flips(right)][::2] + [right.replace(b"0\n", b"1\n", 1), b"\xff" * 40, right[:-1]]
    for number, data in enumerate(damaged):
        opened = open_damaged(written, tmp_path / "copy", name, data, clean=number % 3 > 0)
        believed = is_text_of_another(data, right)
        assert believed or opened.named == {name}, data
        assert not opened.again
        for partition, one in opened.logs.items():
            if not (believed and name.startswith("log-start")):
                assert one.batches[-len(expected[partition].batches) :] == expected[partition].batches
                assert one.producers == expected[partition].producers
                assert one.last_stable_offset == expected[partition].last_stable_offset


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_a_checkpoint_with_offsets_behind_the_end(
    name: str, written: Path, expected: dict[TopicPartition, Known], tmp_path: Path
) -> None:
    data = b"0\n2\ncompacted 0 1000000\ndeleted 0 1000000\n"
    opened = open_damaged(written, tmp_path / "copy", name, data)
    assert not opened.again
    assert opened.named <= {name}
    for partition, one in opened.logs.items():
        assert one.batches[-len(expected[partition].batches) :] == expected[partition].batches
        assert one.producers == expected[partition].producers


def test_a_directory_names_the_checkpoints_that_it_could_not_use(tmp_path: Path) -> None:
    with DataDirectory.open(tmp_path / "data") as data:
        data.create_topic("t", 1)
        assert data.ignored == []
    for name in CHECKPOINTS:
        (tmp_path / "data" / name).write_bytes(b"7\n0\n")
    with DataDirectory.open(tmp_path / "data") as data:
        assert [found.file for found in data.ignored] == list(CHECKPOINTS)
        assert all("version 7" in found.reason for found in data.ignored)
    with DataDirectory.open(tmp_path / "data") as data:
        assert data.ignored == []


@pytest.mark.parametrize("clean", [True, False])
def test_a_damaged_checkpoint_of_leader_epochs(
    clean: bool, written: Path, expected: dict[TopicPartition, Known], tmp_path: Path
) -> None:
    right = (written / EPOCHS).read_bytes()
    for data in [*cuts(right), right.replace(b"0\n", b"1\n", 1), b"\xff" * 40, right.replace(b"\n", b"-\n")]:
        opened = open_damaged(written, tmp_path / "copy", EPOCHS, data, clean=clean)
        assert opened.named == {Path(EPOCHS).name}, data
        assert opened.logs == expected, data
        assert not opened.again


def test_leader_epochs_of_the_future(written: Path, expected: dict[TopicPartition, Known], tmp_path: Path) -> None:
    """Those behind the end have nothing to tell."""
    data = (written / EPOCHS).read_bytes().replace(b"0\n3\n", b"0\n4\n") + b"9 1000000\n"
    opened = open_damaged(written, tmp_path / "copy", EPOCHS, data)
    assert opened.logs == expected


# ---------------------------------------------------------------------------------------------------- what is no file


@pytest.mark.parametrize("name", [*CHECKPOINTS, EPOCHS, "*.snapshot", "*.txnindex"])
def test_a_folder_in_place_of_a_file_is_left_to_people(name: str, written: Path, tmp_path: Path) -> None:
    """It cannot be made anew, and what is in it may be of worth: the directory says so, and stays as it is."""
    copy = tmp_path / "copy"
    shutil.copytree(written, copy)
    path = copy / name
    if "*" in name:
        path = sorted((copy / STARTED.folder).glob(name))[-1]
    path.unlink()
    path.mkdir()
    (path / "of worth").write_bytes(b"")
    with pytest.raises(BadDirectory, match=path.name):
        open_folder(copy)
    assert (path / "of worth").exists()
    assert (copy / ".kafka_cleanshutdown").exists()
