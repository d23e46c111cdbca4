"""Metadata logs with records that somebody else has added, such as the controllers of a cluster."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final
from uuid import UUID

from octavo.log.metadata import MetadataStore
from octavo.log.metadata.cluster_log import FOLDER, read_cluster_log
from octavo.log.storage import DISK
from octavo.records import BatchBuilder
from octavo.records.control import LeaderChange, QuorumVoter, control_batch
from octavo.schemas.metadata.nodes import BrokerEndpoint, RegisterBrokerRecord
from octavo.schemas.metadata.record import MetadataRecord
from octavo.schemas.metadata.serde import write_metadata

PLAINTEXT: Final = 0


def add_metadata(data: Path, *records: MetadataRecord) -> None:
    """Append a batch of records, with a right checksum, to the metadata log of `data`."""
    log = read_cluster_log(DISK, data / FOLDER)
    builder = BatchBuilder(base_offset=log.next_offset, leader_epoch=log.leader_epoch)
    for record in records:
        builder.append(None, write_metadata(record), timestamp_ms=0)
    _append(data, builder.build())


def add_voters(data: Path, leader_id: int, *voters: int) -> None:
    """Have the quorum say who votes in it, as every new leader does."""
    log = read_cluster_log(DISK, data / FOLDER)
    told = tuple(QuorumVoter(id=number) for number in voters)
    change = LeaderChange(leader_id=leader_id, voters=told, granting_voters=told)
    epoch = log.leader_epoch + 1
    _append(data, control_batch([change], base_offset=log.next_offset, timestamp_ms=0, leader_epoch=epoch))


def add_replicas(data: Path, topic: str, *replicas: int) -> None:
    """Have the partitions of a topic be on these nodes."""
    states = MetadataStore.open([data], storage=DISK, read_only=True).topics[topic].partitions.values()
    add_metadata(
        data,
        *(
            replace(
                state, replicas=replicas, isr=replicas, directories=tuple(UUID(int=1000 + each) for each in replicas)
            )
            for state in states
        ),
    )


def registered_broker(node_id: int, *log_dirs: UUID, host: str = "localhost", port: int = 9092) -> RegisterBrokerRecord:
    """A broker that has announced itself."""
    return RegisterBrokerRecord(
        broker_id=node_id,
        incarnation_id=UUID(int=4711 + node_id),
        broker_epoch=7,
        end_points=(BrokerEndpoint(name="PLAINTEXT", host=host, port=port, security_protocol=PLAINTEXT),),
        features=(),
        rack=None,
        log_dirs=log_dirs,
    )


def _append(data: Path, batch: bytes) -> None:
    with (data / FOLDER / "00000000000000000000.log").open("ab") as file:
        file.write(batch)
