"""The directory of a member, in a cluster that begins to know of directories, and after its disk was replaced."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID, uuid4

from octavo.broker.member.assigning import Assigning
from octavo.broker.member.controller import ControllerChannel
from octavo.broker.member.living import Living
from octavo.broker.member.surroundings import Surroundings
from octavo.broker.member.versions import ControllerVersions
from octavo.broker.wire.api_keys import ASSIGN_REPLICAS_TO_DIRS, BROKER_HEARTBEAT, BROKER_REGISTRATION
from octavo.broker.wire.messages import read_request, write_response
from octavo.cluster.leading import ClusterView
from octavo.cluster.life_cycle import LifeCycle
from octavo.cluster.messages import BrokerRegistrationRequest, Endpoint, TopicIdPartition
from octavo.cluster.replicas import Changed, LocalChanges
from octavo.errors import ErrorCode
from octavo.schemas.metadata.nodes import RegisterBrokerRecord
from octavo.schemas.metadata.topics import PartitionRecord
from tests.unit.broker.member.test_versions import served

NODE, EPOCH = 3, 40
CONTROLLER = Endpoint("controller", 1)
HERE, LOST, TOPIC = uuid4(), uuid4(), uuid4()
NEWEST = {BROKER_REGISTRATION: 4, BROKER_HEARTBEAT: 2, ASSIGN_REPLICAS_TO_DIRS: 0}


class Controller:
    """The test answers for it."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.sent: list[tuple[int, Any]] = []
        self._answered: Callable[[memoryview], None] | None = None

    def ask(
        self,
        endpoint: Endpoint,
        channel: str,
        api_key: int,
        version: int,
        body: Sequence[bytes],
        *,
        timeout_ms: int,
        client_id: str,
        answered: Callable[[memoryview], None],
        failed: Callable[[str], None],
    ) -> None:
        self.sent.append((api_key, read_request(api_key, version, memoryview(b"".join(body)))))
        self._answered = answered

    def disconnect(self, endpoint: Endpoint, channel: str, reason: str) -> None:
        raise AssertionError(reason)

    def answer(self, **content: Any) -> None:
        """Answer the last request."""
        assert self._answered is not None
        api_key = self.sent[-1][0]
        answer = {"throttle_time_ms": 0, "error_code": 0, **content}
        self._answered(memoryview(write_response(api_key, NEWEST[api_key], answer)))


def _registration(*log_dirs: UUID) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        broker_id=NODE,
        incarnation_id=uuid4(),
        broker_epoch=EPOCH,
        end_points=(),
        features=(),
        rack=None,
        fenced=False,
        log_dirs=log_dirs,
    )


def _living(controller: Controller) -> Living:
    request = BrokerRegistrationRequest(NODE, "cluster", uuid4(), (), (), None, (HERE,), -1)
    here = Surroundings(
        controller, NODE, lambda _: None, lambda _: None, lambda _: None, lambda: controller.now_ms, lambda: None
    )
    life = LifeCycle(request, 0)
    versions = ControllerVersions()
    assert versions.take(CONTROLLER, served())
    return Living(life, here, versions, heartbeat_ms=2000, controller=lambda: CONTROLLER, happened=lambda _: None)


def test_the_directory_is_registered_when_the_cluster_knows_of_directories() -> None:
    controller = Controller()
    living = _living(controller)
    living.poll(0, -1)
    controller.answer(broker_epoch=EPOCH)
    living.look_at(_registration(), 16)
    living.poll(0, 5)
    assert [api_key for api_key, _ in controller.sent] == [BROKER_REGISTRATION, BROKER_HEARTBEAT]
    controller.answer(is_caught_up=True, is_fenced=True, should_shut_down=False)
    living.look_at(_registration(), 17)
    living.poll(1, 6)
    api_key, request = controller.sent[-1]
    assert (api_key, request.log_dirs) == (BROKER_REGISTRATION, (HERE.bytes,))
    living.look_at(_registration(), 17)  # the record has not come yet
    controller.answer(broker_epoch=EPOCH)
    living.poll(2, 6)
    assert controller.sent[-1][0] == BROKER_HEARTBEAT


def test_a_registration_of_another_life_is_none() -> None:
    controller = Controller()
    living = _living(controller)
    living.poll(0, -1)
    controller.answer(broker_epoch=EPOCH + 1)
    living.look_at(_registration(), 30)
    living.poll(0, 5)
    assert controller.sent[-1][0] == BROKER_HEARTBEAT


def test_replicas_are_assigned_once_the_directory_is_registered() -> None:
    controller, place = Controller(), TopicIdPartition(TOPIC, 7)
    view = ClusterView(NODE, EPOCH, {NODE: _registration(LOST)})
    channel = ControllerChannel(
        controller, lambda: CONTROLLER, channel="forward", client_id="3", clock_ms=lambda: controller.now_ms
    )
    assigning = Assigning(channel, view, HERE, clock_ms=lambda: controller.now_ms, poke=lambda: None)
    record = PartitionRecord(
        topic_id=TOPIC, replicas=(NODE,), isr=(NODE,), removing_replicas=(), adding_replicas=(), directories=(LOST,)
    )
    changes = LocalChanges([], [Changed(place, record, is_new_epoch=True, is_new=True)], [])
    assigning.take(changes, 16)  # such a cluster knows of no directories
    view.brokers = {NODE: _registration(HERE)}
    assigning.poll(0)
    assert not controller.sent
    assigning.take(changes, 17)
    view.brokers = {NODE: _registration(LOST)}  # to the controller, replicas in another one are lost
    assigning.poll(0)
    assert not controller.sent
    view.brokers = {NODE: _registration(HERE)}
    assigning.poll(0)
    api_key, request = controller.sent[-1]
    assert (api_key, request.broker_epoch) == (ASSIGN_REPLICAS_TO_DIRS, EPOCH)
    [directory] = request.directories
    assert (directory.id_, directory.topics[0].topic_id, directory.topics[0].partitions[0].partition_index) == (
        HERE.bytes,
        TOPIC.bytes,
        7,
    )
    controller.answer(error_code=int(ErrorCode.STALE_BROKER_EPOCH), directories=())
    assert assigning.poll(0) == 100
    controller.now_ms = 100
    assigning.poll(100)
    partitions = [{"partition_index": 7, "error_code": 0}]
    controller.answer(
        directories=[{"id_": HERE.bytes, "topics": [{"topic_id": TOPIC.bytes, "partitions": partitions}]}]
    )
    controller.now_ms = 10_000
    assigning.poll(10_000)
    assert len(controller.sent) == 2
