"""Groups of protocols that Octavo does not serve: their ids are taken, as in the Kafka that goes on with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from octavo.broker.wire import api_keys as keys
from octavo.errors import ErrorCode
from octavo.log.coordinator.coordinator import group_hosts
from octavo.log.metadata import handover
from octavo.records import BatchBuilder
from octavo.schemas.consumer_offsets import share_groups as share
from octavo.schemas.consumer_offsets import streams_groups as streams
from octavo.schemas.versioned import CoordinatorKey, CoordinatorValue, write_key, write_value
from octavo.server.serving import Server, serve
from tests.kafka.conftest import NewBroker
from tests.server.conversation import Conversation, differences
from tests.server.question import Question

SHARE_MEMBER: Final = share.ShareGroupMemberMetadataValue(
    rack_id=None, client_id="c", client_host="/h", subscribed_topic_names=("t",)
)
STREAMS_MEMBER: Final = streams.StreamsGroupMemberMetadataValue(
    instance_id=None,
    rack_id=None,
    client_id="c",
    client_host="/h",
    rebalance_timeout_ms=300_000,
    topology_epoch=0,
    process_id="p",
    client_tags=(),
)
# A group of each kind without members, and one with a member.
RECORDS: Final[list[tuple[str, CoordinatorKey[Any], CoordinatorValue]]] = [
    *(
        (group, share.ShareGroupMetadataKey(group_id=group), share.ShareGroupMetadataValue(epoch=1, metadata_hash=0))
        for group in ("share-empty", "share")
    ),
    *(
        (
            group,
            streams.StreamsGroupMetadataKey(group_id=group),
            streams.StreamsGroupMetadataValue(epoch=1, metadata_hash=0),
        )
        for group in ("streams-empty", "streams")
    ),
    ("share", share.ShareGroupMemberMetadataKey(group_id="share", member_id="m"), SHARE_MEMBER),
    ("streams", streams.StreamsGroupMemberMetadataKey(group_id="streams", member_id="m"), STREAMS_MEMBER),
]
LOADING: Final = (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR)
GROUPS: Final = ("share-empty", "share", "streams-empty", "streams")
PARTITION: Final = {"partition_index": 0, "committed_offset": 1, "committed_leader_epoch": -1, "committed_metadata": ""}


def questions(group: str) -> list[Question]:
    """What others may ask of a group, unless Kafka would delete or convert it then."""
    join = {
        "group_id": group,
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 10_000,
        "member_id": "",
        "group_instance_id": None,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": b""}],
    }
    member = {"group_id": group, "generation_id": 1, "member_id": "m", "group_instance_id": None}
    beat = {
        "group_id": group,
        "member_id": "AAAAAAAAAAAAAAAAAAAAAA",
        "member_epoch": 0,
        "rebalance_timeout_ms": 10_000,
        "subscribed_topic_names": ["t"],
        "topic_partitions": [],
    }
    commit = {
        "group_id": group,
        "generation_id_or_member_epoch": -1,
        "member_id": "",
        "topics": [{"name": "t", "partitions": [PARTITION]}],
    }
    fetch = {"group_id": group, "topics": [{"name": "t", "partition_indexes": [0]}]}
    asked = [
        *([] if group == "streams-empty" else [Question(keys.JOIN_GROUP, 9, join)]),  # Kafka would convert it
        Question(keys.SYNC_GROUP, 5, {**member, "assignments": []}),
        Question(keys.HEARTBEAT, 4, member),
        Question(keys.LEAVE_GROUP, 5, {"group_id": group, "members": [{"member_id": "m"}]}),
        Question(keys.CONSUMER_GROUP_HEARTBEAT, 1, beat),
        Question(keys.CONSUMER_GROUP_HEARTBEAT, 1, {**beat, "member_epoch": 1}),
        Question(keys.DESCRIBE_GROUPS, 6, {"groups": [group]}),
        Question(keys.CONSUMER_GROUP_DESCRIBE, 1, {"group_ids": [group]}),
        Question(keys.OFFSET_COMMIT, 9, commit),
        Question(keys.OFFSET_COMMIT, 9, {**commit, "generation_id_or_member_epoch": 1, "member_id": "n"}),
        Question(keys.OFFSET_FETCH, 9, {"groups": [{**fetch, "member_id": None, "member_epoch": -1}]}),
        Question(keys.OFFSET_FETCH, 9, {"groups": [{**fetch, "member_id": "n", "member_epoch": 1}]}),
        Question(keys.OFFSET_DELETE, 0, {"group_id": group, "topics": [{"name": "t", "partitions": []}]}),
    ]
    if not group.endswith("empty"):
        asked.append(Question(keys.DELETE_GROUPS, 2, {"groups_names": [group]}))
    return asked


def write(server: Server) -> None:
    """Write records as Kafka does."""
    for group, key, value in RECORDS:
        partition = group_hosts(server.directory).partition_for(group)
        builder = BatchBuilder()
        builder.append(write_key(key), write_value(value, 0), timestamp_ms=1)
        server.directory.log(*partition).append(builder.build())


def answers(address: str) -> list[Any]:
    with Conversation(address) as conversation:
        for group in GROUPS:
            while conversation.ask(keys.DESCRIBE_GROUPS, 6, {"groups": [group]})["groups"][0]["error_code"] in LOADING:
                pass
        found = [conversation.ask(*question) for group in GROUPS for question in questions(group)]
        listed = conversation.ask(keys.LIST_GROUPS, 5, {"states_filter": [], "types_filter": ["Share", "streams"]})
    return [*found, sorted(listed["groups"], key=lambda each: str(each["group_id"]))]


def test_their_ids_are_taken(tmp_path: Path, new_broker: NewBroker) -> None:
    folder = tmp_path / "data"
    with serve(folder) as server:
        server.broker.create_topic("t", 1, {})
        write(server)
    with serve(folder) as server:
        ours = answers(server.bootstrap_servers)
        with Conversation(server.bootstrap_servers) as conversation:
            deleted = conversation.ask(keys.DELETE_GROUPS, 2, {"groups_names": ["share-empty"]})
        assert deleted["results"][0]["error_code"] == ErrorCode.GROUP_ID_NOT_FOUND  # Kafka would delete it
    handover([folder])
    kafka = new_broker(folder)
    kafka.start()
    theirs = answers(kafka.address)
    named = [f"{group}: {question}" for group in GROUPS for question in questions(group)] + ["list"]
    found = [
        f"{name}: {line}"
        for name, our, their in zip(named, ours, theirs, strict=True)
        for line in differences(our, their)
    ]
    assert not found, "\n".join(found)
