"""Sequences over static members of classic groups: they come back under their instance id, and fence one another."""

from __future__ import annotations

from octavo.errors import ErrorCode
from tests.server.sequences.member import SHORT_MS, Admin, Member, leave, subscription
from tests.server.sequences.script import Script
from tests.server.sequences.sequence import sequence


@sequence()
def a_static_member_comes_back(s: Script) -> None:
    a, again, admin = Member(s, "a", "i"), Member(s, "a", "i"), Admin(s)
    a.join()
    a.sync({a: b"all"})
    admin.describe()
    again.join()
    admin.describe()
    again.heartbeat()
    again.sync()
    a.heartbeat()
    a.commit(5)
    a.sync()
    a.leave()
    admin.describe()


@sequence()
def a_static_member_comes_back_to_another_leader(s: Script) -> None:
    a, b, again, admin = Member(s, "a", "i"), Member(s, "b", "j"), Member(s, "b", "j"), Admin(s)
    a.join()
    a.sync({a: b"all"})
    b.send_join()
    a.heartbeat_until(ErrorCode.REBALANCE_IN_PROGRESS)
    a.join()
    b.joined()
    a.sync({a: b"mine", b: b"yours"})
    b.sync()
    again.join()
    again.sync()
    a.heartbeat()
    admin.describe()


@sequence()
def a_static_member_comes_back_with_another_subscription(s: Script) -> None:
    a, again, admin = Member(s, "a", "i"), Member(s, "a", "i"), Admin(s)
    a.join()
    a.sync({a: b"all"})
    again.join(protocols=[{"name": "range", "metadata": subscription("other")}])
    admin.describe()
    again.sync({again: b"all"})
    admin.describe()


@sequence()
def static_members_with_wrong_ids(s: Script) -> None:
    a, admin = Member(s, "a", "i"), Admin(s)
    a.join(member_id="nobody")
    a.join()
    a.sync({a: b"all"})
    a.join(group_instance_id="other")
    a.join(member_id="nobody")
    a.heartbeat(group_instance_id=None)
    a.heartbeat(group_instance_id="other")
    a.heartbeat(member_id="nobody")
    a.commit(1, group_instance_id="other")
    a.commit(1, member_id="nobody")
    a.commit(1, group_instance_id=None)
    a.sync({a: b"all"}, member_id="nobody")
    admin.describe()


@sequence()
def static_members_leave(s: Script) -> None:
    a, b, admin = Member(s, "a", "i"), Member(s, "b", "j"), Admin(s)
    a.join()
    a.sync({a: b"all"})
    b.send_join()
    a.heartbeat_until(ErrorCode.REBALANCE_IN_PROGRESS)
    a.join()
    b.joined()
    leave(admin.client, s.group, ("nobody", "i"))
    leave(admin.client, s.group, ("", "nobody"), ("", "j"))
    admin.describe()
    a.join()
    leave(admin.client, s.group, ("", "i"))
    admin.describe()
    leave(admin.client, s.group, ("", "i"))


@sequence(restart_at=1)
def a_static_member_stays_until_its_session_ends(s: Script) -> None:
    a, again, admin = Member(s, "a", "i"), Member(s, "a", "i"), Admin(s)
    admin.describe()
    a.join(session_timeout_ms=SHORT_MS)
    a.sync({a: b"all"})
    again.join(session_timeout_ms=SHORT_MS)
    admin.describe_until("Empty")
    again.heartbeat()
    again.join()
    admin.describe()


@sequence()
def a_static_member_comes_back_while_others_join(s: Script) -> None:
    a, b, again, admin = Member(s, "a", "i"), Member(s, "b", "j"), Member(s, "b", "j"), Admin(s)
    a.join()
    a.sync({a: b"all"})
    b.send_join()
    a.heartbeat_until(ErrorCode.REBALANCE_IN_PROGRESS)
    again.send_join()
    b.joined()
    a.join()
    again.joined()
    a.sync({a: b"mine", again: b"yours"})
    again.sync()
    b.heartbeat()
    admin.describe()


@sequence()
def old_versions_know_no_instances(s: Script) -> None:
    a, admin = Member(s, "a", "i"), Admin(s)
    a.join(version=5)
    a.sync({a: b"all"}, version=3)
    admin.describe(version=4)
    leave(admin.client, s.group, ("", "i"), version=3)
    admin.describe(version=5)
