"""The configurations of exported topics, so that an import can create them again: `ConfigReader`.

They are in the metadata log of the data directory, if the logs are in one on a local or shared disk. A table has them
in its notes.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final
from uuid import UUID

from octavo.errors import BadTable, InvalidConfig, OctavoError
from octavo.log.config.log_config import LogConfig
from octavo.log.metadata.cluster_log import FOLDER, has_cluster_log, read_cluster_log
from octavo.log.metadata.image import Topic
from octavo.log.storage import DISK
from octavo.spark.ranges import OffsetRange
from octavo.spark.tables.progress import Progress

_log = logging.getLogger("octavo.spark")

_CONFIGS: Final = "octavo.topic_configs"
_KEPT: Final = {"retention.ms": "-1"}  # so that nothing is deleted before somebody says so
_LEFT_OUT: Final = (
    "retention.ms",
    "retention.bytes",
    "local.retention.",  # with remote storage, which an imported topic does not have
    "remote.",
    "min.insync.replicas",  # there is but one replica
    "leader.replication.throttled.replicas",
    "follower.replication.throttled.replicas",
)

Configs = Mapping[str, Mapping[str, str]]  # by the names of the topics


class ConfigReader:
    """Reads the configurations of topics, each topic once: the metadata of a cluster may be large."""

    def __init__(self) -> None:
        self._seen: Final[set[tuple[str, UUID | None]]] = set()

    def read(self, ranges: Iterable[OffsetRange], progress: Progress) -> Configs:
        """Return the configurations of topics that were not asked for before, as far as they are known."""
        found = {}
        by_folder: dict[Path, Mapping[str, Topic]] = {}
        for each in ranges:
            replica = each.source.replica
            name, topic_id = replica.partition.topic, progress[replica.partition].topic_id
            if (name, topic_id) in self._seen or not replica.root.is_local:
                continue
            folder = replica.folder.parent
            if folder not in by_folder:
                by_folder[folder] = _topics_in(folder)
            topic = by_folder[folder].get(name)
            if topic is not None and topic.id == topic_id:
                found[name] = dict(topic.config)
                self._seen.add((name, topic_id))
        return found


def _topics_in(folder: Path) -> Mapping[str, Topic]:
    """Return the topics in the metadata log of a data directory; none if it has no such log, or cannot be read."""
    try:
        if has_cluster_log(folder / FOLDER):
            return read_cluster_log(DISK, folder / FOLDER).image.topics()
    except (OctavoError, OSError) as error:  # rows are worth more than settings
        _log.warning("the configurations of topics in %s are not exported: %s", folder, error)
    return {}


def restorable(config: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a topic that an import gives it again.

    Records are kept for ever: many are older than the topic used to keep them. Settings that make no sense for a single
    replica without remote storage are left out, and those that Octavo does not know.
    """
    found = dict(_KEPT)
    for name, value in config.items():
        if not name.startswith(_LEFT_OUT):
            try:
                LogConfig.from_properties({**found, name: value})
            except InvalidConfig as error:
                _log.warning("a setting of an exported topic is left out: %s", error)
            else:
                found[name] = value
    return found


def with_configs(notes: Mapping[str, str], configs: Configs) -> dict[str, str]:
    """Return the notes of a table with the configurations of these topics; those of others stay."""
    known = {**from_notes(notes), **configs}
    return dict(notes) if not known else {**notes, _CONFIGS: json.dumps(known, sort_keys=True)}


def from_notes(notes: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Return the configurations in the notes of a table. Raises `BadTable`."""
    text = notes.get(_CONFIGS)
    if text is None:
        return {}
    try:
        found = json.loads(text)
        texts = [each for configs in found.values() for pair in configs.items() for each in pair]
    except (AttributeError, ValueError):
        found, texts = {}, [None]
    if not all(isinstance(each, str) for each in texts):
        raise BadTable("", f"its note {_CONFIGS} does not tell the configurations of topics")
    return dict(found)
