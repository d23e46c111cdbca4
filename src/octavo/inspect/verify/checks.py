"""The lists of all checks. A module of checks takes part by being named here."""

from __future__ import annotations

from typing import Final

from octavo.inspect.verify.checkpoints import LogBounds, check_checkpoints
from octavo.inspect.verify.directory import DirectoryCheck
from octavo.inspect.verify.directory_identity import check_identity
from octavo.inspect.verify.kraft import MetadataLog, check_bootstrap, check_metadata_folder
from octavo.inspect.verify.leader_epochs import LeaderEpochs
from octavo.inspect.verify.leftovers import check_file_names, check_folder_names
from octavo.inspect.verify.lost_segments import LostSegments
from octavo.inspect.verify.offset_index import OffsetIndexCheck
from octavo.inspect.verify.partition import BatchCheck, FolderCheck
from octavo.inspect.verify.producer_checks import ProducerChecks
from octavo.inspect.verify.remote_log import check_remote_offsets, check_remote_snapshot
from octavo.inspect.verify.replicas import difference as _difference  # noqa: F401 - declares rules
from octavo.inspect.verify.sequences import SequenceCheck
from octavo.inspect.verify.time_index import TimeIndexCheck
from octavo.inspect.verify.topic_ids import check_topic_id, check_topic_ids

# Each is called with a `PartitionFolder` before any batch is read.
FOLDER_CHECKS: Final[list[FolderCheck]] = [
    check_file_names,
    check_topic_id,
    check_metadata_folder,
    check_remote_snapshot,
]

# Each is made once for a partition folder, and is shown the batches of all its segments. The first ones need no more
# than one segment.
SEGMENT_CHECKS: Final[list[type[BatchCheck]]] = [
    OffsetIndexCheck,
    TimeIndexCheck,
    SequenceCheck,
]
BATCH_CHECKS: Final[list[type[BatchCheck]]] = [
    *SEGMENT_CHECKS,
    ProducerChecks,
    LeaderEpochs,
    LogBounds,
    LostSegments,
    MetadataLog,
]

# Each is called with a `DirectoryFolder`: the files of a data directory itself, not those of its partitions.
DIRECTORY_CHECKS: Final[list[DirectoryCheck]] = [
    check_folder_names,
    check_identity,
    check_checkpoints,
    check_topic_ids,
    check_bootstrap,
    check_remote_offsets,
]
