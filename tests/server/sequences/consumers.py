"""Sequences over groups of the consumer protocol (KIP-848): members, their epochs, and what they are assigned."""

from __future__ import annotations

from octavo.broker.wire import api_keys as keys
from tests.server.sequences.consumer_member import ConsumerMember
from tests.server.sequences.member import Admin
from tests.server.sequences.running import create_content
from tests.server.sequences.script import Script
from tests.server.sequences.sequence import sequence


@sequence(t=4)
def a_consumer_alone(s: Script) -> None:
    a, admin = ConsumerMember(s, "a"), Admin(s)
    admin.describe_consumers()
    a.beat(member_epoch=1)
    a.leave()
    a.join()
    admin.describe_consumers()
    a.beat()
    a.owning({"t": [0, 1, 2, 3]})
    a.beat()
    admin.describe_consumers(version=0)
    admin.describe()
    a.leave()
    admin.describe_consumers()
    a.beat()
    admin.list()


@sequence(t=4)
def epochs_that_are_older_or_newer(s: Script) -> None:
    a = ConsumerMember(s, "a")
    a.join()
    a.beat(member_epoch=a.epoch + 5)
    a.beat(member_epoch=a.epoch - 1)
    a.owning({"t": [0, 1, 2, 3]}, member_epoch=a.epoch - 1)
    a.join()
    a.beat(member_epoch=1)
    a.beat(member_epoch=-3)
    a.beat(member_epoch=-2)
    a.beat(member_id="nobody")
    a.beat(group_id="")
    a.beat(member_id="", version=1)
    a.beat()


@sequence(t=4)
def two_consumers_share(s: Script) -> None:
    a, b, admin = ConsumerMember(s, "a"), ConsumerMember(s, "b"), Admin(s)
    a.join()
    a.owning({"t": [0, 1, 2, 3]})
    b.join()
    admin.describe_consumers()
    a.beat()
    admin.describe_consumers()
    b.beat()
    a.beat()
    a.owning({"t": [0, 1, 2, 3]})
    a.owning({"t": [0, 1]})
    admin.describe_consumers()
    b.beat()
    b.owning({"t": [2, 3]})
    admin.describe_consumers()
    b.leave()
    b.beat()
    a.beat()
    a.owning({"t": [0, 1, 2, 3]})
    admin.describe_consumers()


@sequence(t=6)
def three_consumers_and_no_more(s: Script) -> None:
    members = [ConsumerMember(s, name) for name in "abcd"]
    admin = Admin(s)
    for each in members:
        each.join()
    admin.describe_consumers()
    members[0].owning({"t": [0, 1, 2, 3, 4, 5]})
    for each in members[:3]:
        each.beat()
    members[0].owning({"t": [0, 1]})
    for each in members[:3]:
        each.beat()
    admin.describe_consumers()


@sequence(t=2, u=2)
def a_subscription_changes(s: Script) -> None:
    a, admin = ConsumerMember(s, "a"), Admin(s)
    a.join()
    a.owning({"t": [0, 1]})
    a.beat(subscribed_topic_names=[s.topic, s.named("u")])
    a.owning({"t": [0, 1], "u": [0, 1]})
    admin.describe_consumers()
    a.beat(subscribed_topic_names=[s.named("u")])
    admin.describe_consumers()
    a.owning({"u": [0, 1]})
    admin.describe_consumers()
    a.beat(subscribed_topic_names=[])
    a.owning({})
    admin.describe_consumers()
    a.beat(subscribed_topic_names=[s.named("missing")])
    a.beat()
    admin.describe_consumers()


