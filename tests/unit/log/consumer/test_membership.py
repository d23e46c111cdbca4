"""Consumers of one process share partitions in a group."""

from __future__ import annotations

import dataclasses
import gc
import re
import shutil
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from octavo.coordinator.groups.config import GroupConfig
from octavo.coordinator.groups.consumer.group import ConsumerGroup, ConsumerMember
from octavo.coordinator.groups.consumer.requests import LEAVE_EPOCH, ConsumerHeartbeatAnswer, ConsumerHeartbeatRequest
from octavo.errors import ConsumerError, CoordinatorRefused, ErrorCode, MemberFenced, WrongGroup, WrongProcess
from octavo.log import DataDirectory, Log
from octavo.log.consumer import Consumer, OffsetAndMetadata
from octavo.log.coordinator.coordinator import group_hosts
from octavo.log.coordinator.member import Member
from octavo.log.names import TopicPartition
from tests.crash.storage import FastStorage
from tests.unit.log.consumer.parts import T0, T1, numbers, opened, write
from tests.unit.log.forks import run_in_fork
from tests.unit.log.waiting import until

GROUP = {"group.id": "g", "auto.offset.reset": "earliest"}
QUICK = GroupConfig(group_consumer_heartbeat_interval_ms=1, group_consumer_assignment_interval_ms=0)


@pytest.fixture
def data(tmp_path: Path) -> Iterator[DataDirectory]:
    with opened(tmp_path) as data:
        yield data


def members(data: DataDirectory, group_id: str = "g") -> dict[str, ConsumerMember]:
    """What the coordinator knows of the members of a group."""

    def ask(shard: Any) -> dict[str, ConsumerMember]:
        group = shard.groups.get(group_id)
        return dict(group.members) if isinstance(group, ConsumerGroup) else {}

    return group_hosts(data).host_for(group_id).ask(ask)


def throw_out(data: DataDirectory, consumer: Consumer) -> None:
    """Have the coordinator forget a member, as after a session time-out."""
    request = ConsumerHeartbeatRequest("g", consumer.memberid() or "", LEAVE_EPOCH)
    assert group_hosts(data).heartbeat(request).error_code is ErrorCode.NONE


