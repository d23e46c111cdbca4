"""The demo runs, fits its terminal, and the commands that it ends with work."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from octavo.cli import main
from octavo.cli.demo import (
    bytes_,
    conversion,
    crash,
    damage,
    delivering,
    formats,
    keeping,
    logs,
    million,
    serving,
    tables,
)
from octavo.cli.demo.stage import Stage
from octavo.cli.exits import BROKEN_PIPE, COULD_NOT_RUN, DAMAGE_FOUND, FINE
from octavo.errors import LogError
from octavo.log import DataDirectory
from octavo.log.names import TopicPartition
from octavo.records import Codec, to_arrow
from tests.unit.cli.test_command import OCTAVO


def test_a_closed_pipe_ends_it_quietly(tmp_path: Path) -> None:
    with subprocess.Popen(
        [*OCTAVO, "demo", "--dir", tmp_path], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == BROKEN_PIPE


@pytest.mark.parametrize("columns", [80, 120])
def test_every_chapter_fits_and_is_plain_in_a_pipe(
    columns: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    stage = Stage()
    stage.welcome()
    for chapter in (formats, bytes_, conversion, damage):
        chapter.show(stage)
    data = tmp_path / "data"
    data.mkdir()
    keeping.show(stage, data)
    crash.show(stage, data)
    delivering.show(stage, data)
    monkeypatch.setattr(serving, "COUNT", 2000)
    with serving.Clicks(tmp_path / "served") as clicks:
        serving.show(stage, clicks)
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= columns
    assert "\x1b" not in out
    assert not [line for line in out.splitlines() if line != line.rstrip()]
    assert "last_offset_delta" in out
    assert "ChecksumMismatch at byte 2140" in out
    assert "OffsetOutOfRange offset 1000000 is out" in out
    assert "Closed and opened once more: orders-1: closed cleanly" in out
    assert re.search(r"transaction 2: aborted +20 +10$", out, re.MULTILINE)
    assert re.search(r"^ +compacted +20 ", out, re.MULTILINE)
    assert re.search(r"^ +produced, all acknowledged +2,000 +\d+\.\d\d +[\d,]+$", out, re.MULTILINE)
    assert re.search(r"^ +consumed by the group readers +2,000 +\d+\.\d\d +[\d,]+$", out, re.MULTILINE)


@pytest.mark.long
def test_the_whole_of_it_runs_and_its_commands_work(tmp_path: Path) -> None:
    """On a machine without Java. What Spark answers, where there is one: `tests/spark/test_demo.py`."""
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    environment |= {"COLUMNS": "80", "PATH": ""}  # no octavo there: the commands must say where it is
    done = subprocess.run(
        [*OCTAVO, "demo", "--dir", str(tmp_path)], capture_output=True, text=True, env=environment, timeout=240
    )
    assert (done.returncode, done.stderr) == (FINE, "")
    rates = [int(rate.replace(",", "")) for rate in re.findall(r"^ +(?:none|lz4|zstd) .* ([\d,]+)$", done.stdout, re.M)]
    assert len(rates) == 3
    assert "pyarrow.RecordBatch, about 8 MiB at a time" in done.stdout
    assert "Not now: Spark needs Java, 17 or later, and there is none on the PATH." in " ".join(done.stdout.split())
    assert all(rate > 0 for rate in rates)
    commands = [line.strip() for line in done.stdout.splitlines() if line.startswith(f"  {sys.executable}")]
    assert len(commands) == 7
    outcomes = [subprocess.run(command, shell=True, capture_output=True, text=True) for command in commands]
    assert [outcome.returncode for outcome in outcomes] == [FINE] * 7
    every, transaction, explained, stopped, resynced, handed_over, _ = (outcome.stdout for outcome in outcomes)
    assert every.count("\n") == 42
    assert transaction.count('"isTransactional":true') == 3
    assert "last_offset_delta 1 (last offset 40)" in explained
    assert (int(stopped), int(resynced)) == (100, 200)
    assert f"{tmp_path}/data: ready for Apache Kafka" in handed_over
    assert "5 topics, 8 partitions" in handed_over  # one of Kafka's own, for transactions
    assert "producer_id" in (tmp_path / "batch.html").read_text("utf-8")
    assert "no rule is broken" in (tmp_path / "report.html").read_text("utf-8")


def test_the_reason_is_told_if_spark_does_not_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    tables.show(Stage(), tmp_path)
    out = " ".join(capsys.readouterr().out.split())
    assert "Spark failed here; docs/spark.md says what it needs. Its last line: " in out
    assert "Java gateway process exited before sending its port number" in out


def test_speeds_are_those_of_the_better_round(monkeypatch: pytest.MonkeyPatch) -> None:
    data = memoryview(b"data")
    rounds = iter([(data, 9.0, 2.0), (data, 3.0, 4.0)])
    monkeypatch.setattr(million, "_round_trip", lambda *_: next(rounds))
    assert million._best_round_trip(None, Codec.ZSTD) == (data, 3.0, 2.0)


def test_chunks_are_as_large_as_the_demo_says() -> None:
    data, _, _ = million._round_trip(million.orders_as_columns(), Codec.NONE)
    sizes = [chunk["value"].nbytes + chunk["key"].nbytes for chunk in to_arrow(data)]
    assert all(6 << 20 < size < 10 << 20 for size in sizes[:-1])


def test_nothing_of_others_is_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    logs.write(tmp_path)
    logs.write(tmp_path)  # over its own files it may
    segment = tmp_path / "notebooks-0" / "00000000000000000000.log"
    segment.write_bytes(b"precious")
    arguments = ["demo", "--dir", str(tmp_path)]
    assert main(arguments) == COULD_NOT_RUN
    assert segment.read_bytes() == b"precious"
    assert "give another --dir" in capsys.readouterr().err


def test_the_damaged_log_is_found_damaged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    logs.write(tmp_path)
    assert main(["dump", str(tmp_path / "broken-0" / "00000000000000000000.log")]) == DAMAGE_FOUND


def test_every_run_has_a_data_directory_of_its_own(tmp_path: Path) -> None:
    assert [logs.place_for_data(tmp_path).name for _ in range(3)] == ["data", "data-2", "data-3"]


def test_every_file_of_the_data_directory_is_explained(tmp_path: Path) -> None:
    keeping.write(tmp_path)
    rows = list(keeping.listing(tmp_path))
    assert all(what for _, _, what in rows)
    assert sum(name.endswith(".log") for name, _, _ in rows) == 4
    assert {f"{partition}/" for partition in ("orders-0", "orders-1", "returns-0", "returns-1")} <= {
        row[0] for row in rows
    }


def test_the_killed_process_loses_nothing_and_the_damage_is_what_it_is_called(tmp_path: Path) -> None:
    keeping.write(tmp_path)
    reported, code = crash.kill_a_writer(tmp_path)
    assert code == -9
    assert len(reported) >= crash.APPENDS
    before = crash._end_offsets(tmp_path)
    assert all(last < before[partition] for partition, last in reported)
    crash.damage(tmp_path)
    with DataDirectory.open(tmp_path) as data:
        reasons = {report.partition: [cut.reason for cut in report.cuts] for report in data.reports}
        left = {partition: data.log(*partition).end_offset for partition in before}
    assert reasons.pop(TopicPartition("orders", 0)) == []
    assert [why for (why,) in reasons.values()] == [
        "a batch is not all there",
        "a length field is smaller than the smallest message (14)",
        reasons[TopicPartition("returns", 1)][0],
    ]
    assert reasons[TopicPartition("returns", 1)][0].startswith("checksum is")
    lost = {partition: before[partition] - left[partition] for partition in before}
    assert lost == {partition: 0 if partition == ("orders", 0) else keeping.BATCH_COUNT for partition in before}


def test_a_process_that_ends_by_itself_is_told_of(tmp_path: Path) -> None:
    with (
        DataDirectory.open(tmp_path),
        pytest.raises(LogError, match=r"ended by itself: octavo\.errors\.\w+: .* is in use by process"),
    ):
        crash.kill_a_writer(tmp_path)


def test_where_there_is_no_spark_the_demo_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("octavo.cli.demo.tables.find_spec", lambda name: None)
    tables.show(Stage(), tmp_path)
    out = " ".join(capsys.readouterr().out.split())
    assert "Not now: PySpark is not installed; pip install 'octavo[spark]' brings it." in out


def test_where_there_is_no_client_the_demo_says_how_to_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    assert serving.what_is_missing() == ""
    monkeypatch.setattr("octavo.cli.demo.serving.find_spec", lambda name: None)
    assert serving.what_is_missing().endswith("is not installed; pip install 'octavo[demo]' brings it")


def test_a_client_that_is_not_served_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "_PATIENCE_S", 0.05)
    with serving.Clicks(tmp_path / "served") as clicks:
        clicks._server.close()
        with pytest.raises(serving.NotServed):
            clicks.produce(1)
