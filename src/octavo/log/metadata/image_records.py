"""The records that lead to an image of a cluster, in the order and the versions in which Kafka writes a snapshot."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from octavo.log.files.meta_properties import ZERO_ID
from octavo.log.metadata.cluster_log import DIRECTORIES_VERSION
from octavo.log.metadata.image import METADATA_VERSION, Image, PartitionState
from octavo.schemas.metadata.access import ClientQuotaRecord, EntityData
from octavo.schemas.metadata.nodes import FeatureLevelRecord
from octavo.schemas.metadata.progress import ProducerIdsRecord
from octavo.schemas.metadata.record import MetadataRecord
from octavo.schemas.metadata.serde import write_metadata
from octavo.schemas.metadata.topics import ConfigRecord, TopicRecord

_MIGRATION_VERSION: Final = 14  # metadata.version 3.6-IV2
_ELR_VERSION: Final = 23  # 4.0-IV1
_CORDONED_VERSION: Final = 30  # 4.3-IV0
_ELR: Final = "eligible.leader.replicas.version"


def image_records(image: Image) -> Iterator[bytes]:
    """Yield the values of the records of a snapshot. The image must have no unknown records, and no open transaction.

    The level of metadata.version comes first: it tells how to read the others.
    """
    for record, version in _records(image):
        yield write_metadata(record, version=version)


def _records(image: Image) -> Iterator[tuple[MetadataRecord, int | None]]:
    level = image.metadata_version
    yield FeatureLevelRecord(name=METADATA_VERSION, feature_level=level), None
    for name, feature_level in sorted(image.features.items()):
        if name != METADATA_VERSION:
            yield FeatureLevelRecord(name=name, feature_level=feature_level), None
    for _, broker in sorted(image.brokers.items()):
        yield broker, _broker_version(level)
    for _, controller in sorted(image.controllers.items()):
        yield controller, None
    has_elr = image.features.get(_ELR, 0) > 0
    for name, topic in image.topics().items():
        yield TopicRecord(name=name, topic_id=topic.id), None
        for state in topic.partitions.values():
            yield _partition(state, level, has_elr=has_elr), _partition_version(level)
    for (resource_type, resource), config in sorted(image.configs.items()):
        for name, value in sorted(config.items()):
            yield ConfigRecord(resource_type=resource_type, resource_name=resource, name=name, value=value), None
    yield from ((record, None) for record in _others(image))


def _others(image: Image) -> Iterator[MetadataRecord]:
    for entity, quotas in image.quotas.items():
        parts = tuple(EntityData(entity_type=kind, entity_name=name) for kind, name in entity)
        for key, value in sorted(quotas.items()):
            yield ClientQuotaRecord(entity=parts, key=key, value=value, remove=False)
    if image.next_producer_id > 0:
        yield ProducerIdsRecord(broker_id=-1, broker_epoch=-1, next_producer_id=image.next_producer_id)
    yield from image.access.values()
    yield from image.credentials.values()
    yield from image.tokens.values()


def _partition(state: PartitionState, level: int, *, has_elr: bool) -> PartitionState:
    """Return a partition as it is in a snapshot: without empty lists that say nothing."""
    directories = state.directories
    if level >= DIRECTORIES_VERSION and not directories:
        directories = (ZERO_ID,) * len(state.replicas)  # of a time before directories
    elr = (state.eligible_leader_replicas or None) if has_elr else None
    last_known = (state.last_known_elr or None) if has_elr else None
    return replace(state, directories=directories, eligible_leader_replicas=elr, last_known_elr=last_known)


def _partition_version(level: int) -> int:
    return 2 if level >= _ELR_VERSION else 1 if level >= DIRECTORIES_VERSION else 0


def _broker_version(level: int) -> int:
    if level >= _CORDONED_VERSION:
        return 4
    return 3 if level >= DIRECTORIES_VERSION else 2 if level >= _MIGRATION_VERSION else 1
