"""Sequences over offsets that are committed as part of a transaction."""

from __future__ import annotations

from typing import Any

from tests.server.sequences.consumer_member import ConsumerMember
from tests.server.sequences.member import SHORT_MS, Admin, Member
from tests.server.sequences.producer import Producer
from tests.server.sequences.script import Script
from tests.server.sequences.sequence import sequence


@sequence()
def offsets_are_committed_with_a_transaction(s: Script) -> None:
    p, admin = Producer(s), Admin(s)
    admin.commit({0: 1, 1: 1})
    p.init()
    p.commit_offset(5)
    p.add_offsets()
    p.describe()
    p.commit_offset(5)
    admin.fetch_offsets()
    admin.fetch_offsets(stable=True)
    admin.fetch_offsets({s.topic: [0, 1]}, stable=True)
    admin.fetch_offsets({s.topic: [0, 1]}, version=7, stable=True)
    admin.commit({0: 2})
    admin.fetch_offsets({s.topic: [0]})
    p.end(commit=True)
    admin.fetch_offsets(stable=True)
    p.add_offsets()
    p.commit_offset(7)
    p.end(commit=False)
    admin.fetch_offsets(stable=True)


@sequence()
def offsets_of_version_2(s: Script) -> None:
    p, admin = Producer(s), Admin(s)
    p.init()
    p.commit_offset(5, version=5)
    p.describe()
    admin.fetch_offsets(stable=True)
    admin.describe()
    p.end(commit=True, version=5)
    admin.fetch_offsets(stable=True)
    old = p.epoch
    p.commit_offset(6, version=5, producer_epoch=old - 1)
    p.commit_offset(6, version=5, producer_epoch=old + 1)
    p.commit_offset(6, version=5)
    p.end(commit=False, version=5)
    admin.fetch_offsets(stable=True)


@sequence()
def offsets_of_members(s: Script) -> None:
    p, a, admin = Producer(s), Member(s, "a", "i"), Admin(s)
    a.join()
    p.init()
    p.add_offsets()
    mine: dict[str, Any] = {"member_id": a.id, "generation_id": a.generation, "group_instance_id": "i"}
    p.commit_offset(1, **mine)
    a.sync({a: b"all"})
    p.commit_offset(2, **mine)
    p.commit_offset(3, **(mine | {"generation_id": 0}))
    p.commit_offset(3, **(mine | {"generation_id": 9}))
    p.commit_offset(3, **(mine | {"generation_id": -1}))
    p.commit_offset(3, **(mine | {"member_id": "nobody"}))
    p.commit_offset(3, **(mine | {"member_id": ""}))
    p.commit_offset(3, **(mine | {"group_instance_id": None}))
    p.commit_offset(3, **(mine | {"group_instance_id": "nobody"}))
    p.commit_offset(3)
    p.commit_offset(3, version=2)
    p.commit_offset(3, group_id="")
    p.end(commit=True)
    admin.fetch_offsets(stable=True)


@sequence()
def offsets_of_consumers(s: Script) -> None:
    p, a, admin = Producer(s), ConsumerMember(s, "a"), Admin(s)
    a.join()
    p.init()
    p.commit_offset(1, version=5, member_id="a", generation_id=a.epoch)
    p.commit_offset(2, version=5, member_id="a", generation_id=a.epoch - 1)
    p.commit_offset(2, version=5, member_id="a", generation_id=a.epoch + 1)
    p.commit_offset(2, version=5, member_id="nobody", generation_id=a.epoch)
    p.commit_offset(2, version=5)
    admin.fetch_offsets(stable=True, member="a", epoch=a.epoch)
    p.end(commit=True, version=5)
    admin.fetch_offsets(stable=True)


@sequence()
def groups_with_pending_offsets_are_deleted(s: Script) -> None:
    p, admin = Producer(s), Admin(s)
    p.init()
    p.commit_offset(5, version=5)
    admin.list()
    admin.delete_offsets({s.topic: [0]})
    admin.fetch_offsets(stable=True)
    admin.delete()
    admin.fetch_offsets(stable=True)
    p.end(commit=True, version=5)
    admin.fetch_offsets(stable=True)
    admin.describe()


@sequence()
def offsets_are_added_wrongly(s: Script) -> None:
    p = Producer(s)
    p.add_offsets()
    p.init()
    p.add_offsets(producer_epoch=7)
    p.add_offsets(producer_id=999_999)
    p.add_offsets(transactional_id="")
    p.add_offsets(group="")
    p.add_offsets()
    p.add_offsets()
    p.describe()
    p.commit_offset(1, transactional_id="")
    p.commit_offset(1, producer_epoch=7)
    p.commit_offset(1, producer_id=999_999)
    p.end(commit=False)
    p.commit_offset(1)
    p.describe()


@sequence(restart_at=1)
def pending_offsets_of_a_transaction_that_takes_too_long(s: Script) -> None:
    p, admin = Producer(s), Admin(s)
    p.init(transaction_timeout_ms=SHORT_MS)
    p.commit_offset(5, version=5)
    p.describe_until("CompleteAbort")
    admin.fetch_offsets(stable=True)
    p.commit_offset(6, version=5)
    admin.describe()
