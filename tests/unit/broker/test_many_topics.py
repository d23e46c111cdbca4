"""What concerns one topic costs the same however many others there are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from octavo.broker.answers import Later
from octavo.broker.broker import Broker
from octavo.broker.cluster_image import ClusterImage, member_image
from octavo.broker.config import BrokerConfig
from octavo.broker.wire import api_keys
from octavo.broker.wire.frames import RequestHeader, write_request_header
from octavo.broker.wire.messages import write_request
from octavo.log.coordinator.known_topics import KnownTopics
from octavo.log.directory.data_directory import DataDirectory
from octavo.log.metadata.delta import Delta
from octavo.log.metadata.image import Image
from octavo.schemas.metadata.topics import ConfigRecord, PartitionRecord, TopicRecord
from tests.crash.storage import FastStorage
from tests.unit.broker.member.asked import Client, Member
from tests.unit.broker.test_cluster_image import registered
from tests.unit.effort import effort

_FEW: Final = 100  # more than are looked at together
_MANY: Final = 600
_ALLOWED: Final = 3 * (_MANY - _FEW)  # to look at each of the others takes at least twice as many instructions


class Served:
    """A broker on a directory in two folders, in which there are many topics after a while."""

    def __init__(self, folder: Path) -> None:
        self.directory: Final = DataDirectory.open([folder / "one", folder / "two"], storage=FastStorage())
        self.broker: Final = Broker(self.directory, BrokerConfig(), say=lambda message: None)
        self.directory.coordinator.forget_topic("none")  # so that there are coordinators of groups
        self._count = 0

    def grow(self, count: int) -> None:
        while self._count < count:
            self.directory.create_topic(f"events.{self._count:04}", config={"retention.ms": "1000"})
            self._count += 1
        self.directory.write_checkpoints()

    def ask(self, api_key: int, version: int, content: Mapping[str, Any]) -> None:
        header = write_request_header(RequestHeader(api_key, version, 1, "me", 0))
        answer = self.broker.handle(memoryview(header + write_request(api_key, version, content)), Client())
        assert isinstance(answer.work() if isinstance(answer, Later) else answer, list)


def efforts(calls: Mapping[str, Callable[[], object]], grow: Callable[[int], None]) -> dict[str, tuple[int, int]]:
    """Return what each call takes where there are few topics, and where there are many."""
    taken: list[dict[str, int]] = []
    for count in (_FEW, _MANY):
        grow(count)
        for call in calls.values():
            call()  # what is done only once is done
        grow(count)
        taken.append({name: effort(call) for name, call in calls.items()})
    return {name: (taken[0][name], taken[1][name]) for name in calls}


def test_a_change_looks_at_no_other_topic(tmp_path: Path) -> None:
    """Mend 2.4: creating a topic walked through all partitions, and a deletion wrote all of them to checkpoints."""
    served = Served(tmp_path)
    known = KnownTopics(served.directory)
    page = {"topics": [], "response_partition_limit": 1, "cursor": {"topic_name": "events.0007", "partition_index": 0}}
    calls: dict[str, Callable[[], object]] = {
        "create": lambda: served.ask(
            api_keys.CREATE_TOPICS,
            7,
            {"topics": [{"name": "new_one", "num_partitions": 1, "replication_factor": 1}], "timeout_ms": 1000},
        ),
        "grow": lambda: served.directory.add_partitions("new_one", 2),
        "set": lambda: served.directory.set_config("new_one", {"retention.ms": "7"}),
        "find": lambda: known.by_id(served.directory.topics["new_one"].id),
        "page": lambda: served.ask(api_keys.DESCRIBE_TOPIC_PARTITIONS, 0, page),
        "folders": lambda: served.ask(
            api_keys.DESCRIBE_LOG_DIRS, 4, {"topics": [{"topic": "new_one", "partitions": [0]}]}
        ),
        "delete": lambda: served.ask(api_keys.DELETE_TOPICS, 5, {"topic_names": ["new_one"], "timeout_ms": 1000}),
        "forget": lambda: served.directory.coordinator.forget_topic("new_one"),
    }
    with served.directory:
        taken = efforts(calls, served.grow)
    assert {name: (few, many) for name, (few, many) in taken.items() if many - few >= _ALLOWED} == {}


def test_metadata_of_controllers_are_taken_over_without_looking_at_topics_that_are_as_they_were() -> None:
    """Mend 2.4: a member copied the names of all topics for each batch of records."""
    image, seen = Image(), [0]
    shown: list[ClusterImage] = [member_image(image, "cluster", None)]

    def publish(count: int) -> None:
        nonlocal image
        image = image.successor(Delta())
        while seen[0] < count:
            topic_id = UUID(int=seen[0])
            image.replay(TopicRecord(name=f"events.{seen[0]:04}", topic_id=topic_id))
            image.replay(partition(topic_id))
            image.replay(ConfigRecord(resource_type=2, resource_name=f"events.{seen[0]:04}", name="a", value="b"))
            seen[0] += 1
        shown[0] = member_image(image, "cluster", shown[0])

    taken = efforts({"publish": lambda: publish(seen[0] + 1)}, publish)
    assert {name: (few, many) for name, (few, many) in taken.items() if many - few >= _ALLOWED} == {}
    assert len(shown[0].topics) == len(shown[0].by_id) == seen[0]


def test_a_list_of_many_topics_holds_up_no_other_request(tmp_path: Path) -> None:
    """Mend 2.4: 10,000 topics took a quarter of a second in the thread that answers everybody."""
    image = Image()
    image.replay(registered(1))
    member = Member(tmp_path / "data", image)
    wanted = {"topics": None, "allow_auto_topic_creation": False}
    frame = memoryview(
        write_request_header(RequestHeader(api_keys.METADATA, 12, 1, "me", 0))
        + write_request(api_keys.METADATA, 12, wanted)
    )
    for count in (10, 1000):
        for number in range(count):
            topic_id = UUID(int=1 + number)
            image.replay(TopicRecord(name=f"events.{number}", topic_id=topic_id))
            image.replay(partition(topic_id))
        member.broker.image = member_image(image, "cluster", None)
        first = member.broker.handle(frame, Client())
        if count == 10:
            assert isinstance(first, list)
            continue
        assert isinstance(first, Later)
        second = member.broker.handle(frame, Client())
        assert isinstance(second, Later)
        answer = first.work()
        assert answer == second.work() == member.broker.handle(frame, Client())  # which is known by now
    member.directory.close()


def partition(topic_id: UUID) -> PartitionRecord:
    return PartitionRecord(
        partition_id=0,
        topic_id=topic_id,
        replicas=(1,),
        isr=(1,),
        removing_replicas=(),
        adding_replicas=(),
        leader=1,
        leader_epoch=0,
        partition_epoch=0,
    )
