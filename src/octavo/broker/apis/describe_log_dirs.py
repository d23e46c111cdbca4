"""DescribeLogDirs (35): the folders of the data directory, and the sizes of the partitions in them.

Versions: 2 is flexible, 4 tells how large and how full the disks are.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from octavo.broker.answers import Later, Parts, Work
from octavo.broker.request import Request
from octavo.broker.wire.api_keys import DESCRIBE_LOG_DIRS
from octavo.broker.wire.messages import write_response
from octavo.errors import ErrorCode, UnknownPartition
from octavo.log.directory.data_directory import DataDirectory
from octavo.log.log import Log
from octavo.log.names import TopicPartition

if TYPE_CHECKING:
    from octavo.broker.broker import Broker


def describe_log_dirs(broker: Broker, request: Request) -> Later:
    """Answer a DescribeLogDirs request."""
    asked, version = request.read(), request.version
    wanted = None
    if asked.topics is not None:
        wanted = {TopicPartition(topic.topic, number) for topic in asked.topics for number in topic.partitions}

    def work() -> Parts:
        folders: dict[Path, list[Log]] = {folder: [] for folder in broker.directory.folders}
        for log in broker.directory.logs if wanted is None else _open_logs(broker.directory, wanted):
            folders[log.folder.parent].append(log)
        results = [_folder(folder, logs) for folder, logs in folders.items()]
        content = {"throttle_time_ms": 0, "error_code": 0, "results": results}
        return [write_response(DESCRIBE_LOG_DIRS, version, content)]

    return Later(work, Work.QUERY)


def _open_logs(directory: DataDirectory, wanted: Iterable[TopicPartition]) -> Iterator[Log]:
    """Yield the logs of those partitions that are in the directory."""
    for partition in sorted(wanted):
        with suppress(UnknownPartition):
            yield directory.log(*partition)


def _folder(folder: Path, logs: Iterable[Log]) -> dict[str, Any]:
    topics: dict[str, list[dict[str, Any]]] = {}
    for log in logs:
        each = {
            "partition_index": log.partition.partition,
            "partition_size": log.size,
            "offset_lag": max(0, log.high_watermark - log.end_offset),
            "is_future_key": False,
        }
        topics.setdefault(log.partition.topic, []).append(each)
    content: dict[str, Any] = {
        "error_code": 0,
        "log_dir": str(folder.absolute()),
        "topics": [{"name": name, "partitions": partitions} for name, partitions in topics.items()],
        "total_bytes": -1,
        "usable_bytes": -1,
    }
    try:
        disk = os.statvfs(folder)
    except OSError:
        return content | {"error_code": ErrorCode.KAFKA_STORAGE_ERROR}
    return content | {"total_bytes": disk.f_frsize * disk.f_blocks, "usable_bytes": disk.f_frsize * disk.f_bavail}
