"""Compare the coordinators of `octavo serve` with Apache Kafka's: the same requests to both, by turns.

plan, raw_load.c    the load generator, which is the same for both brokers
classic, consumer   groups with very many members: rebalances and heartbeats
offsets             committed offsets
transactions        transactions of both protocol versions
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from statistics import median
from typing import Final

from benchmarks.broker.passes import Pass, take_turns
from benchmarks.broker.served import Pair, Served, both
from benchmarks.broker.throughput import Targets
from benchmarks.groups import offsets, transactions
from benchmarks.groups.classic import ClassicGroup
from benchmarks.groups.consumer import ConsumerGroup
from benchmarks.measure import Result, tell

_MEMBERS: Final = 1_000
_CONNECTIONS: Final = 8  # for offsets and transactions
_TOPIC: Final = "events"
_SETTINGS: Final = {
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.assignment.interval.ms": "0",  # nobody waits on purpose
    "group.consumer.session.timeout.ms": "60000",  # the longest that is allowed
    "socket.listen.backlog.size": "2000",  # or 1,000 connections at once would have to be tried again a second later
    # Kafka's defaults, which its broker of the tests does not have.
    "offsets.topic.num.partitions": "50",
    "transaction.state.log.num.partitions": "50",
}
PARTS: Final = ("classic", "consumer", "commits", "transactions")


def run(*, repeat: int, quick: bool = False, only: Sequence[str] = ()) -> list[Result]:
    """Run the parts that are named, or all of them; `quick` asks a tenth, and has a tenth of the members."""
    parts = {"classic": _classic, "consumer": _consumer, "commits": _offsets, "transactions": _transactions}
    results: list[Result] = []
    with both(_SETTINGS) as pair:
        for broker in pair:
            broker.create(_TOPIC, _MEMBERS)
        for name in only or PARTS:
            results += parts[name](pair, repeat=repeat, scale=10 if quick else 1)
    return results


def _classic(pair: Pair, *, repeat: int, scale: int) -> list[Result]:
    members = _MEMBERS // scale
    tell(f"{members:,} members join a group of the classic protocol")
    groups = {broker: ClassicGroup(broker, "classic", members) for broker in pair}
    return _group_results("classic", pair, groups, members, repeat=repeat)


def _consumer(pair: Pair, *, repeat: int, scale: int) -> list[Result]:
    members = _MEMBERS // scale
    tell(f"{members:,} members join a group of the consumer protocol")
    groups = {broker: ConsumerGroup(broker, "consumer", members, _TOPIC) for broker in pair}
    return _group_results("consumer", pair, groups, members, repeat=repeat)


def _group_results(
    protocol: str,
    pair: Pair,
    groups: dict[Served, ClassicGroup] | dict[Served, ConsumerGroup],
    members: int,
    *,
    repeat: int,
) -> list[Result]:
    rounds = 5
    about = f"{protocol} protocol, {members:,} members"
    rebalances = _compare(
        f"a member joins and leaves, {about}",
        pair,
        lambda broker: groups[broker].join_and_leave(),
        Targets(speed=1.0),
        per=1,
        repeat=repeat,
    )
    heartbeats = _compare(
        f"heartbeats, {about}",
        pair,
        lambda broker: groups[broker].heartbeats(rounds),
        Targets(cpu=1.0),
        per=members * rounds,
        repeat=repeat,
    )
    return rebalances + heartbeats


def _offsets(pair: Pair, *, repeat: int, scale: int) -> list[Result]:
    results: list[Result] = []
    for broker in pair:
        offsets.prepare(broker, _CONNECTIONS)
    for what, ask, speed in (("commits", offsets.commit, 1.0), ("fetches", offsets.fetch, None)):
        for partitions, rounds in ((1, 600), (100, 60)):
            rounds = max(1, rounds // scale)
            results += _compare(
                f"offset {what}, {_CONNECTIONS} groups, {partitions} partitions each",
                pair,
                partial(ask, topic=_TOPIC, partitions=partitions, groups=_CONNECTIONS, rounds=rounds),
                Targets(speed=speed if partitions == 1 else None),
                per=_CONNECTIONS * rounds,
                repeat=repeat,
            )
    return results


def _transactions(pair: Pair, *, repeat: int, scale: int) -> list[Result]:
    results: list[Result] = []
    for version in (2, 1):
        for records, count, speed in ((1_000, 80, 1.0), (10, 150, 0.8)):
            topic = f"transactions-{version}-{records}"
            for broker in pair:
                transactions.create(broker, topic, _CONNECTIONS)
            count = max(1, count // scale)
            results += _compare(
                f"transactions of version {version} with {records:,} records, {_CONNECTIONS} producers",
                pair,
                partial(
                    transactions.run,
                    topic=topic,
                    version=version,
                    records=records,
                    producers=_CONNECTIONS,
                    transactions=count,
                ),
                Targets(speed=speed),
                per=_CONNECTIONS * count,
                repeat=repeat,
            )
            for broker in pair:
                broker.delete(topic)
    return results


def _compare(
    name: str, pair: Pair, run: Callable[[Served], Pass], targets: Targets, *, per: int, repeat: int
) -> list[Result]:
    """Let both brokers take turns, after a round that does not count. Returns the speed, and the broker's CPU."""
    tell(name)
    theirs, ours = take_turns(pair, run, repeat)
    return [
        _result(name, [each.seconds for each in theirs], [each.seconds for each in ours], targets.speed, per),
        _result(
            f"CPU of the broker, {name}",
            [each.cpu_seconds for each in theirs],
            [each.cpu_seconds for each in ours],
            targets.cpu,
            per,
        ),
    ]


def _result(name: str, theirs: Sequence[float], ours: Sequence[float], target: float | None, per: int) -> Result:
    unit, factor = ("ms", 1e3) if per == 1 else ("us", 1e6)
    return Result(
        name=name,
        ratio=median(theirs) / median(ours),
        ours=median(ours) / per * factor,
        peer=median(theirs) / per * factor,
        unit=unit,
        target=target,
        best_ratio=min(theirs) / min(ours),
    )
