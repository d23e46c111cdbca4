"""Sequences for brokers with other settings: transactional ids expire soon, and groups may not become of any kind."""

from __future__ import annotations

from typing import Final

from octavo.broker.wire import api_keys as keys
from octavo.errors import ErrorCode
from tests.server.sequences.consumer_member import ConsumerMember
from tests.server.sequences.member import Admin, Member
from tests.server.sequences.producer import Producer
from tests.server.sequences.script import Script
from tests.server.sequences.sequence import Sequence

EXPIRING: Final = {
    "transactional.id.expiration.ms": "500",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "20",
}


def expire(p: Producer) -> None:
    """Wait until the transactional id is forgotten."""
    p.client.until(
        lambda each: each.transaction_states[0].error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
        keys.DESCRIBE_TRANSACTIONS,
        0,
        {"transactional_ids": [p.transactional_id]},
    )


def an_id_that_expires(s: Script) -> None:
    p = Producer(s)
    p.init()
    expire(p)
    p.list()
    p.add(0)
    p.add_batched(0, verify=True)
    p.add_batched(0, verify=False)
    p.add_offsets()
    p.commit_offset(5)
    p.commit_offset(5, version=5)
    p.produce("a")
    p.produce("b", version=12)
    p.end(commit=True)
    p.end(commit=True, version=5)
    p.end(commit=False, version=5)
    p.describe_producers(0)
    p.fetch()
    p.init(producer_id=p.id, producer_epoch=p.epoch)  # the producer goes on, with another id
    p.list()


def an_id_that_expires_after_a_transaction(s: Script) -> None:
    p, old = Producer(s), Producer(s, "old")
    p.init()
    p.produce("a", version=12)
    p.end(commit=True, version=5)
    old.id, old.epoch = p.id, p.epoch
    expire(p)
    p.end(commit=True, version=5)
    p.produce("b", version=12)
    p.init()
    old.produce("c", version=12)
    old.end(commit=False, version=5)
    old.add(0)
    p.fetch()
    p.fetch(committed=False)


def an_open_transaction_keeps_its_id(s: Script) -> None:
    p, other = Producer(s), Producer(s, "other", "other")
    p.init()
    p.produce("a", version=12)
    other.init()
    expire(other)
    p.describe()
    p.end(commit=True, version=5)
    p.fetch()
    expire(p)
    p.fetch()


def a_stable_classic_group_is_joined_by_a_consumer(s: Script) -> None:
    a, b, admin = Member(s, "a"), ConsumerMember(s, "b"), Admin(s)
    a.alone()
    b.join()
    admin.list()
    a.heartbeat()
    b.leave()
    admin.describe()
    a.leave()
    b.join()  # an empty group may always become another
    admin.describe_consumers()
    b.leave()
    admin.list()


def a_group_of_consumers_is_joined_by_a_classic_member(s: Script) -> None:
    a, b, admin = ConsumerMember(s, "a"), Member(s, "b"), Admin(s)
    a.join()
    b.join()
    b.join()
    admin.list()
    a.leave()
    admin.list()
    b.heartbeat()
    b.leave()
    admin.list()


def an_empty_group_of_consumers_becomes_classic(s: Script) -> None:
    a, b, admin = ConsumerMember(s, "a"), Member(s, "b"), Admin(s)
    a.join()
    a.leave()
    b.enter()
    admin.list()


SEQUENCES: Final = [
    Sequence(run.__name__, run, {"t": 2}, None)
    for run in (
        an_id_that_expires,
        an_id_that_expires_after_a_transaction,
        an_open_transaction_keeps_its_id,
        a_stable_classic_group_is_joined_by_a_consumer,
        a_group_of_consumers_is_joined_by_a_classic_member,
        an_empty_group_of_consumers_becomes_classic,
    )
]