class Seen:
    """What the callbacks of a consumer were called with."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, list[TopicPartition]]] = []

    def __getattr__(self, name: str) -> Callable[[Consumer, list[TopicPartition]], None]:
        return lambda consumer, partitions: self.calls.append((name, partitions))

    @property
    def arguments(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("on_assign", "on_revoke", "on_lost")}


def test_two_consumers_share_a_topic_and_one_gets_all_again(data: DataDirectory) -> None:
    write(data.log(*T0), 0, 20)
    write(data.log(*T1), 100, 20)
    seen = Seen()
    with Consumer(data, GROUP) as first:
        first.subscribe(["t"], **seen.arguments)
        assert first.assignment() == [T0, T1]
        assert len(first.poll(max_records=5)) == 5
        assert len(first.poll(max_records=30)) == 30
        with Consumer(data, GROUP) as second:
            second.subscribe(["t"])
            assert second.assignment() == []  # nobody takes anything away from the first one
            until(lambda: first.poll() == [] and len(first.assignment()) == 1)
            until(lambda: second.poll() == [] and len(second.assignment()) == 1)
            assert sorted(first.assignment() + second.assignment()) == [T0, T1]
            (gone,) = second.assignment()
            assert seen.calls == [("on_assign", [T0, T1]), ("on_revoke", [gone])]
            write(data.log(*T0), 20, 1)
            write(data.log(*T1), 120, 1)
            found = Counter(numbers(first.poll()) + numbers(second.poll()))
            assert {20, 120} <= set(found)
        assert members(data).keys() == {first.memberid()}
        until(lambda: first.poll() == [] and first.assignment() == [T0, T1])
        assert seen.calls[2:] == [("on_assign", [gone])]
    assert seen.calls[3:] == [("on_revoke", [T0, T1])]
    assert members(data) == {}
    assert data.coordinator.committed("g") == {T0: OffsetAndMetadata(21, "", 0), T1: OffsetAndMetadata(21, "", 0)}


def test_every_record_is_read_once_while_consumers_come_and_go(tmp_path: Path) -> None:
    partitions, each = 6, 400
    with DataDirectory.open(tmp_path, storage=FastStorage()) as data:
        data.create_topic("t", partitions)
        found: list[tuple[int, int]] = []
        lock = threading.Lock()
        is_written = threading.Event()

        def consume(most: int | None) -> None:
            read = 0
            with Consumer(data, GROUP) as consumer:
                consumer.subscribe(["t"])
                while most is None or read < most:
                    records = consumer.poll(timeout=0.01, max_records=7)
                    read += len(records)
                    with lock:
                        found.extend((record.partition, record.offset) for record in records)
                        if not records and is_written.is_set() and len(found) >= partitions * each:
                            return

        threads = [threading.Thread(target=consume, args=(most,)) for most in (None, None, 100, 200, 300)]
        for thread in threads:
            thread.start()
        for number in range(each // 10):
            for partition in range(partitions):
                write(data.log("t", partition), number * 10, 10)
            if number == 20:
                threads.append(threading.Thread(target=consume, args=(150,)))
                threads[-1].start()
        is_written.set()
        for thread in threads:
            thread.join()
        assert max(Counter(found).values()) == 1
        assert sorted(found) == [(partition, offset) for partition in range(partitions) for offset in range(each)]


def test_a_member_that_was_thrown_out_is_told_and_joins_again(data: DataDirectory) -> None:
    write(data.log(*T0), 0, 20)
    seen = Seen()
    with Consumer(data, GROUP) as consumer:
        consumer.subscribe(["t"], **seen.arguments)
        consumer.poll(max_records=5)
        consumer.commit()
        consumer.poll(max_records=5)
        throw_out(data, consumer)
        with pytest.raises(MemberFenced, match="no longer a member of group 'g'"):
            consumer.commit()
        assert consumer.committed([T0]) == {T0: OffsetAndMetadata(5, "", 0)}
        assert numbers(consumer.poll(max_records=3)) == [5, 6, 7]  # from the last commit on
        assert seen.calls == [("on_assign", [T0, T1]), ("on_lost", [T0, T1]), ("on_assign", [T0, T1])]
        consumer.commit()
        assert consumer.committed([T0]) == {T0: OffsetAndMetadata(8, "", 0)}
        throw_out(data, consumer)
    assert data.coordinator.committed("g", [T0]) == {T0: OffsetAndMetadata(8, "", 0)}  # closing commits nothing then


def test_without_on_lost_partitions_are_revoked(data: DataDirectory) -> None:
    seen = Seen()
    with Consumer(data, GROUP) as consumer:
        consumer.subscribe(["t"], on_revoke=seen.on_revoke)
        throw_out(data, consumer)
        until(lambda: consumer.poll() == [] and len(seen.calls) > 0)
        assert seen.calls == [("on_revoke", [T0, T1])]


def test_who_does_not_poll_for_too_long_leaves_and_comes_back(data: DataDirectory) -> None:
    group_hosts(data).configure(QUICK)
    seen = Seen()
    with Consumer(data, GROUP, max_poll_interval_ms=50) as consumer:
        consumer.subscribe(["t"], **seen.arguments)
        until(lambda: members(data) == {})
        with pytest.raises(MemberFenced):
            consumer.commit({T0: 0})
        until(lambda: consumer.poll() == [] and len(seen.calls) > 2)
        assert seen.calls[:3] == [("on_assign", [T0, T1]), ("on_lost", [T0, T1]), ("on_assign", [T0, T1])]


def test_who_does_not_poll_stays_while_it_may(data: DataDirectory) -> None:
    group_hosts(data).configure(QUICK)
    with Consumer(data, GROUP) as consumer:
        consumer.subscribe(["t"])
        notice = consumer._notice
        for _ in range(5):  # heartbeats go on
            notice.is_there = False
            until(lambda: notice.is_there)
        assert members(data).keys() == {consumer.memberid()}


def test_callbacks_may_use_the_consumer(data: DataDirectory) -> None:
    write(data.log(*T0), 0, 20)
    committed = []

    def seek(consumer: Consumer, partitions: list[TopicPartition]) -> None:
        if T0 in partitions:
            consumer.seek(T0, 15)

    def commit(consumer: Consumer, partitions: list[TopicPartition]) -> None:
        assert set(partitions) <= set(consumer.assignment())
        consumer.commit({partition: consumer.position(partition) for partition in partitions})
        committed.extend(partitions)

    with Consumer(data, GROUP, enable_auto_commit=False) as consumer:
        consumer.subscribe(["t"], on_assign=seek, on_revoke=commit)
        assert numbers(consumer.poll(max_records=2)) == [15, 16]
    assert committed == [T0, T1]
    assert data.coordinator.committed("g", [T0]) == {T0: OffsetAndMetadata(17)}


def test_a_revocation_that_fails_is_repeated(data: DataDirectory) -> None:
    calls = []

    def fail_once(consumer: Consumer, partitions: list[TopicPartition]) -> None:
        calls.append(partitions)
        if len(calls) == 1:
            raise KeyboardInterrupt

    with Consumer(data, GROUP) as first, Consumer(data, GROUP) as second:
        first.subscribe(["t"], on_revoke=fail_once)
        second.subscribe(["t"])

        def poll_both() -> bool:
            first.poll()
            second.poll()
            return len(first.assignment()) == len(second.assignment()) == 1

        with pytest.raises(KeyboardInterrupt):
            until(poll_both)
        assert first.assignment() == [T0, T1]
        until(poll_both)
        assert calls[0] == calls[1]


def test_a_callback_may_close_the_consumer(data: DataDirectory) -> None:
    consumer = Consumer(data, GROUP)
    consumer.subscribe(["t"], on_assign=lambda consumer, partitions: consumer.close())
    assert consumer.memberid() is None
    assert members(data) == {}


def test_a_subscription_may_change_and_end(data: DataDirectory) -> None:
    data.create_topic("u")
    other = TopicPartition("u", 0)
    with Consumer(data, GROUP) as consumer:
        consumer.subscribe(["t"])
        member_id = consumer.memberid()
        consumer.subscribe(["u"])
        assert (consumer.assignment(), consumer.memberid()) == ([other], member_id)
        with pytest.raises(ConsumerError, match="unsubscribe first"):
            consumer.assign([T0])
        consumer.unsubscribe()
        assert (consumer.assignment(), consumer.memberid(), members(data)) == ([], None, {})
        consumer.assign([T0])
        with pytest.raises(ConsumerError, match="unsubscribe first"):
            consumer.subscribe(["t"])
        assert members(data) == {}


def test_topics_come_and_go(data: DataDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("octavo.log.consumer.membership.LOOK_AGAIN_S", 0)
    seen = Seen()
    with Consumer(data, GROUP) as consumer, Consumer(data, GROUP, group_id="h") as by_name:
        consumer.subscribe(pattern=re.compile("t[0-9]*"), **seen.arguments)
        by_name.subscribe(["t7"])
        assert (consumer.assignment(), by_name.assignment()) == ([T0, T1], [])
        data.create_topic("t7")
        data.create_topic("tx")
        later = TopicPartition("t7", 0)
        write(data.log(*later), 0, 3)
        assert numbers(consumer.poll()) == numbers(by_name.poll()) == [0, 1, 2]
        assert seen.calls[1:] == [("on_assign", [later])]
        data.delete_topic("t7")
        data.create_topic("t7")
        write(data.log(*later), 10, 3)
        assert numbers(consumer.poll()) == numbers(by_name.poll()) == [10, 11, 12]  # from the beginning of the new one
        data.delete_topic("t7")
        assert consumer.poll() == by_name.poll() == []
        assert (consumer.assignment(), by_name.assignment()) == ([T0, T1], [])


def test_an_assignor_and_an_instance_id(data: DataDirectory) -> None:
    with Consumer(data, GROUP, group_instance_id="one", group_remote_assignor="range", client_id="c") as consumer:
        consumer.subscribe(["t"])
        (member,) = members(data).values()
        assert (member.instance_id, member.server_assignor, member.client_id) == ("one", "range", "c")
        assert (member.client_host, member.rebalance_timeout_ms) == ("/in-process", 300_000)
        second = Consumer(data, GROUP, group_instance_id="one")
        with pytest.raises(CoordinatorRefused, match="instance id is owned by") as refused:
            second.subscribe(["t"])
        assert refused.value.code is ErrorCode.UNRELEASED_INSTANCE_ID
        assert (second.subscription(), second.memberid()) == (None, None)
    assert [member.member_epoch for member in members(data).values()] == [-2]  # it is away, and will come back
    with Consumer(data, GROUP, group_instance_id="one") as again, Consumer(data, GROUP) as another:
        another.subscribe(["t"])
        assert another.assignment() == []
        again.subscribe(["t"])
        assert len(again.assignment()) == 1
    other = Consumer(data, GROUP, group_remote_assignor="none")
    with pytest.raises(CoordinatorRefused, match="Supported assignors: uniform, range"):
        other.subscribe(["t"])


def test_only_members_may_commit(data: DataDirectory) -> None:
    with Consumer(data, GROUP) as consumer, Consumer(data, GROUP) as outside:
        consumer.subscribe(["t"])
        outside.assign([T0])
        with pytest.raises(WrongGroup, match="has members, who alone may commit"):
            outside.commit({T0: 1})
        consumer.commit({T0: 1})
    with Consumer(data, GROUP) as outside:
        outside.assign([T0])
        outside.commit({T0: 2})


def test_a_consumer_that_nobody_closes_leaves_nevertheless(data: DataDirectory) -> None:
    consumer = Consumer(data, GROUP)
    consumer.subscribe(["t"])
    assert len(members(data)) == 1
    del consumer
    gc.collect()
    until(lambda: members(data) == {})


def test_closing_the_directory_leaves_all_groups(tmp_path: Path) -> None:
    with opened(tmp_path) as data:
        forgotten = Consumer(data, GROUP)
        forgotten.subscribe(["t"])
    with opened(tmp_path) as data:
        assert members(data) == {}
    forgotten.close()


def test_members_of_a_process_that_was_killed_are_removed(tmp_path: Path) -> None:
    with opened(tmp_path / "data") as data:
        write(data.log(*T0), 0, 20)
        first, second = Consumer(data, GROUP), Consumer(data, GROUP, group_instance_id="one")
        first.subscribe(["t"])
        first.poll(max_records=5)
        first.commit()
        second.subscribe(["t"])
        killed = shutil.copytree(tmp_path / "data", tmp_path / "killed", ignore=shutil.ignore_patterns(".lock"))
    with opened(killed) as data, Consumer(data, GROUP, group_instance_id="one") as consumer:
        assert [member.member_epoch for member in members(data).values()] == [-2]
        consumer.subscribe(["t"])
        assert consumer.assignment() == [T0, T1]
        assert numbers(consumer.poll(max_records=2)) == [5, 6]  # from the commit on


def test_members_stay_when_the_state_is_loaded_again(data: DataDirectory) -> None:
    with Consumer(data, GROUP) as consumer:
        consumer.subscribe(["t"])
        group_hosts(data).host_for("g").resign()
        assert members(data).keys() == {consumer.memberid()}
        consumer.commit({T0: 0})


def test_a_join_whose_answer_was_lost_is_taken_back(data: DataDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(member: Member, answer: object) -> None:
        if threading.current_thread() is threading.main_thread():  # not in that of the members
            raise KeyboardInterrupt

    consumer = Consumer(data, GROUP)
    with monkeypatch.context() as patched:
        patched.setattr(Member, "_take_notice", interrupted)
        with pytest.raises(KeyboardInterrupt):
            consumer.subscribe(["t"])
    until(lambda: members(data) == {})
    consumer.subscribe(["t"])
    assert consumer.assignment() == [T0, T1]
    consumer.close()


def test_a_fork_is_no_member(data: DataDirectory) -> None:
    with Consumer(data, GROUP) as consumer:
        consumer.subscribe(["t"])
        assert run_in_fork(consumer.poll).startswith(WrongProcess.__name__)
        assert run_in_fork(consumer.close) == "None"
        assert members(data).keys() == {consumer.memberid()}
        consumer.commit({T0: 0})


def test_a_cluster_without_the_protocol_says_so(data: DataDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DataDirectory, "feature_level", lambda self, name: 0)
    with Consumer(data, GROUP) as consumer:
        with pytest.raises(ConsumerError, match=r"group.version is 0.* or assign\(\)"):
            consumer.subscribe(["t"])
        consumer.assign([T0])
        consumer.commit({T0: 0})


def test_a_topic_that_is_not_in_the_metadata_is_named(tmp_path: Path) -> None:
    with Log.open(tmp_path / "x-0", storage=FastStorage()) as log:
        write(log, 0, 3)
    with DataDirectory.open(tmp_path, storage=FastStorage()) as data, Consumer(data, GROUP) as consumer:
        with pytest.raises(
            ConsumerError, match=r"'x', which is not in the metadata: add it by set_config\('x', \{\}\)"
        ):
            consumer.subscribe(["x", "unknown"])
        assert consumer.subscription() is None
        data.set_config("x", {})
        consumer.subscribe(["x", "unknown"])
        assert numbers(consumer.poll()) == [0, 1, 2]


def test_time_passes_for_other_members_where_nobody_serves(data: DataDirectory) -> None:
    topic_id = data.topics["t"].id

    def other(epoch: int, owned: dict[UUID, list[int]]) -> ConsumerHeartbeatAnswer:
        request = ConsumerHeartbeatRequest("g", "other", epoch, None, None, 50, ["t"], None, None, owned)
        return group_hosts(data).heartbeat(request)

    joined = other(0, {})
    assert joined.assignment == {topic_id: [0, 1]}
    with Consumer(data, GROUP) as consumer:
        consumer.subscribe(["t"])
        assert consumer.assignment() == []
        other(joined.member_epoch, {topic_id: [0, 1]})  # it has to give one back within 50 ms, and does not
        until(lambda: consumer.poll() == [] and consumer.assignment() == [T0, T1])
        assert members(data).keys() == {consumer.memberid()}


def test_an_error_of_a_heartbeat_is_raised_by_the_next_poll(data: DataDirectory) -> None:
    group_hosts(data).configure(QUICK)
    with Consumer(data, GROUP, group_remote_assignor="range") as consumer:
        consumer.subscribe(["t"])
        group_hosts(data).adopt(dataclasses.replace(QUICK, group_consumer_assignors=("uniform",)))

        def poll() -> bool:
            consumer.poll()
            return False

        with pytest.raises(CoordinatorRefused, match="ServerAssignor range is not supported"):
            until(poll)
        group_hosts(data).adopt(QUICK)
        with suppress(CoordinatorRefused):  # of the heartbeat before
            consumer.poll()
        consumer.commit({T0: 0})
