"""Hand a data directory over to Apache Kafka, with every commit of staged batches finished: `handover`.

Kafka knows nothing of such commits. If one is pending, its records may be in some of the partitions and not in others,
and consumers would see that until Octavo opens the directory again.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

from octavo.errors import CommitPending, OctavoError
from octavo.log.clock import wall_clock_ms
from octavo.log.config.broker_defaults import BrokerDefaults
from octavo.log.directory.by_default import expiring_bytes
from octavo.log.directory.data_directory import DataDirectory
from octavo.log.metadata import Handover, MetadataStore
from octavo.log.metadata import handover as handover_metadata
from octavo.log.names import COMMIT_JOURNAL
from octavo.log.storage import DISK, Storage
from octavo.log.watched.remote_parts import remote_parts
from octavo.log.watched.watched_directory import WatchedDirectory


def handover(folders: Sequence[Path], *, storage: Storage = DISK) -> Handover:
    """Prepare the directory in `folders` so that a stock Apache Kafka 4.x starts on it and serves it.

    A commit of staged batches that was interrupted is finished first. Raises `DirectoryLocked`, `BadDirectory`,
    `CorruptFile` and `OSError` if that is not possible, `CommitUnresolved` if a commit cannot be finished, and
    `CommitPending` if there is no room for it on the disk.
    """
    was_pending = _has_pending(folders, storage)
    if was_pending:
        DataDirectory.open(folders, storage=storage).close()
        if _has_pending(folders, storage):
            raise CommitPending("the disk is full")
    done = handover_metadata(folders, storage=storage)
    remote = tuple(part for folder in folders for part in remote_parts(folder))
    return replace(done, finished_commit=was_pending, expiring=_expiring(folders, storage), remote=remote)


def _expiring(folders: Sequence[Path], storage: Storage) -> dict[str, int]:
    """Return how many bytes of which topics Kafka deletes if nobody tells it how long records are kept."""
    metadata = MetadataStore.open(folders, storage=storage, read_only=True)
    defaults = BrokerDefaults(metadata, as_broker=True, was_served=True)
    configs = {
        name: defaults.config_of(topic).config
        for name, topic in metadata.topics.items()
        if defaults.awaits_retention(topic)
    }
    views = []
    with closing(WatchedDirectory(folders, storage)) as watched:
        for partition in watched.partitions():
            if partition.topic in configs:
                with suppress(OctavoError, OSError):  # a damaged log is no reason to refuse what is done already
                    views.append((partition, configs[partition.topic], watched.log(*partition).view))
        return {topic: size for topic, size in expiring_bytes(views, wall_clock_ms()).items() if size}


def _has_pending(folders: Sequence[Path], storage: Storage) -> bool:
    if not any((folder / COMMIT_JOURNAL).exists() for folder in folders):
        return False
    from octavo.log.staging.journal import journal_path, read_journal  # which takes a moment to load

    return read_journal(storage, journal_path(list(folders))).pending is not None
