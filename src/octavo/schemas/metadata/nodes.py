"""Records for brokers and controllers, and the features they support."""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from octavo.schemas.entity import entity, kafka
from octavo.schemas.metadata.record import MetadataRecord


@entity
class BrokerEndpoint:
    """An address at which clients reach a broker."""

    name: str = kafka("string")
    host: str = kafka("string")
    port: int = kafka("uint16")
    security_protocol: int = kafka("int16")


@entity
class BrokerFeature:
    """The range of levels of a feature that a broker supports."""

    name: str = kafka("string")
    min_supported_version: int = kafka("int16")
    max_supported_version: int = kafka("int16")


@entity
class RegisterBrokerRecord(MetadataRecord):
    """A broker has registered."""

    TYPE: ClassVar = 0
    VERSIONS: ClassVar = range(5)

    broker_id: int = kafka("int32")
    is_migrating_zk_broker: bool = kafka("bool", since=2, default=False)
    incarnation_id: UUID = kafka("uuid")
    broker_epoch: int = kafka("int64")
    end_points: tuple[BrokerEndpoint, ...] = kafka("[]")
    features: tuple[BrokerFeature, ...] = kafka("[]")
    rack: str | None = kafka("string", nullable=True)
    fenced: bool = kafka("bool", default=True)
    in_controlled_shutdown: bool = kafka("bool", since=1, default=False)
    log_dirs: tuple[UUID, ...] = kafka("[]uuid", since=3, tag=0, default=())
    cordoned_log_dirs: tuple[UUID, ...] | None = kafka("[]uuid", since=4, tag=1, nullable=True, default=None)


@entity
class UnregisterBrokerRecord(MetadataRecord):
    """A broker was removed from the cluster."""

    TYPE: ClassVar = 1
    VERSIONS: ClassVar = range(1)

    broker_id: int = kafka("int32")
    broker_epoch: int = kafka("int64")


@entity
class FenceBrokerRecord(MetadataRecord):
    """A broker is fenced; written before Kafka 3.3."""

    TYPE: ClassVar = 7
    VERSIONS: ClassVar = range(1)

    id: int = kafka("int32")
    epoch: int = kafka("int64")


@entity
class UnfenceBrokerRecord(MetadataRecord):
    """A broker is no longer fenced; written before Kafka 3.3."""

    TYPE: ClassVar = 8
    VERSIONS: ClassVar = range(1)

    id: int = kafka("int32")
    epoch: int = kafka("int64")


@entity
class BrokerRegistrationChangeRecord(MetadataRecord):
    """A change in a broker's registration.

    A field with its default value means no change. A flag is 1 if it is now set, and -1 if it is now cleared.
    """

    TYPE: ClassVar = 17
    VERSIONS: ClassVar = range(4)

    broker_id: int = kafka("int32")
    broker_epoch: int = kafka("int64")
    fenced: int = kafka("int8", tag=0, default=0)
    in_controlled_shutdown: int = kafka("int8", since=1, tag=1, default=0)
    log_dirs: tuple[UUID, ...] = kafka("[]uuid", since=2, tag=2, default=())
    cordoned_log_dirs: tuple[UUID, ...] | None = kafka("[]uuid", since=3, tag=3, nullable=True, default=None)


@entity
class ControllerEndpoint:
    """An address at which a controller can be reached."""

    name: str = kafka("string")
    host: str = kafka("string")
    port: int = kafka("uint16")
    security_protocol: int = kafka("int16")


@entity
class ControllerFeature:
    """The range of levels of a feature that a controller supports."""

    name: str = kafka("string")
    min_supported_version: int = kafka("int16")
    max_supported_version: int = kafka("int16")


@entity
class RegisterControllerRecord(MetadataRecord):
    """A controller has registered."""

    TYPE: ClassVar = 27
    VERSIONS: ClassVar = range(1)

    controller_id: int = kafka("int32")
    incarnation_id: UUID = kafka("uuid")
    zk_migration_ready: bool = kafka("bool")
    end_points: tuple[ControllerEndpoint, ...] = kafka("[]")
    features: tuple[ControllerFeature, ...] = kafka("[]")


@entity
class FeatureLevelRecord(MetadataRecord):
    """The level of a feature from this record on; 0 turns it off. `metadata.version` is one of the features."""

    TYPE: ClassVar = 12
    VERSIONS: ClassVar = range(1)

    name: str = kafka("string")
    feature_level: int = kafka("int16")


@entity
class ZkMigrationStateRecord(MetadataRecord):
    """The state of a migration from ZooKeeper; Kafka 4 writes only NONE."""

    TYPE: ClassVar = 21
    VERSIONS: ClassVar = range(1)

    zk_migration_state: int = kafka("int8")
