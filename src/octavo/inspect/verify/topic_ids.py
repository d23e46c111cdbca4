"""The rules of `partition.metadata`: the id of the topic that a partition belongs to.

The file is missing where a broker before 2.8 made the partition and no later one served it. A broker with KRaft puts
such a partition aside, as if its topic had been deleted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from uuid import UUID

from octavo.errors import InvalidInput
from octavo.inspect.verify.directory import DirectoryFolder
from octavo.inspect.verify.folder import Folder, Gone
from octavo.inspect.verify.metadata_topics import read_topics
from octavo.inspect.verify.partition import PartitionFolder
from octavo.inspect.verify.problem import Problem, Rule
from octavo.log.files.meta_properties import ZERO_ID, read_uuid, write_uuid
from octavo.log.names import CLEAN_SHUTDOWN, METADATA_TOPIC, PARTITION_METADATA, TopicPartition

KIND: Final = "partition metadata"

FORMAT: Final = Rule.declare(
    "topic-id-format",
    KIND,
    means="Kafka cannot read the topic's id, and takes the log's directory offline.",
    repair="Copy the file from another partition of the topic.",
)
DIFFERS: Final = Rule.declare(
    "topic-id-differs",
    KIND,
    means="Partitions of one topic have different ids: some of them belong to a deleted topic of the same name.",
    repair="Move away the partitions of the deleted topic; the cluster's metadata tell the id of the right one.",
)
METADATA: Final = Rule.declare(
    "topic-id-metadata",
    KIND,
    means="The cluster's metadata have another id for the topic: Kafka puts the partition aside as a stray one.",
    repair="Move the folder away if the topic was deleted; otherwise correct the id in the file.",
)
MISSING: Final = Rule.declare(
    "topic-id-missing",
    KIND,
    means="The partition of a topic that the metadata have does not say the id: Kafka puts it aside as a stray one.",
    repair="Before Kafka starts, copy the file from another partition of the topic, or write it with the topic's id.",
)
NO_TOPIC: Final = Rule.declare(
    "topic-not-in-metadata",
    "partition folder",
    means="The cluster's metadata do not have the topic: Kafka puts the partition aside as a stray one.",
    repair="Move the folder away if the topic was deleted; otherwise restore the metadata before Kafka starts.",
)

_MAX_SIZE: Final = 4096
_WORD: Final = re.compile(rb"\S+")
_VERSION: Final = re.compile(rb"\+?[0-9]{1,10}")


def check_topic_id(folder: PartitionFolder) -> Iterator[Problem]:
    """Check the `partition.metadata` of a partition by itself."""
    if PARTITION_METADATA in folder.files:
        found = _read(folder.read(PARTITION_METADATA, _MAX_SIZE))
        if not isinstance(found, UUID):
            yield FORMAT.broken(PARTITION_METADATA, position=found[0], found=found[1])


def _read(data: bytes) -> UUID | tuple[int, str]:
    """Return the id in a `partition.metadata`, or the position and nature of what is wrong with it."""
    words = list(_WORD.finditer(data))
    expected = (b"version:", b"topic_id:")
    for at, label in enumerate(expected):
        if len(words) <= 2 * at + 1 or words[2 * at][0] != label:
            position = words[2 * at].start() if len(words) > 2 * at else len(data)
            return position, f"{label.decode()} is missing"
    if _VERSION.fullmatch(words[1][0]) is None:
        return words[1].start(), f"version {words[1][0].decode('latin-1')[:40]!r}"
    try:
        topic_id = read_uuid(words[3][0].decode("latin-1"))
    except InvalidInput as error:
        return words[3].start(), str(error)
    return (words[3].start(), "the id is all zeros") if topic_id == ZERO_ID else topic_id


def check_topic_ids(folder: DirectoryFolder) -> Iterator[Problem]:
    """Compare the ids of all partitions of a directory with each other, and with the cluster's metadata."""
    ids = {
        partition: topic_id
        for partition, name in folder.partitions.items()
        if partition.topic != METADATA_TOPIC and (topic_id := read_topic_id(folder.path / name)) is not None
    }
    topics = read_topics(folder.path)
    yield from _compare(folder, ids, topics or {})
    if topics is not None and CLEAN_SHUTDOWN in folder.files:
        for partition, name in folder.partitions.items():
            if partition.topic == METADATA_TOPIC:
                continue
            if partition.topic not in topics:
                yield NO_TOPIC.broken(name, found=f"topic {partition.topic}")
            elif _lacks_topic_id(folder.path / name):
                found = f"the id is {write_uuid(topics[partition.topic])}"
                yield MISSING.broken(f"{name}/{PARTITION_METADATA}", found=found)


def _lacks_topic_id(path: Path) -> bool:
    try:
        return PARTITION_METADATA not in Folder(path).entries
    except OSError:
        return False  # deleted meanwhile


def _compare(folder: DirectoryFolder, ids: dict[TopicPartition, UUID], topics: dict[str, UUID]) -> Iterator[Problem]:
    firsts: dict[str, tuple[TopicPartition, UUID]] = {}
    for partition, topic_id in ids.items():
        file = f"{folder.partitions[partition]}/{PARTITION_METADATA}"
        first, first_id = firsts.setdefault(partition.topic, (partition, topic_id))
        known = topics.get(partition.topic)
        if known is not None and known != topic_id:
            found = f"{write_uuid(topic_id)}, but {write_uuid(known)} in the metadata"
            yield METADATA.broken(file, found=found)
        elif known is None and topic_id != first_id:
            found = f"{write_uuid(topic_id)}, but {write_uuid(first_id)} in {first}"
            yield DIFFERS.broken(file, found=found)


def read_topic_id(path: Path) -> UUID | None:
    """Return the topic's id in the folder of a partition; None if there is none, or none that can be read."""
    try:
        partition = Folder(path)
        if PARTITION_METADATA not in partition.files:
            return None
        found = _read(partition.read(PARTITION_METADATA, _MAX_SIZE))
    except (Gone, OSError):
        return None  # deleted meanwhile, or not readable; the check of the partition says so
    return found if isinstance(found, UUID) else None
