"""Settings of topics are exported with the rows, and an import gives them back, as far as they make sense there."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from octavo.errors import BadTable
from octavo.spark.tables.parquet import ParquetTarget
from octavo.spark.tables.topic_configs import from_notes, restorable, with_configs
from tests.unit.spark.tables.exporting import export, rows
from tests.unit.spark.topics import SMALL, write_topic


def test_a_table_of_plain_files_has_the_settings_of_its_topics(tmp_path: Path) -> None:
    write_topic(tmp_path / "logs", "events")
    write_topic(tmp_path / "logs", "others")
    for topic in ("events", "others"):
        export(tmp_path / "logs", tmp_path / "table", subscribe=topic)
        with ParquetTarget.open(str(tmp_path / "table")) as target:
            found = from_notes(target.properties())
        assert found == ({"events": SMALL} if topic == "events" else {"events": SMALL, "others": SMALL})


def test_logs_without_metadata_or_with_damaged_ones_are_exported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_topic(tmp_path / "logs", "events")
    (metadata,) = (tmp_path / "logs" / "__cluster_metadata-0").glob("*.log")
    data = bytearray(metadata.read_bytes())
    data[100] ^= 1
    metadata.write_bytes(data)
    export(tmp_path / "logs", tmp_path / "table")
    assert len(rows(tmp_path / "table")) == 500
    assert [record.levelno for record in caplog.records if "configurations of topics" in record.message] == [
        logging.WARNING
    ]
    export(tmp_path / "logs" / "events-0", tmp_path / "alone")
    assert len(rows(tmp_path / "alone")) == 500


def test_records_are_kept_and_settings_for_several_replicas_are_left_out(caplog: pytest.LogCaptureFixture) -> None:
    config = {
        "cleanup.policy": "compact",
        "retention.ms": "1000",
        "retention.bytes": "1",
        "min.insync.replicas": "2",
        "remote.storage.enable": "true",
        "local.retention.ms": "5",
        "max.message.bytes": "2000",
        "of.another.vendor": "x",
    }
    assert restorable(config) == {"retention.ms": "-1", "cleanup.policy": "compact", "max.message.bytes": "2000"}
    assert "of.another.vendor" in caplog.text


@pytest.mark.parametrize("text", ["", "[]", '{"events": 1}', '{"events": {"a": 1}}', "\ud800"])
def test_other_notes_are_refused(text: str) -> None:
    with pytest.raises(BadTable, match="does not tell the configurations"):
        from_notes({"octavo.topic_configs": text})


def test_settings_of_other_topics_stay() -> None:
    notes = with_configs({"a": "b"}, {"events": {"x": "1"}, "others": {"y": "2"}})
    notes = with_configs(notes, {"events": {"x": "3"}})
    assert from_notes(notes) == {"events": {"x": "3"}, "others": {"y": "2"}}
    assert with_configs({"a": "b"}, {}) == {"a": "b"}
