"""Members of classic groups leave, or are not heard of in time."""

from __future__ import annotations

from octavo.errors import ErrorCode
from tests.server.sequences.member import SHORT_MS, Admin, Member, leave
from tests.server.sequences.script import Script
from tests.server.sequences.sequence import sequence


@sequence()
def leaving_in_many_ways(s: Script) -> None:
    a, b, admin = Member(s, "a"), Member(s, "b"), Admin(s)
    leave(admin.client, s.group, ("nobody", None))
    leave(admin.client, s.group, ("nobody", None), version=2)
    a.join()
    leave(admin.client, s.group, (a.id, None))
    a.id = ""
    a.alone()
    b.join()
    leave(admin.client, s.group, ("nobody", None), (b.id, None), ("", "no instance"), (a.id, "no instance"))
    admin.describe()
    leave(admin.client, s.group, (a.id, None), (a.id, None))
    admin.describe()
    leave(admin.client, s.group, (a.id, None), version=1)
    leave(admin.client, "", (a.id, None))


@sequence()
def a_leader_leaves_while_another_waits(s: Script) -> None:
    a, b, admin = Member(s, "a"), Member(s, "b"), Admin(s)
    a.alone()
    b.join()
    b.send_join()
    a.heartbeat_until(ErrorCode.REBALANCE_IN_PROGRESS)
    a.leave()
    b.joined()
    admin.describe()
    b.sync({b: b"all"})
    admin.describe()


@sequence()
def a_member_leaves_while_the_leader_assigns(s: Script) -> None:
    a, b, admin = Member(s, "a"), Member(s, "b"), Admin(s)
    a.meet(b)
    b.send_sync()
    a.leave()
    b.client.receive()
    admin.describe()
    b.join()
    b.sync({b: b"all"})
    admin.describe()


@sequence()
def an_id_that_was_given_out_is_returned(s: Script) -> None:
    a, b, admin = Member(s, "a"), Member(s, "b"), Admin(s)
    a.join()
    b.join()
    leave(admin.client, s.group, (a.id, None))
    a.join()
    b.join()
    b.sync({b: b"all"})
    admin.describe()
    b.leave()
    admin.describe()
    admin.delete()
    admin.describe()


@sequence(restart_at=2)
def a_session_that_ends(s: Script) -> None:
    a, b, admin = Member(s, "a"), Member(s, "b"), Admin(s)
    a.alone()
    b.join(session_timeout_ms=SHORT_MS)
    b.send_join(session_timeout_ms=SHORT_MS)
    a.heartbeat_until(ErrorCode.REBALANCE_IN_PROGRESS)
    a.join()
    b.joined()
    a.sync({a: b"mine", b: b"yours"})
    a.heartbeat_until(ErrorCode.REBALANCE_IN_PROGRESS)
    admin.describe()
    a.join()
    a.sync({a: b"all"})
    b.heartbeat()
    admin.describe()


@sequence(restart_at=1)
def the_only_session_ends(s: Script) -> None:
    a, admin = Member(s, "a"), Admin(s)
    a.join(session_timeout_ms=SHORT_MS)
    a.join(session_timeout_ms=SHORT_MS)
    a.sync({a: b"all"})
    admin.describe_until("Empty")
    a.heartbeat()
    a.join()
    admin.describe()


@sequence(restart_at=3)
def a_member_that_does_not_come_back_in_time(s: Script) -> None:
    a, b, admin = Member(s, "a"), Member(s, "b"), Admin(s)
    a.alone(rebalance_timeout_ms=2 * SHORT_MS)
    b.join(rebalance_timeout_ms=SHORT_MS)
    b.join(rebalance_timeout_ms=SHORT_MS)
    admin.describe()
    a.heartbeat()
    b.sync({b: b"all"})
    admin.describe()


@sequence(restart_at=3)
def a_leader_that_does_not_assign_in_time(s: Script) -> None:
    a, admin = Member(s, "a"), Admin(s)
    a.enter(rebalance_timeout_ms=SHORT_MS)
    admin.describe_until("Empty")
    a.heartbeat()
    a.sync({a: b"all"})
    a.join()
    admin.describe()


@sequence(restart_at=2)
def an_id_that_is_not_used_in_time(s: Script) -> None:
    a, b, admin = Member(s, "a"), Member(s, "b"), Admin(s)
    b.alone()
    a.join(session_timeout_ms=SHORT_MS)
    admin.list()
    a.client.until(lambda each: each.error_code == ErrorCode.UNKNOWN_MEMBER_ID, 12, 4, a._beat())
    b.heartbeat()
    admin.describe()