@sequence(t=2)
def heartbeats_that_are_refused(s: Script) -> None:
    a = ConsumerMember(s, "a")
    a.join(rebalance_timeout_ms=-1)
    a.join(topic_partitions=None)
    a.join(subscribed_topic_names=None)
    a.join(subscribed_topic_names=[""])
    a.join(instance_id="")
    a.join(rack_id="")
    a.join(server_assignor="nonsense")
    a.join(subscribed_topic_names=None, subscribed_topic_regex="a(")
    a.join(subscribed_topic_names=None, subscribed_topic_regex="(?=a)b")
    a.join(member_epoch=-2)
    a.join()
    a.beat(server_assignor="nonsense")
    a.beat(subscribed_topic_regex="a(")
    a.beat(member_epoch=-2, instance_id="i")
    a.beat(topic_partitions=[{"topic_id": b"q" * 16, "partitions": [0]}])
    a.beat()


@sequence(t=3, u=3)
def assignors(s: Script) -> None:
    a, b, c, admin = ConsumerMember(s, "a"), ConsumerMember(s, "b"), ConsumerMember(s, "c"), Admin(s)
    a.join("t", "u", server_assignor="range")
    b.join("t", "u")
    admin.describe_consumers()
    a.owning({})
    b.beat(server_assignor="uniform")
    admin.describe_consumers()
    c.join("t", server_assignor="uniform")
    admin.describe_consumers()
    a.beat()
    b.beat()
    c.beat()


@sequence(t=2)
def a_static_consumer_goes_and_returns(s: Script) -> None:
    a, b, admin = ConsumerMember(s, "a", "i"), ConsumerMember(s, "b", "i"), Admin(s)
    a.join()
    a.owning({"t": [0, 1]})
    b.join()
    a.leave(-2)
    admin.describe_consumers()
    a.beat()
    b.join()
    admin.describe_consumers()
    a.beat()
    a.beat(instance_id="other")
    b.beat()
    b.beat(instance_id="other")
    b.beat(instance_id=None)
    b.leave()
    admin.describe_consumers()


@sequence(t=2)
def a_static_consumer_returns_changed(s: Script) -> None:
    a, b, c = ConsumerMember(s, "a", "i"), ConsumerMember(s, "b", "i"), ConsumerMember(s, "c", "j")
    admin = Admin(s)
    a.join()
    c.join()
    a.owning({"t": [0]})
    a.leave(-2)
    c.beat()
    b.join(subscribed_topic_names=[])
    admin.describe_consumers()
    c.beat()
    c.owning({"t": [0, 1]})
    admin.describe_consumers()


@sequence(u1=2, u2=1)
def a_regular_expression(s: Script) -> None:
    a, admin = ConsumerMember(s, "a"), Admin(s)
    a.join(subscribed_topic_names=None, subscribed_topic_regex=f"{s.prefix}u.*")
    a.beat_until_assigned(3)
    admin.describe_consumers()
    a.owning({"u1": [0, 1], "u2": [0]})
    a.beat(subscribed_topic_regex="", subscribed_topic_names=[s.named("u2")])
    admin.describe_consumers()
    a.owning({"u2": [0]})
    admin.describe_consumers()
    a.leave()
    admin.describe_consumers()


@sequence(restart_at=1, u1=2, u2=1, v=1)  # expressions are resolved at most every 10 s
def several_regular_expressions(s: Script) -> None:
    a, b, admin = ConsumerMember(s, "a"), ConsumerMember(s, "b"), Admin(s)
    admin.describe_consumers()
    a.join(subscribed_topic_names=None, subscribed_topic_regex=f"{s.prefix}u.*")
    a.beat_until_assigned(3)
    b.join(subscribed_topic_names=[s.named("v")], subscribed_topic_regex=f"{s.prefix}u1")
    a.owning({"u1": [0, 1], "u2": [0]})
    b.beat()
    a.beat(subscribed_topic_regex="")
    admin.describe_consumers()
    a.leave()
    b.leave()
    admin.describe_consumers()


