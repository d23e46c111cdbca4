"""The rules of `meta.properties` and `.kafka_cleanshutdown`: whose directory it is, and how it was closed.

Old directories have no `meta.properties`. The mark of a clean shutdown is empty in old releases; newer ones write the
epoch of the broker into it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final

from octavo.errors import Corrupt, InvalidInput
from octavo.inspect.verify.directory import DirectoryFolder
from octavo.inspect.verify.problem import Problem, Rule
from octavo.log.files.meta_properties import is_reserved_directory, read_uuid
from octavo.log.files.properties import read_properties
from octavo.log.names import CLEAN_SHUTDOWN, META_PROPERTIES

KIND: Final = "meta.properties"
_REPAIR: Final = (
    "Write the lines `version=1`, `node.id=`, `cluster.id=` and `directory.id=` anew: the node and the cluster are "
    "those of the node's other directories, and the directory's id is the one that the cluster's metadata have, or a "
    "new one."
)

FORMAT: Final = Rule.declare(
    "meta-properties-format",
    KIND,
    means="Kafka cannot read whose directory this is, and takes it offline.",
    repair=_REPAIR,
)
VERSION: Final = Rule.declare(
    "meta-properties-version",
    KIND,
    means="The version is not 0 or 1; Kafka does not start on the directory.",
    repair=_REPAIR,
)
KEYS: Final = Rule.declare(
    "meta-properties-keys",
    KIND,
    means="The node or the cluster is not named; Kafka does not start on the directory.",
    repair=_REPAIR,
)
NODE_ID: Final = Rule.declare(
    "meta-properties-node-id",
    KIND,
    means="The id of the node is not a number that a node can have; Kafka does not start on the directory.",
    repair="Write the node's number from its configuration.",
)
DIRECTORY_ID: Final = Rule.declare(
    "meta-properties-directory-id",
    KIND,
    means="The id of the directory is not one that a directory can have; Kafka does not start on it.",
    repair="Write the directory's id from the cluster's metadata, or a new one.",
)
CLEAN_MARK: Final = Rule.declare(
    "clean-shutdown-content",
    "clean shutdown mark",
    means="The mark has no readable broker epoch: the controller takes the shutdown for an unclean one.",
    repair="Nothing: Kafka starts without recovery, and writes the mark anew when it stops. Do not delete it: without "
    "it, Kafka recovers all logs of the directory.",
)

_MAX_SIZE: Final = 1 << 20
_NUMBER: Final = re.compile(r"\+?[0-9]{1,10}")


def check_identity(folder: DirectoryFolder) -> Iterator[Problem]:
    """Check `meta.properties` and the mark of a clean shutdown."""
    if META_PROPERTIES in folder.files:
        yield from _check_properties(folder.read(META_PROPERTIES, _MAX_SIZE))
    if CLEAN_SHUTDOWN in folder.files:
        wrong = _wrong_mark(folder.read(CLEAN_SHUTDOWN, _MAX_SIZE))
        if wrong:
            yield CLEAN_MARK.broken(CLEAN_SHUTDOWN, position=0, found=wrong)


def _check_properties(data: bytes) -> Iterator[Problem]:
    try:
        properties = read_properties(data)
    except Corrupt as error:
        yield FORMAT.broken(META_PROPERTIES, position=error.position, found=error.rule)
        return

    def broken(rule: Rule, key: str, found: str) -> Problem:
        return rule.broken(META_PROPERTIES, position=max(data.find(key.encode()), 0), found=found)

    version = properties.get("version", "0").strip()
    if version not in {"0", "1"}:
        yield broken(VERSION, "version", f"version {version[:40]!r}")
        return
    needed = ("broker.id",) if version == "0" else ("cluster.id", "node.id")
    for key in needed:
        if not properties.get(key, "").strip():
            yield KEYS.broken(META_PROPERTIES, position=0, found=f"{key} is missing")
    node = properties.get(needed[-1], "").strip()
    if node and (_NUMBER.fullmatch(node) is None or int(node) > (1 << 31) - 1):
        yield broken(NODE_ID, needed[-1], f"{needed[-1]} is {node[:40]!r}")
    directory = properties.get("directory.id")
    if directory is not None and not _is_directory_id(directory):
        yield broken(DIRECTORY_ID, "directory.id", f"directory.id is {directory[:40]!r}")


def _is_directory_id(text: str) -> bool:
    try:
        return not is_reserved_directory(read_uuid(text))
    except InvalidInput:
        return False


def _wrong_mark(data: bytes) -> str | None:
    if not data:
        return None  # as releases before 3.7 leave it
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        return f"{data[:60]!r} is not JSON"
    if not isinstance(content, dict) or content.get("version") != 0 or type(content.get("brokerEpoch")) is not int:
        return f"{data[:60]!r} has no version 0 or no broker epoch"
    return None
