"""Groups go from one protocol to the other."""

from __future__ import annotations

from tests.server.sequences.consumer_member import ConsumerMember
from tests.server.sequences.member import Admin, Member, subscription
from tests.server.sequences.script import Script
from tests.server.sequences.sequence import sequence


@sequence(t=2)
def a_classic_group_becomes_one_of_consumers(s: Script) -> None:
    a, b, admin = Member(s, "a"), ConsumerMember(s, "b"), Admin(s)
    a.alone(protocols=[{"name": "range", "metadata": subscription(s.topic)}])
    b.join()
    admin.describe_consumers()
    admin.describe()
    admin.list()
    a.heartbeat()
    a.commit(1)
    a.leave()
    b.beat()
    admin.describe_consumers()


@sequence(t=2)
def an_empty_classic_group_becomes_one_of_consumers(s: Script) -> None:
    a, b, admin = Member(s, "a"), ConsumerMember(s, "b"), Admin(s)
    admin.commit({0: 3})
    a.alone()
    a.leave()
    b.join()
    admin.describe_consumers()
    admin.fetch_offsets()
    a.id = ""
    a.join()


@sequence(t=2)
def a_group_of_consumers_becomes_classic(s: Script) -> None:
    a, b, admin = ConsumerMember(s, "a"), Member(s, "b"), Admin(s)
    a.join()
    a.owning({"t": [0, 1]})
    b.join()
    a.leave()
    admin.describe_consumers()
    b.id = ""
    b.join()
    b.join()
    b.sync({b: b"all"})
    admin.describe()
    admin.list()
