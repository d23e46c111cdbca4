"""Mend 1.2: in a directory that Apache Kafka has served, settings are honoured, and no default deletes records."""

from __future__ import annotations

import argparse
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from octavo.cli import main
from octavo.cli.serve import add_to, settings_of
from octavo.errors import InvalidInput
from octavo.log import DataDirectory
from octavo.log.directory.member_directory import MemberDirectory, open_member
from octavo.log.metadata import MetadataStore
from octavo.log.storage import DISK
from octavo.schemas.metadata.nodes import RegisterBrokerRecord
from octavo.server.serving import Server, serve
from tests.golden.directories import unpack
from tests.retention import KEPT_FOR_NOW
from tests.server.conversation import Conversation
from tests.server.questions_configs import BROKER, SET, TOPIC, alter, describe
from tests.unit.log.logs import SMALL, TIME_MS, make_batch

_KAFKA: Final = RegisterBrokerRecord(
    broker_id=1, incarnation_id=uuid.uuid4(), broker_epoch=5, end_points=(), features=(), rack=None
)
_COUNT: Final = 30


def made(folder: Path, *, by_kafka: bool = True, **topics: Mapping[str, str]) -> Path:
    """A directory with records of long ago; settings of its topics by their names."""
    with DataDirectory.open(folder, clock=lambda: TIME_MS) as data:
        for topic, config in topics.items():
            data.create_topic(topic, config=SMALL | dict(config))
            for number in range(_COUNT):
                data.log(topic, 0).append(make_batch(first=number % 3))
    if by_kafka:
        store = MetadataStore.open([folder], storage=DISK, read_only=False)
        store.change_cluster([_KAFKA])
        store.close()
    return folder


def given_by(*arguments: str) -> dict[str, str]:
    """The settings that a command line of `octavo serve` gives."""
    parser = argparse.ArgumentParser()
    add_to(parser.add_subparsers())
    return settings_of(parser.parse_args(["serve", *arguments]))


def kept(said: list[str]) -> list[str]:
    return [each for each in said if "kept" in each]


def start(server: Server, topic: str) -> int:
    """Where a topic starts after a round of retention."""
    log = server.directory.log(topic, 0)
    log.apply_retention()
    return log.start_offset


def value(server: Server, kind: int, name: str, setting: str) -> str:
    with Conversation(server.bootstrap_servers) as conversation:
        [found] = conversation.ask(*describe(kind, name, [setting]))["results"][0]["configs"]
        return str(found["value"])


def test_what_a_topic_says_itself_is_done(tmp_path: Path) -> None:
    made(tmp_path, short={"retention.ms": "1000"}, small={"retention.bytes": "0"}, table={"cleanup.policy": "compact"})
    said: list[str] = []
    with serve(tmp_path, say=said.append) as server:
        assert start(server, "short") == _COUNT
        assert start(server, "small") == _COUNT
        table = server.directory.log("table", 0)
        table.roll()
        table.compact()
        assert len(list(table.reader().records())) == 3
    assert "of 1 topic(s)" in kept(said)[0]  # `small`, of which the default would now delete nothing


def test_no_default_deletes_and_each_start_names_what_it_would(tmp_path: Path) -> None:
    made(tmp_path, plain={}, policy={"cleanup.policy": "delete"}, table={"cleanup.policy": "compact"})
    size = sum(file.stat().st_size for file in (tmp_path / "plain-0").glob("*.log"))
    for config in (None, KEPT_FOR_NOW):  # a file of settings that does not give the retention changes nothing
        said: list[str] = []
        with serve(tmp_path, say=said.append, config=config) as server:
            assert start(server, "plain") == start(server, "policy") == 0
            assert value(server, BROKER, "1", "log.retention.ms") == "-1"
            assert value(server, TOPIC, "plain", "retention.ms") == "-1"
        assert f"{2 * size:,} bytes" in kept(said)[0]
        assert "--override" in kept(said)[0]
        assert f"plain ({size:,} bytes), policy ({size:,} bytes)" in kept(said)[1]


