"""Sequences over classic groups: members join, are assigned partitions, and are alive."""

from __future__ import annotations

from octavo.errors import ErrorCode
from tests.server.sequences.member import Admin, Member, subscription
from tests.server.sequences.script import Script
from tests.server.sequences.sequence import sequence


@sequence()
def a_member_alone(s: Script) -> None:
    a, admin = Member(s, "a"), Admin(s)
    admin.describe()
    a.join()
    admin.describe()
    a.join()
    admin.describe()
    a.heartbeat()
    a.sync({a: b"all"})
    admin.describe()
    a.heartbeat()
    a.leave()
    admin.describe()
    a.heartbeat()
    a.sync()
    admin.list()


@sequence()
def old_versions_join_without_an_id_first(s: Script) -> None:
    a, admin = Member(s, "a"), Admin(s)
    a.join(version=0)
    a.sync({a: b"all"}, version=0)
    a.heartbeat(version=0)
    a.join(version=3)
    admin.describe(version=0)
    a.sync({a: b"all"}, version=2)
    admin.describe(version=3)
    a.leave(version=0)
    admin.describe(version=5)


@sequence()
def a_join_with_an_id_that_nobody_gave_out(s: Script) -> None:
    a, admin = Member(s, "a"), Admin(s)
    a.join(member_id="nobody")
    admin.describe()
    a.alone()
    b = Member(s, "b")
    b.join(member_id="nobody")
    a.heartbeat()
    admin.describe()


@sequence()
def a_second_member_has_the_first_come_back(s: Script) -> None:
    a, b, admin = Member(s, "a"), Member(s, "b"), Admin(s)
    a.alone()
    b.join()
    admin.describe()
    b.send_join()
    a.heartbeat_until(ErrorCode.REBALANCE_IN_PROGRESS)
    admin.describe()
    a.commit(5)
    a.sync()
    a.send_join()
    a.joined()
    b.joined()
    admin.describe()
    b.heartbeat()
    b.send_sync()
    a.sync({a: b"mine", b: b"yours"})
    b.client.receive()
    admin.describe()
    b.leave()
    a.heartbeat_until(ErrorCode.REBALANCE_IN_PROGRESS)
    a.join()
    a.sync({a: b"all again"})
    admin.describe()


@sequence()
def the_follower_asks_for_its_assignment_after_the_leader(s: Script) -> None:
    a, b, admin = Member(s, "a"), Member(s, "b"), Admin(s)
    a.meet(b)
    a.sync({a: b"mine", b: b"yours"})
    admin.describe()
    b.sync()
    b.sync({a: b"changed", b: b"changed"})
    a.sync({a: b"changed", b: b"changed"})
    admin.describe()


@sequence()
def a_sync_that_does_not_fit(s: Script) -> None:
    a, admin = Member(s, "a"), Admin(s)
    a.sync()
    a.enter()
    a.sync({a: b"x"}, generation_id=7)
    a.sync({a: b"x"}, member_id="nobody")
    a.sync({a: b"x"}, protocol_name="roundrobin")
    a.sync({a: b"x"}, protocol_type="connect")
    a.sync({a: b"x"}, group_instance_id="nobody")
    a.sync({a: b"x"}, protocol_name=None, protocol_type=None)
    admin.describe()
    a.sync({a: b"y"}, generation_id=0)
    a.sync(member_id="")
    a.sync(group_id="")


@sequence()
def a_leader_that_assigns_nothing(s: Script) -> None:
    a, b, admin = Member(s, "a"), Member(s, "b"), Admin(s)
    a.meet(b)
    b.send_sync()
    a.sync({})
    b.client.receive()
    admin.describe()


@sequence()
def a_leader_that_comes_back_begins_a_rebalance(s: Script) -> None:
    a, admin = Member(s, "a"), Admin(s)
    a.alone()
    a.join()
    a.heartbeat()
    a.join()
    a.sync({a: b"all"})
    a.join(protocols=[{"name": "range", "metadata": subscription("changed")}])
    admin.describe()
    a.sync({a: b"all"})
    admin.describe()


