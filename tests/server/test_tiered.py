"""Mend 1.6: of a tiered topic, what is on this disk is read and served, and nothing hides that there is more."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from octavo.cli import main
from octavo.errors import DataLoss, ErrorCode, OffsetOutOfRange
from octavo.log import DataDirectory, Log
from octavo.log.files.text_checkpoint import LOG_START, read_epochs, read_offsets
from octavo.log.names import LEADER_EPOCHS
from octavo.log.storage import DISK
from octavo.server.serving import serve
from octavo.spark.options import read_options
from octavo.spark.ranges import Logs
from octavo.spark.tables.catching_up import plan_round
from octavo.spark.tables.export import source_options
from octavo.spark.tables.progress import Progress
from tests.server.conversation import Conversation
from tests.server.questions import fetch_from, offset_at
from tests.unit.log.tiered import COUNT, CUT, START, make_tiered
from tests.unit.spark.queries import offsets, plan
from tests.unit.spark.test_stream import Query


@pytest.mark.parametrize("is_told", [True, False])
def test_a_query_does_not_take_the_local_part_for_all(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, *, is_told: bool
) -> None:
    local = make_tiered(tmp_path, is_told=is_told)
    for options in ({}, {"startingOffsets": f'{{"cut":{{"0":{START + 1}}}}}'}, {"startingTimestamp": "1"}):
        with pytest.raises(DataLoss, match="remote storage") as refused:
            plan(tmp_path, subscribe="cut", **options)
        assert "retention" not in str(refused.value)
    assert offsets(tmp_path, subscribe="cut", failOnDataLoss="false") == list(range(local, COUNT))
    assert "remote storage" in caplog.text
    at_start = f'{{"cut":{{"0":{local}}}}}'
    assert offsets(tmp_path, subscribe="cut", startingOffsets=at_start) == list(range(local, COUNT))
    assert offsets(tmp_path, subscribe="plain") == list(range(COUNT))
    with pytest.raises(DataLoss, match="deleted by retention"):  # that part is nowhere
        plan(tmp_path, subscribe="plain", endingOffsets=f'{{"plain":{{"0":{COUNT + 1}}}}}')


def test_a_stream_does_not_either(tmp_path: Path) -> None:
    local = make_tiered(tmp_path)
    with pytest.raises(DataLoss, match="remote storage"):
        Query(tmp_path, subscribe="cut", startingOffsets="earliest").trigger()
    query = Query(tmp_path, subscribe="cut", startingOffsets="earliest", failOnDataLoss="false")
    assert query.trigger() == list(range(local, COUNT))
    assert Query(tmp_path, subscribe="cut", startingOffsets="latest").trigger() == []


def test_an_export_does_not_either(tmp_path: Path) -> None:
    local = make_tiered(tmp_path)
    for fails in ("true", "false"):
        options = source_options({"path": str(tmp_path), "subscribe": "cut", "failOnDataLoss": fails})
        logs = Logs(options, decides=True)
        if fails == "true":
            with pytest.raises(DataLoss, match="remote storage"):
                plan_round(options, logs.look(), Progress({}), 1 << 30)
        else:
            [part] = plan_round(options, logs.look(), Progress({}), 1 << 30).ranges
            assert (part.first, part.end) == (local, COUNT)
        logs.close()


def test_segments_that_are_named_are_read(tmp_path: Path) -> None:
    local = make_tiered(tmp_path)
    found = Logs(read_options({"path": str(tmp_path / "cut-0" / f"{local:020d}.log")}), decides=True).look()
    assert found[CUT].remote is None


def test_without_metadata_both_checkpoints_have_to_say_so(tmp_path: Path) -> None:
    make_tiered(tmp_path)
    for file in (tmp_path / "__cluster_metadata-0").iterdir():
        file.unlink()
    with pytest.raises(DataLoss, match="remote storage"):
        plan(tmp_path, subscribe="cut")
    (tmp_path / "cut-0" / LEADER_EPOCHS).unlink()
    plan(tmp_path, subscribe="cut")


def test_serving_it_names_the_topics_and_refuses_older_offsets(tmp_path: Path) -> None:
    local = make_tiered(tmp_path)
    said: list[str] = []
    with serve(tmp_path, say=said.append) as server:
        assert any(f"cut-0 (offsets {START} to {local - 1})" in each for each in said)
        said.clear()
        with Conversation(server.bootstrap_servers) as conversation:
            [topic] = conversation.ask(*offset_at("cut", -2))["topics"]
            assert topic["partitions"][0]["offset"] == local
            for offset in (START, START + 1):
                [topic] = conversation.ask(*fetch_from("cut", offset))["responses"]
                assert topic["partitions"][0]["error_code"] == ErrorCode.OFFSET_OUT_OF_RANGE
    told = [each for each in said if "remote storage" in each]
    assert len(told) == 1
    assert "cut-0" in told[0]


@pytest.mark.parametrize("way", ["open", "serve", "partition", "retention", "records"])
def test_what_the_checkpoints_say_of_it_stays(tmp_path: Path, way: str) -> None:
    make_tiered(tmp_path)
    if way == "serve":
        serve(tmp_path, say=lambda _: None).close()
    elif way == "partition":
        Log.open(tmp_path / "cut-0").close()
    else:
        with DataDirectory.open(tmp_path) as data:
            log = data.log("cut", 0)
            if way == "retention":
                data.set_config("cut", {"retention.ms": "1", "remote.log.copy.disable": "true"})
                assert not log.apply_retention()
            elif way == "records":
                log.delete_records_before(START + 1)
            data.write_checkpoints()
    assert read_offsets(DISK, tmp_path / LOG_START) == {CUT: START}
    assert read_epochs(DISK, tmp_path / "cut-0" / LEADER_EPOCHS)[0].start_offset == START


def test_its_start_moves_when_records_that_are_here_are_deleted(tmp_path: Path) -> None:
    local = make_tiered(tmp_path)
    with DataDirectory.open(tmp_path) as data:
        log = data.log("cut", 0)
        assert log.delete_records_before(local + 1) == local + 1
        assert log.remote_part is None
    assert read_offsets(DISK, tmp_path / LOG_START) == {CUT: local + 1}


def test_readers_are_warned_and_an_offset_there_is_out_of_range(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    make_tiered(tmp_path)
    with DataDirectory.open(tmp_path, read_only=True) as data, caplog.at_level(logging.WARNING):
        assert "remote storage" not in caplog.text
        log = data.log("cut", 0)
        assert "remote storage" in caplog.text
        with pytest.raises(OffsetOutOfRange):
            log.read(START, 1)


def test_commands_tell_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "data"
    local = make_tiered(folder)
    assert main(["verify", str(folder)]) == 0
    assert f"offsets {START} to {local - 1} of cut-0 are in remote storage" in capsys.readouterr().err
    assert main(["verify", str(folder / "plain-0")]) == 0
    assert "remote" not in capsys.readouterr().err
    assert main(["report", str(folder), "--html", str(tmp_path / "page.html")]) == 0
    assert "remote storage" in capsys.readouterr().err
    assert f"cut-0 (offsets {START} to {local - 1})" in (tmp_path / "page.html").read_text("utf-8")
    assert main(["handover", str(folder)]) == 0
    printed = capsys.readouterr().out
    assert f"cut-0 (offsets {START} to {local - 1})" in printed
    assert "remote.log.storage.system.enable=true" in printed
    assert read_offsets(DISK, folder / LOG_START) == {CUT: START}


def test_a_program_that_opens_it_is_warned(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    make_tiered(tmp_path)
    DataDirectory.open(tmp_path).close()
    assert caplog.text.count("remote storage") == 1
