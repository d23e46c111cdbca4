"""Sequences over committed offsets, and over groups as administrators see them."""

from __future__ import annotations

from octavo.errors import ErrorCode
from tests.server.sequences.consumer_member import ConsumerMember
from tests.server.sequences.member import Admin, Member
from tests.server.sequences.script import Script
from tests.server.sequences.sequence import sequence


@sequence()
def a_simple_consumer_commits(s: Script) -> None:
    admin = Admin(s)
    admin.commit({0: 5, 1: 7})
    admin.describe()
    admin.list()
    admin.fetch_offsets({s.topic: [0, 1, 2], s.named("missing"): [0]})
    admin.fetch_offsets()
    admin.commit({0: 3, 9: 1})
    admin.commit({0: -5})
    admin.fetch_offsets({s.topic: [0]}, version=1)
    admin.fetch_offsets(version=5, stable=True)
    admin.commit({0: 1}, generation_id_or_member_epoch=0)
    admin.commit({0: 1}, generation_id_or_member_epoch=3)
    admin.commit({0: 1}, member_id="nobody")
    admin.commit({0: 1}, group_instance_id="nobody")
    admin.fetch_offsets()
    admin.delete()
    admin.fetch_offsets()
    admin.describe()


@sequence()
def nobody_has_committed(s: Script) -> None:
    admin = Admin(s)
    for version in (1, 5, 7, 8, 9, 10):
        admin.fetch_offsets({s.topic: [0]}, version=version)
    admin.fetch_offsets()
    admin.fetch_offsets(group="")
    admin.fetch_offsets(member="nobody", epoch=1)
    admin.commit({0: 1}, generation_id_or_member_epoch=1)
    admin.commit({0: 1}, generation_id_or_member_epoch=1, version=8)
    admin.commit({0: 1}, generation_id_or_member_epoch=1, version=10)
    admin.delete_offsets({s.topic: [0]})
    admin.delete()
    admin.describe("")
    admin.describe(version=5)
    admin.describe_consumers()
    admin.describe_consumers("")


@sequence()
def commits_in_every_state(s: Script) -> None:
    a, b, admin = Member(s, "a"), Member(s, "b"), Admin(s)
    a.join()
    a.commit(1)
    a.commit(1, generation_id_or_member_epoch=0)
    a.join()
    a.commit(2)
    admin.commit({0: 2})
    a.sync({a: b"all"})
    a.commit(3)
    a.commit(3, generation_id_or_member_epoch=0)
    a.commit(3, generation_id_or_member_epoch=2)
    a.commit(3, generation_id_or_member_epoch=-1)
    a.commit(3, member_id="nobody")
    a.commit(3, member_id="", generation_id_or_member_epoch=-1)
    a.commit(3, group_instance_id="nobody")
    b.join()
    b.send_join()
    a.heartbeat_until(ErrorCode.REBALANCE_IN_PROGRESS)
    a.commit(4)
    a.commit(4, generation_id_or_member_epoch=0)
    a.join()
    b.joined()
    a.commit(5)
    b.commit(6)
    a.leave()
    b.leave()
    a.commit(7)
    admin.commit({0: 8})
    admin.fetch_offsets()


@sequence()
def metadata_and_old_retention(s: Script) -> None:
    admin = Admin(s)
    big = {"partition_index": 0, "committed_offset": 1, "committed_leader_epoch": 7, "committed_metadata": "x" * 4097}
    fits = {**big, "partition_index": 1, "committed_metadata": "x" * 4096}
    topics = [{"name": s.topic, "topic_id": s.topic_id(), "partitions": [big, fits]}]
    admin.commit({}, topics=topics)
    admin.commit({0: 2}, version=2, retention_time_ms=3_600_000)
    admin.commit({1: 3}, version=3, retention_time_ms=-1)
    admin.fetch_offsets()
    admin.fetch_offsets(version=4)


@sequence(t=2, u=1)
def offsets_are_deleted(s: Script) -> None:
    a, admin = Member(s, "a"), Admin(s)
    admin.commit({0: 1, 1: 2})
    admin.delete_offsets({s.topic: [0, 7], s.named("missing"): [0]})
    admin.fetch_offsets()
    a.alone()
    admin.delete_offsets({s.topic: [1], s.named("u"): [0]})
    admin.fetch_offsets()
    a.leave()
    admin.delete_offsets({s.topic: [1]})
    admin.fetch_offsets()
    admin.describe()
    admin.delete_offsets({s.topic: [1]}, group="")


@sequence()
def offsets_of_members_that_are_no_consumers(s: Script) -> None:
    a, admin = Member(s, "a"), Admin(s)
    connect = {"protocol_type": "connect", "protocols": [{"name": "v1", "metadata": b"anything"}]}
    a.enter(**connect)
    a.sync({a: b"all"}, protocol_type="connect", protocol_name="v1")
    a.commit(1)
    admin.delete_offsets({s.topic: [0]})
    admin.describe()
    admin.list()
    a.leave()
    admin.delete_offsets({s.topic: [0]})
    admin.delete()


@sequence()
def groups_are_deleted(s: Script) -> None:
    a, admin = Member(s, "a"), Admin(s)
    admin.delete(s.group, s.named("other"))
    a.join()
    admin.delete()
    a.join()
    admin.delete()
    a.sync({a: b"all"})
    a.commit(4)
    admin.delete(s.group, s.group, s.named("other"))
    a.leave()
    admin.describe()
    admin.delete(s.group, s.named("other"))
    admin.describe()
    admin.fetch_offsets()
    a.heartbeat()
    a.id = ""
    a.alone()
    admin.fetch_offsets()


@sequence()
def groups_are_listed(s: Script) -> None:
    a, admin = Member(s, "a"), Admin(s)
    consumer = ConsumerMember(s, "c")
    a.enter()
    other = Admin(s)
    other.commit({0: 1}, group_id=s.named("simple"))
    consumer.join(group_id=s.named("consumers"))
    for version in range(6):
        admin.list(version=version)
    admin.list(["Empty"])
    admin.list(["CompletingRebalance", "stable"])
    admin.list(["STABLE"], version=4)
    admin.list(["nonsense"])
    admin.list(types=["classic"])
    admin.list(types=["Consumer"])
    admin.list(["Stable"], types=["consumer", "classic"])
    admin.list(types=["nonsense"])
    admin.describe(s.group, s.named("simple"), s.named("consumers"), s.named("missing"))
    admin.describe(s.group, s.named("consumers"), s.named("missing"), version=5)
    admin.describe_consumers(s.group, s.named("simple"), s.named("consumers"), s.named("missing"))


@sequence()
def commits_with_topic_ids(s: Script) -> None:
    a, admin = Member(s, "a"), Admin(s)
    a.alone()
    a.commit(4, version=10)
    admin.fetch_offsets({s.topic: [0, 1]}, version=10)
    admin.fetch_offsets(version=10)
    offset = {"partition_index": 0, "committed_offset": 1, "committed_leader_epoch": -1, "committed_metadata": ""}
    a.commit(5, version=10, topics=[{"topic_id": b"q" * 16, "name": "", "partitions": [offset]}])
    admin.fetch_offsets({"missing": [0], s.topic: [0]}, version=10)
