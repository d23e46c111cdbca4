"""Assignors: every partition has one owner, members are balanced, and they keep what they had."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.coordinator.groups.consumer.assignors import ASSIGNORS
from octavo.coordinator.groups.consumer.assignors.assignor import Assignment, Subscriber, Wanted

T = [UUID(int=number) for number in range(1, 6)]
Owners = dict[tuple[UUID, int], str]


def owners(assigned: dict[str, Assignment]) -> Owners:
    pairs = [
        ((topic, partition), member_id)
        for member_id, topics in assigned.items()
        for topic, partitions in topics.items()
        for partition in partitions
    ]
    assert len(dict(pairs)) == len(pairs), "a partition has two owners"
    return dict(pairs)


def loads(assigned: dict[str, Assignment]) -> dict[str, int]:
    return {member_id: sum(map(len, topics.values())) for member_id, topics in assigned.items()}


def subscriber(member_id: str, topics: list[UUID], assigned: Assignment | None = None, **more: str) -> Subscriber:
    return Subscriber(member_id, more.get("instance_id"), frozenset(topics), assigned or {})


def wanted(subscribers: list[Subscriber], counts: dict[UUID, int]) -> Wanted:
    same = len({each.topics for each in subscribers}) <= 1
    used = {topic: counts[topic] for each in subscribers for topic in each.topics}
    return Wanted(subscribers, used, same)


groups = st.builds(
    lambda counts, subscriptions: (
        dict(zip(T, counts, strict=False)),
        [sorted({T[number % len(counts)] for number in numbers}) for numbers in subscriptions],
    ),
    st.lists(st.integers(0, 7), min_size=1, max_size=5),
    st.lists(st.lists(st.integers(0, 4), max_size=5), min_size=1, max_size=6),
)


@pytest.mark.parametrize("name", ASSIGNORS)
@given(groups)
def test_every_partition_has_one_owner_that_subscribes_to_it(
    name: str, group: tuple[dict[UUID, int], list[list[UUID]]]
) -> None:
    counts, subscriptions = group
    members = [subscriber(f"m{number}", topics) for number, topics in enumerate(subscriptions)]
    asked = wanted(members, counts)
    found = owners(ASSIGNORS[name](asked))
    expected = {(topic, partition) for topic in asked.partition_counts for partition in range(counts[topic])}
    assert set(found) == expected
    topics_of = {each.member_id: each.topics for each in members}
    assert all(topic in topics_of[member_id] for (topic, _), member_id in found.items())


@given(st.lists(st.integers(0, 9), min_size=1, max_size=5), st.integers(1, 8), st.integers(1, 8))
def test_uniform_is_balanced_and_sticky_when_all_subscribe_to_the_same(
    sizes: list[int], before: int, after: int
) -> None:
    counts = dict(zip(T, sizes, strict=False))
    topics = list(counts)
    assign = ASSIGNORS["uniform"]
    first = assign(wanted([subscriber(f"m{number}", topics) for number in range(before)], counts))
    assert max(loads(first).values()) - min(loads(first).values()) <= 1
    second = assign(
        wanted([subscriber(f"m{number}", topics, first.get(f"m{number}")) for number in range(after)], counts)
    )
    assert max(loads(second).values()) - min(loads(second).values()) <= 1
    moved = {each for each, owner in owners(second).items() if owners(first)[each] != owner}
    lost = sum(load for member_id, load in loads(first).items() if member_id not in second)
    gained = sum(load for member_id, load in loads(second).items() if member_id not in first)
    assert len(moved) == max(lost, gained)  # nothing moves but from those who left, or to those who came


@given(groups)
def test_uniform_changes_nothing_when_nothing_has_changed(group: tuple[dict[UUID, int], list[list[UUID]]]) -> None:
    counts, subscriptions = group
    assign = ASSIGNORS["uniform"]
    first = assign(wanted([subscriber(f"m{number}", each) for number, each in enumerate(subscriptions)], counts))
    again = [subscriber(f"m{number}", each, first[f"m{number}"]) for number, each in enumerate(subscriptions)]
    assert assign(wanted(again, counts)) == first


@given(groups)
def test_uniform_levels_as_far_as_subscriptions_allow(group: tuple[dict[UUID, int], list[list[UUID]]]) -> None:
    counts, subscriptions = group
    members = [subscriber(f"m{number}", topics) for number, topics in enumerate(subscriptions)]
    assigned = ASSIGNORS["uniform"](wanted(members, counts))
    load = loads(assigned)
    for (topic, _), owner in owners(assigned).items():  # no single move would make it better
        assert all(load[owner] - load[each.member_id] <= 1 for each in members if topic in each.topics)


def test_uniform_moves_to_a_member_that_comes_and_keeps_the_rest() -> None:
    assign = ASSIGNORS["uniform"]
    old = {T[0]: frozenset({0, 1, 2, 3})}
    both = [subscriber("a", [T[0]], old), subscriber("b", [T[0]])]
    assert assign(wanted(both, {T[0]: 4})) == {"a": {T[0]: {0, 1}}, "b": {T[0]: {2, 3}}}


def test_uniform_gives_each_partition_one_owner_even_if_the_records_say_otherwise() -> None:
    old = {T[0]: frozenset({0, 1, 9})}
    both = [subscriber("a", [T[0]], old), subscriber("b", [T[0]], old)]
    assert set(owners(ASSIGNORS["uniform"](wanted(both, {T[0]: 2})))) == {(T[0], 0), (T[0], 1)}


def test_range_assigns_topics_alike_and_static_members_come_first() -> None:
    members = [
        subscriber("a", T[:2]),
        subscriber("b", T[:2]),
        subscriber("z", T[:2], instance_id="i"),
        subscriber("y", T[:1], instance_id="h"),
    ]
    counts = {T[0]: 5, T[1]: 3}
    assert ASSIGNORS["range"](wanted(members, counts)) == {
        "y": {T[0]: {0, 1}},
        "z": {T[0]: {2}, T[1]: {0}},
        "a": {T[0]: {3}, T[1]: {1}},
        "b": {T[0]: {4}, T[1]: {2}},
    }


@pytest.mark.parametrize("name", ASSIGNORS)
def test_nobody_and_nothing(name: str) -> None:
    assert ASSIGNORS[name](wanted([], {})) == {}
    assert ASSIGNORS[name](wanted([subscriber("a", [])], {})) == {"a": {}}


@pytest.mark.parametrize("name", ASSIGNORS)
def test_the_order_in_which_members_are_told_does_not_matter(name: str) -> None:
    members = [subscriber(f"m{number}", T[: 1 + number % 3]) for number in range(7)]
    counts = dict.fromkeys(T, 5)
    assign = ASSIGNORS[name]
    assert assign(wanted(members, counts)) == assign(wanted(members[::-1], counts))
