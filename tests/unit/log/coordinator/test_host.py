"""`Host`: what a shard writes gets to the log, and nobody waits for what cannot be written."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

from octavo.coordinator.groups.classic.requests import JoinRequest
from octavo.coordinator.groups.config import GroupConfig
from octavo.coordinator.groups.consumer.requests import ConsumerHeartbeatRequest
from octavo.coordinator.groups.group_shard import GroupShard
from octavo.errors import AppendRefused, BadDirectory, ErrorCode, UnknownPartition
from octavo.log import DataDirectory, Log
from octavo.log.append.readiness import without_pause
from octavo.log.coordinator import host as host_module
from octavo.log.coordinator.coordinator import group_hosts
from octavo.log.coordinator.host import Host
from octavo.log.origin import Origin
from octavo.records import BatchBuilder
from octavo.schemas.consumer_offsets.classic_groups import GroupMetadataKey
from octavo.schemas.versioned import write_key
from tests.clock import Clock
from tests.crash.storage import FastStorage

LONG = 600_000  # bytes of user data: two members have more than a record may have


def _join(shard: GroupShard, group_id: str, member_id: str, answers: list[Any], user_data: bytes = b"") -> None:
    metadata = struct.pack(">hii", 0, 0, len(user_data)) + user_data
    request = JoinRequest(
        group_id, member_id, "consumer", (("range", metadata),), 1_800_000, 60_000, None, "c", "/h", False
    )
    shard.join(answers.append, request)


def _hosting(data: DataDirectory) -> Host[GroupShard]:
    groups = group_hosts(data)
    groups.configure(GroupConfig())
    return groups.host_for("g")


def test_a_record_that_is_too_large_stops_no_other_group(tmp_path: Path) -> None:
    monotonic = Clock()
    with DataDirectory.open(tmp_path, storage=FastStorage(), monotonic=monotonic) as data:
        host = _hosting(data)
        answers: list[Any] = []
        joining = ConsumerHeartbeatRequest("big", "m", 0, None, None, 1000, ["t"], None, None, {})
        host.run(lambda shard: shard.consumer.heartbeat(joining))
        host.run(lambda shard: _join(shard, "big", "k0", answers, bytes(LONG)))
        host.run(lambda shard: _join(shard, "big", "k1", answers, bytes(LONG)))
        assert [each.error_code for each in answers] == [ErrorCode.NONE] * 2
        monotonic.now_ms += 45_000  # the session of "m": the others go on by the classic protocol, in one record
        host.run(lambda shard: _join(shard, "other", "", answers))
        monotonic.now_ms += 3_000  # the delay of the first generation
        with pytest.raises(AppendRefused, match="MESSAGE_TOO_LARGE"):
            host.tick()
        assert (answers[-1].error_code, answers[-1].generation_id) == (ErrorCode.NONE, 1)
        assert host.next_ms is not None
        assert host.next_ms > monotonic.now_ms


def test_who_waits_is_answered_if_everything_is_loaded_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with DataDirectory.open(tmp_path, storage=FastStorage()) as data:
        host = _hosting(data)
        answers: list[Any] = []
        host.run(lambda shard: _join(shard, "g", "", answers))
        assert answers == []

        def interrupted(*_: object, **__: object) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr(Log, "append", interrupted)
            with pytest.raises(KeyboardInterrupt):
                host.run(lambda shard: _join(shard, "another", "", []))
        host.load()
        assert [each.error_code for each in answers] == [ErrorCode.NOT_COORDINATOR]


def test_damage_is_looked_for_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with DataDirectory.open(tmp_path, storage=FastStorage()) as data:
        host = _hosting(data)
        builder = BatchBuilder()
        builder.append(write_key(GroupMetadataKey(group="g")), b"\0\3 and no more", timestamp_ms=0)
        host.log.append(builder.build(), origin=Origin.COORDINATOR)
        with pytest.raises(BadDirectory, match="what is before offset 1 cannot be read"):
            host.load()
        with monkeypatch.context() as patched:
            patched.setattr(host_module, "replay", None)
            with pytest.raises(BadDirectory, match="what is before offset 1 cannot be read"), without_pause():
                host.run(lambda shard: shard.delete_group("g"))


def test_nobody_coordinates_while_the_topic_is_being_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with DataDirectory.open(tmp_path, storage=FastStorage()) as data:
        groups = group_hosts(data)
        assert groups.find_host("g") is None
        groups.partition_for("g")

        def is_gone(topic: str, partition: int) -> Log:
            raise UnknownPartition(topic, partition)

        with monkeypatch.context() as patched:
            patched.setattr(data, "log", is_gone)
            assert groups.find_host("g") is None
        assert groups.find_host("g") is not None
