"""`partition.metadata`: the id of the topic that a partition's folder belongs to.

    version: 0
    topic_id: 4Qz2wmGmQ9y8lSzYwPG6Lw

The last line has no line break. The id tells a topic from an older topic of the same name.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from octavo.errors import CorruptFile, InvalidInput
from octavo.log.files.meta_properties import ZERO_ID, read_uuid, write_uuid
from octavo.log.files.small_file import read_small_file
from octavo.log.names import PARTITION_METADATA
from octavo.log.storage import Storage

_MAX_SIZE: Final = 4096
# Like Kafka, accept any version. What a later version adds is not needed here.
_FORM: Final = re.compile(
    rb"version:\s+\+?[0-9]{1,10}(?:\r\n|[\r\n])topic_id:[ \t]+(?P<id>[^\s]+)(?:[\r\n].*)?", re.DOTALL
)


def read_topic_id(storage: Storage, folder: Path) -> uuid.UUID | None:
    """Read the id of the topic that `folder` belongs to; None if the file is missing. Raises `CorruptFile`."""
    path = folder / PARTITION_METADATA
    try:
        data = read_small_file(storage, path, _MAX_SIZE)
    except FileNotFoundError:
        return None
    form = _FORM.fullmatch(data)
    if form is None:
        raise CorruptFile(path, 0, f"{data[:80]!r} is not a version and a topic's id")
    try:
        topic_id = read_uuid(form["id"].decode("latin-1"))
    except InvalidInput as error:
        raise CorruptFile(path, form.start("id"), str(error)) from None
    if topic_id == ZERO_ID:
        raise CorruptFile(path, form.start("id"), "the id of no topic is all zeros")
    return topic_id


def write_topic_id(storage: Storage, folder: Path, topic_id: uuid.UUID) -> None:
    """Record the id of the topic that `folder` belongs to. It is on disk when this returns."""
    write_topic_ids(storage, {folder: topic_id})


def write_topic_ids(storage: Storage, topic_ids: Mapping[Path, uuid.UUID]) -> None:
    """Record for each of these folders the id of its topic. They are on disk when this returns."""
    if ZERO_ID in topic_ids.values():
        raise InvalidInput("the id of no topic is all zeros")
    storage.replace_files(
        {
            folder / PARTITION_METADATA: f"version: 0\ntopic_id: {write_uuid(topic_id)}".encode()
            for folder, topic_id in topic_ids.items()
        }
    )
