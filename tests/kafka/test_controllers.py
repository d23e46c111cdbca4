"""Members and controllers of Apache Kafka: members register, are fenced, return, and see controllers fail."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from uuid import UUID

import pytest

from octavo.cluster.life_cycle import Event
from octavo.errors import ErrorCode
from octavo.schemas.metadata.nodes import RegisterBrokerRecord
from tests.kafka.cluster import StockCluster
from tests.kafka.played_member import PlayedMember
from tests.soak.plugin import Soak

NewMember = Callable[..., PlayedMember]

_ROUNDS = 100
CREATED = {ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS}  # perhaps by a controller whose answer was lost


@pytest.fixture
def new_member(tmp_path: Path) -> Iterator[NewMember]:
    """Makes members, each with a folder of its own that it finds again."""
    with ExitStack() as members:

        def make(cluster: StockCluster, node_id: int, *, previous_broker_epoch: int = -1) -> PlayedMember:
            folder = tmp_path / f"member-{node_id}"
            folder.mkdir(exist_ok=True)
            directory_id = UUID(int=1 << 100 | node_id)
            member = PlayedMember(
                folder, cluster, node_id, directory_id=directory_id, previous_broker_epoch=previous_broker_epoch
            )
            members.callback(member.end)
            return member

        yield make


def test_a_member_of_a_cluster_with_one_controller(tmp_path: Path, java: str, new_member: NewMember) -> None:
    with StockCluster(tmp_path, settings={"metadata.log.max.record.bytes.between.snapshots": "600"}) as cluster:
        cluster.start()
        first = new_member(cluster, 3)
        first.run_until(lambda: Event.UNFENCED in first.events)
        assert first.events == [Event.REGISTERED, Event.CAUGHT_UP, Event.UNFENCED]
        first.run_until(lambda: first.is_unfenced)
        assert first.registration is not None
        assert first.registration.broker_epoch == first.life.broker_epoch
        assert first.registration.log_dirs == (first.directory_id,)

        # It is silent for so long that it is fenced, which another one sees. It returns with the same epoch.
        second = new_member(cluster, 4)
        second.run_until(lambda: Event.UNFENCED in second.events)
        second.run_until(lambda: second.metadata.image.brokers[3].fenced)
        first.run_until(lambda: first.registration is not None and first.registration.fenced)
        first.run_until(lambda: first.is_unfenced)
        assert first.registration.broker_epoch == first.life.broker_epoch

        # Another process takes its place: that is refused while the session lasts.
        first.end()
        third = new_member(cluster, 3, previous_broker_epoch=first.life.clean_epoch)
        third.run_until(lambda: Event.UNFENCED in third.events)
        assert set(third.refusals) <= {ErrorCode.DUPLICATE_BROKER_REGISTRATION}  # none on a machine that is too slow
        assert third.life.broker_epoch > first.life.broker_epoch

        # From nothing: the controller has snapshots by now.
        fourth = new_member(cluster, 5)
        fourth.run_until(lambda: fourth.is_unfenced)
        assert list((fourth.metadata.folder).glob("*.checkpoint"))
        assert fourth.metadata.image.brokers.keys() >= {3, 4, 5}


@pytest.mark.exhaustive
def test_controllers_fail(tmp_path: Path, java: str, new_member: NewMember) -> None:
    with StockCluster(tmp_path, controllers=3) as cluster:
        cluster.start()
        member = new_member(cluster, 3)
        member.run_until(lambda: member.is_unfenced)
        epoch = member.life.broker_epoch

        killed = cluster.active
        killed.kill()
        assert member.create_topic("while-none-is-active") in CREATED
        member.run_until(lambda: member.leaders[-1].leader_id not in (-1, killed.node_id))
        member.run_until(lambda: member.leaders[-1].leader_id == cluster.active.node_id)
        _follows_on(member)

        # One that hangs does not close its connections.
        killed.start()
        hanging = cluster.active
        os.kill(hanging.process_id, signal.SIGSTOP)
        member.run_until(lambda: member.leaders[-1].leader_id not in (-1, hanging.node_id))
        _follows_on(member)
        os.kill(hanging.process_id, signal.SIGCONT)
        _follows_on(member)

        assert member.life.broker_epoch == epoch
        assert [each.leader_epoch for each in member.leaders] == sorted(each.leader_epoch for each in member.leaders)
        assert set(member.metadata.topics) == {"while-none-is-active"}


@pytest.mark.soak(60)
def test_controllers_fail_again_and_again(tmp_path: Path, java: str, new_member: NewMember, soak: Soak) -> None:
    settings = {"metadata.log.max.record.bytes.between.snapshots": "5000"}
    with StockCluster(tmp_path, controllers=3, settings=settings) as cluster:
        cluster.start()
        member = new_member(cluster, 3)
        member.run_until(lambda: member.is_unfenced)
        for number in soak.rounds():
            failing = cluster.active
            if number % 2:
                os.kill(failing.process_id, signal.SIGSTOP)
            else:
                failing.kill()
            assert member.create_topic(f"topic-{number}") in CREATED
            _follows_on(member)
            if number % 2:
                os.kill(failing.process_id, signal.SIGCONT)
            else:
                failing.start()
        new = new_member(cluster, 4)
        new.run_until(lambda: new.is_unfenced)
        member.run_until(lambda: 4 in member.metadata.image.brokers and not member.metadata.image.brokers[4].fenced)
        assert len(member.metadata.topics) == soak.cases
        assert new.metadata.topics == member.metadata.topics
        _agree(member, new)


def _has_applied(member: PlayedMember, offset: int) -> bool:
    return member.metadata.applied_offset >= offset


def _agree(*members: PlayedMember) -> None:
    """See that whoever is behind knows the same of the brokers when it has caught up."""
    for _ in range(_ROUNDS):  # while one catches up, the other one is silent, and may be fenced
        behind, ahead = sorted(members, key=lambda each: each.metadata.applied_offset)
        behind.run_until(partial(_has_applied, behind, ahead.metadata.applied_offset))
        if _brokers(behind) == _brokers(ahead):
            return
    assert _brokers(behind) == _brokers(ahead)


def _brokers(member: PlayedMember) -> dict[int, RegisterBrokerRecord]:
    """What it knows of the brokers. A snapshot has their features in another order than they were told in."""
    return {
        number: replace(each, features=tuple(sorted(each.features, key=lambda feature: feature.name)))
        for number, each in member.metadata.image.brokers.items()
    }


def _follows_on(member: PlayedMember) -> None:
    """Metadata come, and heartbeats are answered: so it stays, or becomes, unfenced."""
    offset = member.metadata.applied_offset
    member.run_until(lambda: member.metadata.applied_offset > offset + 1)
    member.run_until(lambda: member.is_unfenced and not member.life.refusal)
