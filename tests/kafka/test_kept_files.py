"""Mend 1.8: what Octavo keeps of a log that it cut as Kafka does, Apache Kafka leaves as it is."""

from __future__ import annotations

from pathlib import Path

from octavo.log import DataDirectory
from octavo.records import read_batches
from tests.clock import Clock
from tests.kafka.judge import Judge
from tests.kafka.unified_log import CLEAN_SHUTDOWN, UnifiedLog
from tests.unit.log.logs import make_batch
from tests.unit.log.recovery.test_damage_before_records import batch_at, crashed, flip


def kept(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*.lost*")}


def test_1_8_kafka_ignores_the_files_that_are_kept(kafka_broker: Judge, tmp_path: Path) -> None:
    files = crashed(tmp_path, segments=3)
    folder = files[0].parent
    flip(files[1], batch_at(files[1], 3) + 70)
    with DataDirectory.open(tmp_path, clock=Clock(), recover="as-kafka") as data:
        end = data.log("orders", 0).end_offset
    lost = kept(folder)
    assert sorted(lost) == [f"{path.name}.lost" for path in files[1:]]
    for is_clean in (True, False):
        if not is_clean:
            (tmp_path / CLEAN_SHUTDOWN).unlink()
            (tmp_path / "recovery-point-offset-checkpoint").write_text("0\n0\n")
        log = UnifiedLog.open(kafka_broker, folder, {}, clock=Clock())
        assert log.append(make_batch()).base_offset == end
        assert sum(1 for _ in read_batches(log.read(end - 1, 1000))) == 2
        log.close()
        end += 1
        assert kept(folder) == lost
    with DataDirectory.open(tmp_path, clock=Clock()) as data:
        assert data.log("orders", 0).end_offset == end
    assert kept(folder) == lost
