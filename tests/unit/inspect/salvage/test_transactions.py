"""Transactions whose markers are lost: where readers of committed data stop, and how `abort_open` lets them go on."""

from __future__ import annotations

from pathlib import Path

import pytest

from octavo.inspect.salvage import PartitionReport, salvage
from octavo.inspect.salvage.report import LostOffsets
from octavo.log import Isolation, Log
from octavo.log.coordinator.markers import write_marker
from octavo.records import BatchBuilder
from tests.crash.storage import FastStorage
from tests.unit.inspect.salvage.damaging import batches_in

NOW_MS = 1_700_000_000_000


class Writer:
    """A log with transactions of several producers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = Log.open(folder, storage=FastStorage(), clock=lambda: NOW_MS)
        self._sequences: dict[int, int] = {}

    def data(self, producer: int, value: bytes, *, epoch: int = 3) -> int:
        sequence = self._sequences.get(producer, 0)
        builder = BatchBuilder(
            transactional=True, producer_id=producer, producer_epoch=epoch, base_sequence=sequence
        )  # fmt: skip
        builder.append(None, value, timestamp_ms=NOW_MS)
        self._sequences[producer] = sequence + 1
        return self.log.append(builder.build()).base_offset

    def plain(self, value: bytes) -> int:
        builder = BatchBuilder()
        builder.append(None, value, timestamp_ms=NOW_MS)
        return self.log.append(builder.build()).base_offset

    def end(self, producer: int, *, commit: bool, epoch: int = 3) -> int:
        write_marker(self.log, producer, epoch, 5, commit=commit, timestamp_ms=NOW_MS)
        return self.log.end_offset - 1

    def close_without(self, *offsets: int) -> None:
        """Close the log, and damage these batches."""
        self.log.close()
        batches = batches_in(self.folder)
        for path in self.folder.glob("*.log"):
            data = path.read_bytes()
            for offset in offsets:
                at = data.find(batches[offset])
                if at >= 0:
                    data = data[: at + 65] + bytes([data[at + 65] ^ 255]) + data[at + 66 :]
            path.write_bytes(data)


@pytest.fixture
def writer(tmp_path: Path) -> Writer:
    return Writer(tmp_path / "events-0")


def salvaged(writer: Writer, *, abort_open: bool) -> tuple[PartitionReport, list[bytes | None]]:
    """Salvage the log; return the report and the values that a reader of committed data gets."""
    target = writer.folder.parent / ("aborted" if abort_open else "open") / "events-0"
    target.parent.mkdir()
    [report] = salvage(
        [writer.folder], target, abort_open=abort_open, storage=FastStorage(), clock=lambda: NOW_MS + 1000
    ).partitions  # fmt: skip
    log = Log.open(target, read_only=True)
    values = []
    for batch in log.reader(0, isolation=Isolation.READ_COMMITTED, buffer_size=1 << 16):
        if not batch.is_control:
            aborted = [
                each.first_offset
                for each in log.read(0, 1 << 20, isolation=Isolation.READ_COMMITTED).aborted_transactions or ()
                if each.producer_id == batch.producer_id
            ]
            if not aborted or batch.base_offset < min(aborted):
                values += [record.value for record in batch]
    log.close()
    return report, values


def test_a_lost_marker_stops_readers_for_ever_unless_the_transaction_is_aborted(writer: Writer) -> None:
    writer.plain(b"before")
    first = writer.data(7, b"lost transaction")
    writer.data(8, b"whole transaction")
    marker = writer.end(7, commit=True)
    writer.end(8, commit=True)
    writer.plain(b"behind")
    writer.close_without(marker)

    report, values = salvaged(writer, abort_open=False)
    assert report.read_committed_stops_at == first
    assert [(each.producer_id, each.producer_epoch, each.first_offset) for each in report.open_transactions] == [
        (7, 3, first)
    ]
    assert values == [b"before"]

    report, values = salvaged(writer, abort_open=True)
    assert report.read_committed_stops_at is None
    assert [each.is_aborted for each in report.open_transactions] == [True]
    assert values == [b"before", b"whole transaction", b"behind"]
    assert report.end_offset == 7
    log = Log.open(writer.folder.parent / "aborted" / "events-0", clock=lambda: NOW_MS)
    assert not log.recovery.cuts
    assert dict(log.producers.open_transactions) == {}
    assert log.producers.entries[7].epoch == 3
    assert (writer.folder.parent / "aborted" / "events-0" / "00000000000000000000.txnindex").stat().st_size > 0
    log.close()


def test_a_transaction_that_is_open_at_the_end_is_listed_too(writer: Writer) -> None:
    writer.data(7, b"one")
    writer.end(7, commit=True)
    first = writer.data(7, b"two")
    writer.close_without()
    report, values = salvaged(writer, abort_open=False)
    assert (report.read_committed_stops_at, values) == (first, [b"one"])
    assert not report.has_lost
    report, values = salvaged(writer, abort_open=True)
    assert values == [b"one"]


def test_a_transaction_that_a_later_marker_decides_is_doubtful(writer: Writer) -> None:
    first = writer.data(7, b"aborted")
    marker = writer.end(7, commit=False)
    writer.data(7, b"committed")
    later = writer.end(7, commit=True)
    writer.data(8, b"of somebody else")
    writer.end(8, commit=True)
    writer.close_without(marker)
    report, _ = salvaged(writer, abort_open=False)
    [doubtful] = report.doubtful_transactions
    assert (doubtful.producer_id, doubtful.first_offset, doubtful.marker_offset) == (7, first, later)
    assert doubtful.is_committed
    assert doubtful.lost == LostOffsets(marker, marker)
    assert report.open_transactions == []
