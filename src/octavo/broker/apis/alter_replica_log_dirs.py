"""AlterReplicaLogDirs (34): move replicas of this broker to other folders of the data directory.

A replica that is asked to be where it is needs nothing. Replicas are not moved here: that is refused. Version 2 is
flexible.
"""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Final

from octavo.broker.answers import Parts
from octavo.broker.request import Request
from octavo.broker.wire.api_keys import ALTER_REPLICA_LOG_DIRS
from octavo.broker.wire.messages import write_response
from octavo.errors import ErrorCode

if TYPE_CHECKING:
    from octavo.broker.broker import Broker


# Kafka copies a replica into a folder whose name also has an id and a suffix, and looks at that first.
_LONGEST_FOLDER: Final = 255
_ADDED: Final = len(f"-.{uuid.UUID(int=0).hex}-future")


def alter_replica_log_dirs(broker: Broker, request: Request) -> Parts:
    """Answer an AlterReplicaLogDirs request."""
    wanted = {  # of two folders for one replica the last counts
        (topic.name, number): each.path
        for each in request.read().dirs
        for topic in each.topics
        for number in topic.partitions
    }
    folders = {str(folder.absolute()): folder for folder in broker.directory.folders}
    results: dict[str, list[dict[str, int]]] = {}
    for (topic, number), path in wanted.items():
        error = _error(broker, topic, number, folders.get(path))
        results.setdefault(topic, []).append({"partition_index": number, "error_code": error})
    content = {
        "throttle_time_ms": 0,
        "results": [{"topic_name": topic, "partitions": partitions} for topic, partitions in results.items()],
    }
    return [write_response(ALTER_REPLICA_LOG_DIRS, request.version, content)]


def _error(broker: Broker, topic: str, number: int, folder: Path | None) -> int:
    if len(f"{topic}{number}") + _ADDED > _LONGEST_FOLDER:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    if folder is None:
        return ErrorCode.LOG_DIR_NOT_FOUND
    log = broker.replica_log(topic, number)
    if isinstance(log, int):
        return ErrorCode.REPLICA_NOT_AVAILABLE if log == ErrorCode.NOT_LEADER_OR_FOLLOWER else log
    return 0 if log.folder.parent == folder else ErrorCode.POLICY_VIOLATION