def test_a_damaged_log_does_not_keep_the_others_from_being_served(tmp_path: Path) -> None:
    """What the default would delete of it is not known."""
    made(tmp_path, broken={}, plain={})
    first, *_ = sorted((tmp_path / "broken-0").glob("*.log"))
    first.write_bytes(bytes(first.stat().st_size))
    said: list[str] = []
    with serve(tmp_path, say=said.append) as server:
        assert server.directory.log("plain", 0).end_offset == _COUNT
    assert "plain (" in kept(said)[1]
    assert "broken (" not in kept(said)[1]
    assert main(["handover", str(tmp_path)]) == 0


@pytest.mark.parametrize("name", ["log.retention.hours", "log.retention.minutes", "log.retention.ms"])
def test_given_retention_is_honoured(tmp_path: Path, name: str) -> None:
    made(tmp_path, plain={}, own={"retention.ms": "-1"})
    said: list[str] = []
    with serve(tmp_path, say=said.append, config=KEPT_FOR_NOW | {name: "1"}) as server:
        assert start(server, "plain") == _COUNT
        assert start(server, "own") == 0
    assert not kept(said)


def test_what_brokers_were_told_while_they_ran_goes_before_the_file(tmp_path: Path) -> None:
    made(tmp_path, plain={})
    with serve(tmp_path, config=KEPT_FOR_NOW | {"log.retention.ms": "-1"}) as server:
        with Conversation(server.bootstrap_servers) as conversation:
            conversation.ask(*alter(BROKER, "", ("log.retention.ms", SET, "5000")))
        assert start(server, "plain") == _COUNT
    said: list[str] = []
    with serve(tmp_path, say=said.append) as server:
        assert server.directory.log("plain", 0).config.retention_ms == 5000
    assert not kept(said)


def test_a_directory_of_our_own_has_the_defaults_at_once(tmp_path: Path) -> None:
    made(tmp_path, by_kafka=False, plain={})
    said: list[str] = []
    with serve(tmp_path, say=said.append) as server:
        assert start(server, "plain") == _COUNT
    assert not kept(said)


def test_what_kafka_keeps_for_itself_is_compacted(tmp_path: Path) -> None:
    with serve(unpack("closed", tmp_path)) as server:
        for topic in ("__consumer_offsets", "__transaction_state"):
            log = server.directory.log(topic, 0)
            log.roll()
            log.compact()
            assert log.cleaner_offset == log.end_offset


@pytest.mark.parametrize("is_formatted", [False, True])
def test_a_member_of_a_cluster_keeps_what_was_there_before_it(tmp_path: Path, *, is_formatted: bool) -> None:
    if is_formatted:
        (tmp_path / "bootstrap.checkpoint").touch()

    def member(config: dict[str, str]) -> MemberDirectory:
        return open_member(tmp_path, node_id=2, new_cluster_id=lambda: str(uuid.uuid4()), broker_config=config)

    with member({"process.roles": "broker"}) as directory:
        assert directory.assumed_settings == ({"log.retention.ms": "-1"} if is_formatted else {})
    with member({"process.roles": "broker", "log.retention.hours": "168"}) as directory:
        assert not directory.assumed_settings


def test_the_command_takes_a_file_and_overrides_as_kafkas_does(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("num.partitions=3\nlog.retention.hours=2\n")
    given = [str(file), "--override", "log.retention.hours=-1", "--override", "message.max.bytes=1000"]
    assert given_by(*given) == {
        "num.partitions": "3",
        "log.retention.hours": "-1",
        "message.max.bytes": "1000",
    }
    assert given_by("--override", "num.partitions=2") == {"num.partitions": "2"}
    for wrong in (["--override", "nothing"], [str(file), "--config", str(file)]):
        with pytest.raises(InvalidInput):
            given_by(*wrong)


def test_a_handover_names_what_kafkas_default_would_delete(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made(
        tmp_path,
        by_kafka=False,
        plain={},
        own={"retention.ms": "-1"},
        table={"cleanup.policy": "compact"},
        empty={},
    )
    size = sum(file.stat().st_size for file in (tmp_path / "plain-0").glob("*.log"))
    assert main(["handover", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert f"Kafka would delete {2 * size:,} bytes by its default of log.retention.hours=168" in printed
    assert f"plain ({size:,} bytes)" in printed
    assert "own (" not in printed