@sequence(t=1)
def topics_appear_and_grow(s: Script) -> None:
    a, admin = ConsumerMember(s, "a"), Admin(s)
    a.join("t", "new")
    created = admin.client.ask(keys.CREATE_TOPICS, 7, create_content({s.named("new"): 2}))
    if not isinstance(created, str):
        s.plain.topic_ids[s.named("new")] = created.topics[0].topic_id
    a.beat_until_assigned(3, subscribed_topic_names=[s.topic, s.named("new")])
    admin.describe_consumers()
    grown = {"topics": [{"name": s.topic, "count": 3, "assignments": None}], "timeout_ms": 5000, "validate_only": False}
    admin.client.ask(keys.CREATE_PARTITIONS, 3, grown)
    a.beat_until_assigned(5)
    admin.describe_consumers()


@sequence(t=2, u=1)
def a_topic_is_deleted(s: Script) -> None:
    a, admin = ConsumerMember(s, "a"), Admin(s)
    a.join("t", "u")
    a.owning({"t": [0, 1], "u": [0]})
    admin.commit({0: 5}, member_id="a", generation_id_or_member_epoch=a.epoch)
    admin.client.ask(keys.DELETE_TOPICS, 5, {"topic_names": [s.named("u")], "timeout_ms": 5000})
    a.beat_until_assigned(2)
    admin.describe_consumers()
    admin.fetch_offsets()


@sequence(t=4)
def racks_are_told(s: Script) -> None:
    a, b, admin = ConsumerMember(s, "a"), ConsumerMember(s, "b"), Admin(s)
    a.join(rack_id="east")
    b.join(rack_id="west")
    admin.describe_consumers()
    a.beat(rack_id="north")
    a.owning({"t": [0, 1]})
    admin.describe_consumers()


@sequence(t=2)
def consumers_commit(s: Script) -> None:
    a, admin = ConsumerMember(s, "a"), Admin(s)
    a.join()
    epoch = a.epoch
    for version in (9, 10):
        admin.commit({0: 5}, version=version, member_id="a", generation_id_or_member_epoch=epoch)
        admin.commit({0: 6}, version=version, member_id="a", generation_id_or_member_epoch=epoch - 1)
        admin.commit({0: 6}, version=version, member_id="a", generation_id_or_member_epoch=epoch + 1)
        admin.commit({0: 6}, version=version, member_id="nobody", generation_id_or_member_epoch=epoch)
        admin.commit({0: 6}, version=version)
        for member, told in (("a", epoch), ("a", epoch - 1), ("a", epoch + 1), ("nobody", epoch), ("", -1), (None, -1)):
            admin.fetch_offsets({s.topic: [0, 1]}, version=version, member=member, epoch=told)
    admin.commit({0: 6}, version=8, member_id="a", generation_id_or_member_epoch=epoch)
    admin.delete_offsets({s.topic: [0]})
    admin.delete()
    a.leave()
    admin.commit({0: 7})
    admin.fetch_offsets()
    admin.delete()
    admin.describe_consumers()


@sequence(t=2, u=2)
def commits_with_older_epochs(s: Script) -> None:
    a, admin = ConsumerMember(s, "a"), Admin(s)
    a.join()
    old = a.epoch
    a.owning({"t": [0, 1]})
    a.beat(subscribed_topic_names=[s.topic, s.named("u")])
    a.owning({"t": [0, 1], "u": [0, 1]})
    admin.commit({0: 5}, member_id="a", generation_id_or_member_epoch=old)
    partition = {"partition_index": 0, "committed_offset": 1, "committed_leader_epoch": -1, "committed_metadata": ""}
    newer = [{"name": s.named("u"), "partitions": [partition]}]
    admin.commit({}, member_id="a", generation_id_or_member_epoch=old, topics=newer)
    admin.commit({}, member_id="a", generation_id_or_member_epoch=a.epoch, topics=newer)
    admin.fetch_offsets()


@sequence(t=2)
def older_heartbeats_have_the_broker_choose_an_id(s: Script) -> None:
    a, admin = ConsumerMember(s, "a"), Admin(s)
    a.id = ""
    joined = a.join(version=0)
    if not isinstance(joined, str) and joined.error_code == 0:
        a.id = joined.member_id
    a.beat(version=0)
    admin.describe_consumers()
    a.leave()