@sequence()
def a_follower_that_comes_back_unchanged_is_answered_at_once(s: Script) -> None:
    a, b = Member(s, "a"), Member(s, "b")
    a.meet(b)
    a.sync({a: b"mine", b: b"yours"})
    b.sync()
    b.join()
    b.sync()
    b.send_join(protocols=[{"name": "range", "metadata": subscription("changed")}])
    a.heartbeat_until(ErrorCode.REBALANCE_IN_PROGRESS)
    a.join()
    b.joined()


@sequence()
def a_heartbeat_in_every_state(s: Script) -> None:
    a, b = Member(s, "a"), Member(s, "b")
    a.heartbeat()
    a.heartbeat(member_id="")
    a.heartbeat(group_id="")
    a.join()
    a.heartbeat()
    a.join()
    a.heartbeat()
    a.heartbeat(generation_id=9)
    a.sync({a: b"all"})
    a.heartbeat()
    a.heartbeat(generation_id=0)
    a.heartbeat(generation_id=2)
    a.heartbeat(member_id="nobody")
    a.heartbeat(group_instance_id="nobody")
    b.join()
    b.heartbeat()
    b.send_join()
    a.heartbeat_until(ErrorCode.REBALANCE_IN_PROGRESS)
    a.heartbeat(generation_id=9)
    a.join()
    b.joined()
    a.heartbeat()
    b.heartbeat()


@sequence()
def protocols_that_do_not_fit(s: Script) -> None:
    a, b, admin = Member(s, "a"), Member(s, "b"), Admin(s)
    a.join(protocols=[])
    a.join(protocol_type="")
    a.join(protocol_type="", protocols=[])
    admin.describe()
    a.alone()
    b.join(protocol_type="connect")
    b.join(protocols=[{"name": "roundrobin", "metadata": subscription()}])
    b.join(protocols=[])
    a.join(protocol_type="connect")
    a.join(protocols=[{"name": "roundrobin", "metadata": subscription()}])
    admin.describe()


@sequence()
def the_protocol_that_most_prefer(s: Script) -> None:
    a, b, admin = Member(s, "a"), Member(s, "b"), Admin(s)
    both = [{"name": "range", "metadata": subscription("1")}, {"name": "sticky", "metadata": subscription("2")}]
    a.enter(protocols=both)
    b.join(protocols=both[::-1])
    b.send_join(protocols=both[::-1])
    a.heartbeat_until(ErrorCode.REBALANCE_IN_PROGRESS)
    a.join(protocols=both[::-1])
    b.joined()
    a.sync({a: b"mine", b: b"yours"}, protocol_name="sticky")
    b.sync(protocol_name="sticky")
    admin.describe()
    b.send_join(protocols=both[:1])
    a.heartbeat_until(ErrorCode.REBALANCE_IN_PROGRESS)
    a.join(protocols=both)
    b.joined()
    admin.describe()


@sequence()
def times_that_are_not_allowed(s: Script) -> None:
    a = Member(s, "a")
    a.join(session_timeout_ms=99)
    a.join(session_timeout_ms=1_800_001)
    a.join(session_timeout_ms=-1)
    a.join(session_timeout_ms=1_800_000)
    a.join(group_id="")
    a.join(group_id="", version=1)
    a.join(rebalance_timeout_ms=-1, group_id=s.named("other"), member_id="", version=3)
    a.join(group_id=s.named("third"), member_id="", group_instance_id="")


@sequence()
def a_group_that_is_full(s: Script) -> None:
    a, b, c, d = (Member(s, name) for name in "abcd")
    admin = Admin(s)
    a.alone()
    b.join()
    b.send_join()
    a.heartbeat_until(ErrorCode.REBALANCE_IN_PROGRESS)
    c.join()
    c.send_join()
    admin.describe_until("PreparingRebalance", members=3)
    a.join()
    b.joined()
    c.joined()
    d.join()
    d.join()
    a.sync({a: b"1", b: b"2", c: b"3"})
    d.join()
    admin.describe()
    c.leave()
    d.join()
    admin.describe()
