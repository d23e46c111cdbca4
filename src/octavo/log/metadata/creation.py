"""Create a metadata log with which a stock Apache Kafka 4.x starts as the only node.

    00000000000000000000-0000000000.checkpoint   names the node as the one voter of the quorum, as `kafka-storage format
                                                 --standalone` does; Kafka adds its address when it starts
    partition.metadata, quorum-state             as Kafka leaves them
    00000000000000000000.log                     the features of a cluster, then whatever is appended

The features are those of a new cluster of Kafka 4.0, which every 4.x accepts; `kafka-features upgrade` raises them. The
log is written last. A crash before that leaves a folder that counts as empty, and is written again.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final
from uuid import UUID

from octavo.log.files.meta_properties import METADATA_TOPIC_ID
from octavo.log.files.partition_metadata import write_topic_id
from octavo.log.metadata.cluster_log import FIRST_EPOCH, FOLDER, SnapshotId
from octavo.log.metadata.quorum_state import QuorumLeader, write_quorum_state
from octavo.log.names import LOG, file_name
from octavo.log.storage import Storage
from octavo.records import BatchBuilder
from octavo.records.control import (
    Control,
    Endpoint,
    KRaftVersion,
    KRaftVoter,
    KRaftVoters,
    SnapshotFooter,
    SnapshotHeader,
    control_batch,
)
from octavo.schemas.metadata.nodes import FeatureLevelRecord
from octavo.schemas.metadata.record import MetadataRecord
from octavo.schemas.metadata.serde import UnknownRecord, write_metadata

LISTENER: Final = "CONTROLLER"  # name of the controller listener in Kafka's own server.properties
CONTROLLER_PORT: Final = 9093
BOOTSTRAP: Final = SnapshotId(0, 0)

FEATURES: Final[tuple[MetadataRecord, ...]] = (
    FeatureLevelRecord(name="metadata.version", feature_level=25),  # 4.0-IV3
    FeatureLevelRecord(name="group.version", feature_level=1),
    FeatureLevelRecord(name="transaction.version", feature_level=2),
)


def create_cluster_log(
    storage: Storage,
    root: Path,
    *,
    node_id: int,
    directory_id: UUID,
    records: Sequence[MetadataRecord | UnknownRecord] = FEATURES,
    timestamp_ms: int,
) -> None:
    """Create the metadata log in the data folder `root`. It is on the disk when this returns."""
    folder = root / FOLDER
    if not folder.is_dir():
        storage.make_folder(folder)
        storage.sync_folder(root)
    write_topic_id(storage, folder, METADATA_TOPIC_ID)
    storage.replace_file(folder / BOOTSTRAP.file_name, _voters_snapshot(node_id, directory_id, timestamp_ms))
    # Without this file Kafka logs a warning, and determines its state by itself.
    write_quorum_state(storage, folder, QuorumLeader(FIRST_EPOCH), kraft_version=1, voters=None)
    builder = BatchBuilder(leader_epoch=FIRST_EPOCH)
    for record in records:
        builder.append(None, write_metadata(record), timestamp_ms=timestamp_ms)
    storage.replace_file(folder / file_name(0, LOG), builder.build())


def _voters_snapshot(node_id: int, directory_id: UUID, timestamp_ms: int) -> bytes:
    voter = KRaftVoter(
        id=node_id,
        directory_id=directory_id,
        endpoints=(Endpoint(name=LISTENER, host="localhost", port=CONTROLLER_PORT),),
        max_supported_version=1,
    )
    head: list[Control] = [
        SnapshotHeader(last_contained_log_timestamp_ms=0),
        KRaftVersion(kraft_version=1),
        KRaftVoters(voters=(voter,)),
    ]
    first = control_batch(head, timestamp_ms=timestamp_ms, leader_epoch=BOOTSTRAP.epoch)
    return first + control_batch(
        [SnapshotFooter()], base_offset=len(head), timestamp_ms=timestamp_ms, leader_epoch=BOOTSTRAP.epoch
    )
