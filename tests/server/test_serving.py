"""Starting and stopping a broker, in a program and by the command."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

import octavo
from octavo.errors import DirectoryLocked, InvalidConfig, InvalidInput
from octavo.log import DataDirectory
from octavo.log.background import Background
from octavo.log.names import CLEAN_SHUTDOWN
from tests.server.questions import batch

PATIENCE_S = 60


def produce(address: str, topic: str, *values: bytes) -> None:
    producer = Producer({"bootstrap.servers": address})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(PATIENCE_S) == 0


def consume(address: str, topic: str, count: int) -> list[bytes | None]:
    consumer = Consumer({"bootstrap.servers": address, "group.id": "none", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    messages = consumer.consume(count, PATIENCE_S)
    consumer.close()
    return [message.value() for message in messages]


def test_what_was_produced_is_there_after_a_restart(tmp_path: Path) -> None:
    with octavo.serve(tmp_path / "data") as broker:
        produce(broker.bootstrap_servers, "events", b"one", b"two")
        with pytest.raises(DirectoryLocked):
            octavo.serve(tmp_path / "data")
    assert (tmp_path / "data" / CLEAN_SHUTDOWN).exists()
    with octavo.serve(tmp_path / "data") as broker:
        assert consume(broker.bootstrap_servers, "events", 2) == [b"one", b"two"]
    with DataDirectory.open(tmp_path / "data") as data:
        assert data.log("events", 0).end_offset == 2


def test_a_temporary_directory_is_removed() -> None:
    with octavo.serve() as broker:
        produce(broker.bootstrap_servers, "events", b"one")
        (folder,) = broker.directory.folders
        assert folder.exists()
    assert not folder.parent.exists()


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        ({"num.partitions": "0"}, "num.partitions cannot be '0'"),
        ({"sasl.enabled.mechanisms": "PLAIN"}, "it would protect the broker"),
        ({"remote.log.storage.system.enable": "true"}, "there is no remote storage here"),
        ({"listeners": "SASL_SSL://:9092"}, "only PLAINTEXT is served, not SASL_SSL"),
        ({"listeners": "PLAINTEXT://here"}, "is no address"),
        ({"log.retention.ms": "soon"}, "log.retention.ms cannot be"),
    ],
)
def test_settings_that_cannot_be_honoured_are_refused(config: dict[str, str], sentence: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidConfig, match=sentence):
        octavo.serve(tmp_path / "data", config=config)
    assert not (tmp_path / "data").exists() or not list((tmp_path / "data").glob("*-0"))


def test_settings_are_honoured(tmp_path: Path) -> None:
    config = {"num.partitions": "3", "log.retention.ms": "1234", "num.io.threads": "8"}
    said: list[str] = []
    with octavo.serve(tmp_path / "data", config=config, say=said.append) as broker:
        assert broker.warnings == said == ["settings without effect: num.io.threads"]
        produce(broker.bootstrap_servers, "events", b"one")
        assert len(broker.directory.topics["events"].partitions) == 3
        assert broker.directory.log("events", 0).config.retention_ms == 1234


def test_checkpoints_are_written_as_often_as_the_settings_say(monkeypatch: pytest.MonkeyPatch) -> None:
    intervals_ms = []

    class Recorded(Background):
        def __init__(self, *args: Any, checkpoint_interval_ms: int, **others: Any) -> None:
            intervals_ms.append(checkpoint_interval_ms)
            super().__init__(*args, checkpoint_interval_ms=checkpoint_interval_ms, **others)

    monkeypatch.setattr("octavo.server.serving.Background", Recorded)
    for config in ({}, {"replica.high.watermark.checkpoint.interval.ms": "5000"}):
        octavo.serve(config=config).close()
    assert intervals_ms == [400, 5000]


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidInput, match="is no address"):
        octavo.serve(listen="here")


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_the_command_serves_until_it_is_told_to_stop(how: signal.Signals, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "octavo.cli", "serve", "--data", str(tmp_path / "data")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().rstrip().rpartition(" ")[2]
        produce(address, "events", b"one")
        assert consume(address, "events", 1) == [b"one"]
        process.send_signal(how)
        _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0
    assert errors == "octavo: stopping\n"
    assert (tmp_path / "data" / CLEAN_SHUTDOWN).exists()


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="the system has no IPv6")
def test_all_interfaces_of_ipv6_are_those_of_ipv4_too(tmp_path: Path) -> None:
    config = {"listeners": "PLAINTEXT://[::]:0", "max.connections.per.ip.overrides": "127.0.0.1:0"}
    with octavo.serve(tmp_path / "data", config=config) as broker:
        port = int(broker.bootstrap_servers.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as refused:
            assert refused.recv(1) == b""  # it has its limit by its address of IPv4


def test_what_opening_has_found_is_said(tmp_path: Path) -> None:
    data, copy = tmp_path / "data", tmp_path / "copy"
    with octavo.serve(data) as broker:
        broker.directory.create_topic("events", partitions=5)
        for number in range(5):
            broker.directory.log("events", number).append(batch(b"one"))
        broker.directory.write_checkpoints()
        shutil.copytree(data, copy)  # as a crash would leave it
    said: list[str] = []
    with octavo.serve(data, say=said.append):
        pass
    assert said == []
    for number in range(5):
        with (copy / f"events-{number}" / "00000000000000000000.log").open("ab") as file:
            file.write(b"half a batch")
    (copy / "log-start-offset-checkpoint").write_text("rubbish")
    with octavo.serve(copy, say=said.append) as broker:
        assert broker.directory.log("events", 0).end_offset == 1
    assert [each.partition(":")[0] for each in said] == [
        "log-start-offset-checkpoint could not be used, and is written anew",
        "the directory had not been closed cleanly",
        "events-0",
        "events-1",
        "events-2",
        "2 more partition(s) were cut off, or have files that could not be used",
    ]
    assert "cut 12 bytes off 00000000000000000000.log" in said[2]
