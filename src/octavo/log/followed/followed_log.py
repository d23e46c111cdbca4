"""The log of the controllers on a node that follows them: an ordinary `Log` in `__cluster_metadata-0`.

Kafka keeps nothing of this log in the checkpoints of the data directory: it is scanned whole at every start, and begins
where its snapshot ends. So these offsets are kept in memory (`MemoryCheckpoints`). A segment is on the disk before the
next one begins, so that a power cut leaves a prefix.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from octavo.log.checkpoints import Checkpoints, Offsets
from octavo.log.clock import Clock
from octavo.log.config.log_config import LogConfig
from octavo.log.files.meta_properties import METADATA_TOPIC_ID
from octavo.log.files.partition_metadata import write_topic_id
from octavo.log.log import Log
from octavo.log.metadata.cluster_log import MAX_BATCH
from octavo.log.names import PARTITION_METADATA
from octavo.log.ownership.owner import Owner
from octavo.log.partition_folders import METADATA_PARTITION
from octavo.log.recovery.loading import check_partition
from octavo.log.recovery.recover import Recover
from octavo.log.storage import Storage
from octavo.log.writing.log_state import LogState


class MemoryCheckpoints(Checkpoints):
    """The checkpoints of a log that needs none on the disk."""

    def _write(self, changed: Mapping[str, Offsets]) -> None:
        self._offsets.update(changed)


def open_followed_log(
    folder: Path,
    owner: Owner,
    *,
    storage: Storage,
    clock: Clock,
    segment_bytes: int,
    segment_ms: int,
) -> Log:
    """Open the log of the controllers, or make it. The caller holds the lock of the data directory.

    Batches that a power cut has damaged are cut off, and everything after them. Raises as `check_partition` does.
    """
    if not folder.is_dir():
        storage.make_folder(folder)
        storage.sync_folder(folder.parent)
    if not (folder / PARTITION_METADATA).exists():
        write_topic_id(storage, folder, METADATA_TOPIC_ID)
    check_partition(storage, folder, start_offset=0, may_have_gaps=True)
    state = LogState.load(
        folder,
        METADATA_PARTITION,
        LogConfig(
            segment_bytes=segment_bytes, segment_ms=segment_ms, max_message_bytes=MAX_BATCH, file_delete_delay_ms=0
        ),
        MemoryCheckpoints(storage, folder, owner),
        clean=False,
        leader_epoch=0,
        is_only_replica=False,
        config_is_known=True,
        may_have_gaps=True,
        storage=storage,
        clock=clock,
        on_progress=None,
        recover=Recover.AS_KAFKA,
    )
    return Log(state, state.close)
