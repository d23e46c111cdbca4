"""Nothing is deleted by guess: what Kafka's broker was told, its directory does not tell."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from pathlib import Path

import pytest

from octavo.errors import BadDirectory, InvalidConfig
from octavo.log import DataDirectory, Log
from octavo.log.metadata import MetadataStore
from octavo.log.storage import DISK
from octavo.schemas.metadata.nodes import RegisterBrokerRecord
from octavo.schemas.metadata.record import MetadataRecord
from octavo.schemas.metadata.topics import ConfigRecord
from tests.unit.log.directories import left_as_it_was
from tests.unit.log.logs import TIME_MS, make_batch

SMALL = {"internal.segment.bytes": "1000"}
LATER_MS = TIME_MS + 100 * 24 * 60 * 60 * 1000
ALL_THREE = {"cleanup.policy": "delete", "retention.ms": "1000", "retention.bytes": "-1"}
BROKER = RegisterBrokerRecord(
    broker_id=1, incarnation_id=uuid.uuid4(), broker_epoch=5, end_points=(), features=(), rack=None
)


def make(folder: Path, config: Mapping[str, str], *records: MetadataRecord) -> None:
    """A directory of one topic, to whose metadata a controller has added."""
    with DataDirectory.open(folder, clock=lambda: TIME_MS) as data:
        data.create_topic("events", config=SMALL | dict(config))
        for number in range(30):
            data.log("events", 0).append(make_batch(first=number))
    store = MetadataStore.open([folder], storage=DISK, read_only=False)
    if records:
        store._append(records)


def told(name: str, value: str, *, broker: str = "") -> ConfigRecord:
    return ConfigRecord(resource_type=4, resource_name=broker, name=name, value=value)


def deletes(log: Log) -> bool:
    return bool(log.apply_retention(LATER_MS))


def is_known(log: Log) -> bool:
    return log.config_is_known


def test_our_own_directories_have_kafkas_defaults(tmp_path: Path) -> None:
    make(tmp_path, {})
    with DataDirectory.open(tmp_path, clock=lambda: TIME_MS) as data:
        log = data.log("events", 0)
        assert log.config_is_known
        assert log.config.retention_ms == 7 * 24 * 60 * 60 * 1000
        assert deletes(log)


def test_where_kafka_has_run_its_defaults_are_not_believed(tmp_path: Path) -> None:
    make(tmp_path, {}, BROKER)
    with DataDirectory.open(tmp_path, clock=lambda: TIME_MS) as data:
        log = data.log("events", 0)
        assert not log.config_is_known
        assert log.config.segment_bytes == 1000
        assert not deletes(log)
        log.config = log.config.with_properties({"flush.ms": "100"})  # says nothing of retention
        assert not deletes(log)
        data.create_topic("more")
        assert not data.log("more", 0).config_is_known
    with Log.open(tmp_path / "events-0") as log:
        assert not log.config_is_known


@pytest.mark.parametrize("missing", [None, *ALL_THREE])
def test_a_topic_that_sets_all_itself_is_known(tmp_path: Path, missing: str | None) -> None:
    make(tmp_path, {name: value for name, value in ALL_THREE.items() if name != missing}, BROKER)
    with DataDirectory.open(tmp_path, clock=lambda: TIME_MS) as data:
        assert data.log("events", 0).config_is_known == (missing is None)
        assert deletes(data.log("events", 0)) == (missing is None)


def test_what_is_set_here_makes_a_topic_known_when_it_is_all(tmp_path: Path) -> None:
    make(tmp_path, {}, BROKER)
    with DataDirectory.open(tmp_path, clock=lambda: TIME_MS) as data:
        log = data.log("events", 0)
        data.set_config("events", {"retention.ms": "1000"})
        assert not is_known(log)
        data.set_config("events", {"retention.bytes": "-1"})
        assert not is_known(log)
        assert log.config.retention_ms == 1000
        assert not deletes(log)
        data.set_config("events", {"cleanup.policy": "delete"})
        assert is_known(log)
        data.set_config("events", {"retention.ms": None})
        assert not is_known(log)
        data.set_config("events", {"retention.ms": "1000"})
        assert deletes(log)


def test_what_brokers_were_told_while_they_ran_counts(tmp_path: Path) -> None:
    make(
        tmp_path,
        {"retention.bytes": "-1"},
        BROKER,
        told("log.cleanup.policy", "delete"),
        told("log.retention.ms", "5000"),
        told("log.retention.ms", "4000", broker="1"),
        told("log.retention.ms", "3000", broker="2"),
    )
    with DataDirectory.open(tmp_path, clock=lambda: TIME_MS) as data:
        log = data.log("events", 0)
        assert log.config_is_known
        assert log.config.retention_ms == 4000
    with DataDirectory.open(tmp_path, read_only=True) as watched:
        assert watched.log("events", 0).config.retention_ms == 4000


def test_it_counts_also_where_no_broker_is_registered(tmp_path: Path) -> None:
    make(tmp_path, {}, told("log.retention.ms", "-1"))
    with DataDirectory.open(tmp_path, clock=lambda: TIME_MS) as data:
        assert data.log("events", 0).config_is_known
        assert not deletes(data.log("events", 0))


@pytest.mark.parametrize(
    ("settings", "retention_ms"),
    [
        ({}, 7 * 24 * 60 * 60 * 1000),
        ({"log.retention.hours": "2"}, 2 * 60 * 60 * 1000),
        ({"log.retention.hours": "2", "log.retention.minutes": "3"}, 3 * 60 * 1000),
        ({"log.retention.hours": "2", "log.retention.minutes": "3", "log.retention.ms": "4"}, 4),
        ({"log.retention.hours": "-1"}, -1),
        ({"log.dirs": "/somewhere", "node.id": "1"}, 7 * 24 * 60 * 60 * 1000),
    ],
)
def test_server_properties_make_all_known(tmp_path: Path, settings: dict[str, str], retention_ms: int) -> None:
    make(tmp_path, {}, BROKER)
    settings |= {"log.index.interval.bytes": "123", "log.segment.bytes": "2000000"}
    with DataDirectory.open(tmp_path, broker_config=settings, clock=lambda: TIME_MS) as data:
        log = data.log("events", 0)
        assert log.config_is_known
        assert log.config.retention_ms == retention_ms
        assert log.config.index_interval_bytes == 123
        assert log.config.segment_bytes == 1000  # which the topic has itself
        data.set_config("events", {"flush.messages": "10"})
        assert log.config_is_known
        assert log.config.retention_ms == retention_ms


@pytest.mark.parametrize("settings", [{"log.retention.hours": "many"}, {"log.cleanup.policy": "keep"}])
def test_server_properties_that_kafka_would_not_take_are_refused(tmp_path: Path, settings: dict[str, str]) -> None:
    make(tmp_path, {}, BROKER)
    with left_as_it_was(tmp_path), pytest.raises(InvalidConfig):
        DataDirectory.open(tmp_path, broker_config=settings)


def test_what_may_be_compacted_may_have_gaps(tmp_path: Path) -> None:
    make(tmp_path, ALL_THREE, BROKER)
    sorted((tmp_path / "events-0").glob("*.log"))[1].unlink()
    with pytest.raises(BadDirectory, match="may_have_gaps"):
        DataDirectory.open(tmp_path)
    store = MetadataStore.open([tmp_path], storage=DISK, read_only=False)
    store.set_config("events", {"cleanup.policy": None})
    with DataDirectory.open(tmp_path) as data:
        assert data.log("events", 0).end_offset == 30
    with pytest.raises(BadDirectory, match="may_have_gaps"):
        DataDirectory.open(tmp_path, broker_config={})
    with DataDirectory.open(tmp_path, broker_config={"log.cleanup.policy": "compact"}) as data:
        assert data.log("events", 0).config.is_compacted


@pytest.mark.parametrize("missing", [None, "delete.retention.ms", "min.compaction.lag.ms"])
def test_a_compacted_topic_is_known_by_what_lets_its_tombstones_and_records_go(
    tmp_path: Path, missing: str | None
) -> None:
    settings = {"cleanup.policy": "compact", "delete.retention.ms": "1000", "min.compaction.lag.ms": "0"}
    make(tmp_path, {name: value for name, value in settings.items() if name != missing}, BROKER)
    with DataDirectory.open(tmp_path, clock=lambda: TIME_MS) as data:
        assert data.log("events", 0).config_is_known == (missing is None)
