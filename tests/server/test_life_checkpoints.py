"""What a reader of the directory sees while a broker writes, and what the broker does in the background."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from octavo.log import DataDirectory
from octavo.log.files.text_checkpoint import REPLICATION
from octavo.log.producer import Producer
from octavo.server.serving import serve
from tests.unit.log.logs import make_batch

PATIENCE_S = 60


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline


def test_a_reader_of_the_directory_sees_records_while_the_broker_runs(tmp_path: Path) -> None:
    with serve(tmp_path / "data") as server:
        server.directory.create_topic("events")
        with Producer(server.directory) as producer:
            producer.send("events", b"one").result(PATIENCE_S)
        with DataDirectory.open(tmp_path / "data", read_only=True) as reader:
            log = reader.log("events", 0)

            def is_seen() -> bool:
                log.refresh()
                return log.high_watermark == 1

            until(is_seen)


def test_checkpoints_are_written_only_if_they_have_changed(tmp_path: Path) -> None:
    with serve(tmp_path / "data") as server:
        server.directory.create_topic("events")
        server.directory.write_checkpoints()
        checkpoint = tmp_path / "data" / REPLICATION
        before = checkpoint.stat()
        server.directory.write_checkpoints()
        assert checkpoint.stat() == before
        server.directory.log("events", 0).append(make_batch())
        until(lambda: checkpoint.stat() != before)  # somebody has written it


def test_retention_is_applied_while_the_broker_runs(tmp_path: Path) -> None:
    config = {
        "log.retention.ms": "1000",
        "log.retention.check.interval.ms": "1",
        "log.initial.task.delay.ms": "0",
    }
    with serve(tmp_path / "data", config=config) as server:
        server.directory.create_topic("events")
        log = server.directory.log("events", 0)
        log.append(make_batch())  # of a time that is long over
        until(lambda: log.start_offset == 1)
