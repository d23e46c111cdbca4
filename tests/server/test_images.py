"""The broker knows the topics of its directory, whatever interrupts their changes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from octavo.broker.broker import Broker
from octavo.broker.wire.api_keys import METADATA
from octavo.log.directory.data_directory import DataDirectory
from octavo.log.log import Log
from octavo.server.serving import Server, serve
from tests.server.conversation import Conversation


@pytest.fixture
def server() -> Iterator[Server]:
    with serve() as server:
        yield server


def names(server: Server) -> list[str]:
    content = {"topics": None, "allow_auto_topic_creation": False, "include_topic_authorized_operations": False}
    return [topic.name for topic in Conversation(server.bootstrap_servers).raw_answer(METADATA, 9, content).topics]


def interrupting(monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    """Have the next call of this method of the broker be interrupted."""

    def interrupt(*_: object) -> None:
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(Broker, method, interrupt)


@pytest.mark.parametrize("method", ["metadata_changed", "_make_image", "_be_poked"])
def test_an_interrupt_while_the_image_is_replaced(server: Server, monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    interrupting(monkeypatch, method)
    with pytest.raises(KeyboardInterrupt):
        server.directory.create_topic("events")
    assert names(server) == ["events"]


def test_an_interrupt_while_settings_are_read(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupting(monkeypatch, "_read_settings")
    with pytest.raises(KeyboardInterrupt):
        server.directory.set_broker_config("", {"max.connections": "1234"})
    assert names(server) == []
    assert server.broker.config.max_connections == 1234


def test_a_log_is_never_that_of_another_topic_of_the_same_name(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    old = server.directory.create_topic("events").id.bytes
    really = DataDirectory.log

    def slowly(directory: DataDirectory, *wanted: Any) -> Log:
        monkeypatch.undo()
        directory.delete_topic("events")
        directory.create_topic("events")
        return really(directory, *wanted)

    monkeypatch.setattr(DataDirectory, "log", slowly)
    found = server.broker.led_log("events", 0)
    assert not isinstance(found, int)
    assert found.topic.id == server.directory.topics["events"].id.bytes != old
    assert found.log is server.directory.log("events", 0)
