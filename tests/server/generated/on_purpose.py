"""What differs from Apache Kafka on purpose: one table. A test holds docs/broker.md to these sentences."""

from __future__ import annotations

import re
from typing import Any, Final

from octavo.broker.wire import api_keys as keys
from octavo.errors import ErrorCode
from octavo.log.names import CONSUMER_OFFSETS
from tests.server.generated.step import Step

DIFFERENCES: Final = (
    "Null for the records of a partition is refused with INVALID_RECORD, and AlterConfigs that names a resource twice "
    "with INVALID_REQUEST. AddPartitionsToTxn without transactions is answered, and WriteTxnMarkers that names a "
    "partition twice. Kafka 4.3 does not answer at all.",
    "A fetch by an id of zeros is answered with UNKNOWN_TOPIC_ID for its partitions. Kafka fails as a whole, with "
    "UNKNOWN_SERVER_ERROR, if others stand beside it.",
    "Messages of errors do not print Java objects, where Kafka's do. If several settings have unknown names, they tell "
    "the first, and Kafka's any.",
    "Of the cluster's features only `metadata.version`, `group.version` and `transaction.version` are told. "
    "`min.insync.replicas` has no default of the cluster.",
    "DescribeConfigs tells of a broker the settings that are honoured, gives no documentation, and finds no loggers. "
    "Settings of client metrics, and of groups of the share and streams protocols, are kept, and have no effect. The "
    "log says so once when such a setting, a quota or a user is set.",
    "UpdateFeatures knows no other feature either, and lowers none. DescribeQuorum names no listener: there is none "
    "for controllers.",
    "AlterReplicaLogDirs moves no replica to another folder: that is refused with POLICY_VIOLATION.",
    "UnregisterBroker refuses to throw out the only broker of its cluster. Kafka does it, and cannot be reached from "
    "then on.",
    "The name of a host that gets a quota (`ip`) is not looked up.",
    "The first producer id is given out at once. A fresh Kafka answers COORDINATOR_LOAD_IN_PROGRESS first.",
    "FindCoordinator creates the internal topic on the way, and answers when it is there. Kafka answers "
    "COORDINATOR_NOT_AVAILABLE first, and clients ask again.",
    "What a request changes in a group is a batch of its own in `__consumer_offsets`. Kafka gathers records for 5 ms "
    "(`group.coordinator.append.linger.ms`).",
    "A restart begins no epoch of partitions and coordinators. In Kafka each restart does.",
    "A consumer may join a classic group with bytes that are no subscription. Kafka does not answer some of these "
    "joins at all.",
    "An empty group of consumers that is joined by the classic protocol, with the id of a member, stays as it is. "
    "Kafka forgets it until it is restarted.",
    "A transaction ends even if a partition refuses its marker. In Kafka it stays in PrepareCommit or PrepareAbort "
    "until the coordinator is loaded again.",
    "`queued.max.request.bytes` is a quarter of the machine's memory unless it is set. Kafka has no limit then.",
    "A request other than Produce has at most 2 MiB, an array of a request at most 20,000 items, and what is asked of "
    "a group, a transactional id or an offset is asked at most ten times. The connection is closed otherwise.",
    "A batch that decompresses to more than 256 MiB is refused with MESSAGE_TOO_LARGE. Kafka has no such limit.",
    "Groups of the share and streams protocols that Kafka has left in the directory are not deleted: DeleteGroups "
    "answers GROUP_ID_NOT_FOUND for them. Kafka deletes those without members.",
    "A regular expression has at most 100 classes of Unicode's characters (`\\p`), and a limit of 1 MiB when it is "
    "compiled. It is refused with INVALID_REGULAR_EXPRESSION otherwise.",
    "An offset with a retention time beyond the largest number (OffsetCommit 2 to 4) is kept. Kafka forgets it "
    "at once.",
    "All fetch sessions together remember at most 500,000 partitions. A client that gets no session sends full "
    "requests.",
    "Socket buffers are left to the kernel unless they are set.",
)

# Fields that are told in another way.
_TOLD_IN_ANOTHER_WAY: Final = {"supported_features", "finalized_features", "api_keys", "documentation", "listeners"}
# What depends on the time, and on what else was written there.
_OF_THE_METADATA_LOG: Final = {"leader_epoch", "high_watermark", "current_voters"}
_OF_KAFKA_ALONE: Final = "min.insync.replicas"
_OBJECT: Final = re.compile(r" (Partial)?DefaultRecord\(.*?\)\. ")
_UNKNOWN_NAME: Final = re.compile(r"^(Unknown \w+ config name: ).*")
_BROKERS: Final = (4, 8)  # resources: a broker, its loggers


def without_what_is_meant(answer: Any) -> Any:
    """Return an answer without what differs on purpose."""
    if isinstance(answer, dict):
        if answer.get("name") == _OF_KAFKA_ALONE and "config_source" in answer:
            return {"name": _OF_KAFKA_ALONE}
        if answer.get("name") == CONSUMER_OFFSETS and any(
            "partition_size" in each for each in answer.get("partitions", [])
        ):
            return {"name": CONSUMER_OFFSETS}
        if "generation_id" in answer and "leader" in answer:  # ids of members are random
            random = {name: bool(answer[name]) for name in ("member_id", "leader")}
            answer = {**answer, **random, "members": len(answer["members"])}
        if any("group_type" in each for each in answer.get("groups", [])):  # those of other cases are there, too
            answer = {**answer, "groups": []}
        if answer.get("resource_type") in _BROKERS and "configs" in answer:
            answer = {**answer, "configs": []}
        return {
            key: without_what_is_meant(each)
            for key, each in answer.items()
            if key not in _TOLD_IN_ANOTHER_WAY and not ("current_voters" in answer and key in _OF_THE_METADATA_LOG)
        }
    if isinstance(answer, str):
        return _UNKNOWN_NAME.sub(r"\1", _OBJECT.sub(". ", answer))
    return [without_what_is_meant(each) for each in answer] if isinstance(answer, list) else answer


def is_on_purpose(step: Step, ours: Any, theirs: Any) -> bool:
    """Return whether a difference is meant. What follows in the conversation cannot be compared then."""
    if not (isinstance(ours, dict) and isinstance(theirs, dict)):
        return False
    if step.api_key == keys.FIND_COORDINATOR:
        return _is_topic_missing(theirs)
    if step.api_key != keys.FETCH or step.version < 13:
        return False
    codes = [each["error_code"] for topic in ours["responses"] for each in topic["partitions"]]
    return theirs["error_code"] == ErrorCode.UNKNOWN_SERVER_ERROR and ErrorCode.UNKNOWN_TOPIC_ID in codes


def _is_topic_missing(found: dict[str, Any]) -> bool:
    codes = [each["error_code"] for each in (found.get("coordinators") or [found])]
    return ErrorCode.COORDINATOR_NOT_AVAILABLE in codes
