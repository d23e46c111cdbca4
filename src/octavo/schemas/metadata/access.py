"""Records for access control, credentials, tokens and quotas."""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from octavo.schemas.entity import entity, kafka
from octavo.schemas.metadata.record import MetadataRecord


@entity
class AccessControlEntryRecord(MetadataRecord):
    """An access control entry."""

    TYPE: ClassVar = 18
    VERSIONS: ClassVar = range(1)

    id: UUID = kafka("uuid")
    resource_type: int = kafka("int8")
    resource_name: str = kafka("string")
    pattern_type: int = kafka("int8")
    principal: str = kafka("string")
    host: str = kafka("string")
    operation: int = kafka("int8")
    permission_type: int = kafka("int8")


@entity
class RemoveAccessControlEntryRecord(MetadataRecord):
    """An access control entry was removed."""

    TYPE: ClassVar = 19
    VERSIONS: ClassVar = range(1)

    id: UUID = kafka("uuid")


@entity
class UserScramCredentialRecord(MetadataRecord):
    """The data that verify a user's SCRAM password."""

    TYPE: ClassVar = 11
    VERSIONS: ClassVar = range(1)

    name: str = kafka("string")
    mechanism: int = kafka("int8")
    salt: bytes = kafka("bytes")
    stored_key: bytes = kafka("bytes")
    server_key: bytes = kafka("bytes")
    iterations: int = kafka("int32")


@entity
class RemoveUserScramCredentialRecord(MetadataRecord):
    """A user's SCRAM credential was removed."""

    TYPE: ClassVar = 22
    VERSIONS: ClassVar = range(1)

    name: str = kafka("string")
    mechanism: int = kafka("int8")


@entity
class DelegationTokenRecord(MetadataRecord):
    """A delegation token, new or renewed."""

    TYPE: ClassVar = 10
    VERSIONS: ClassVar = range(1)

    owner: str = kafka("string")
    requester: str = kafka("string")
    renewers: tuple[str, ...] = kafka("[]string")
    issue_timestamp: int = kafka("int64")
    max_timestamp: int = kafka("int64")
    expiration_timestamp: int = kafka("int64")
    token_id: str = kafka("string")


@entity
class RemoveDelegationTokenRecord(MetadataRecord):
    """A delegation token was removed."""

    TYPE: ClassVar = 26
    VERSIONS: ClassVar = range(1)

    token_id: str = kafka("string")


@entity
class EntityData:
    """One part of the entity that a quota applies to, such as a user or a client id."""

    entity_type: str = kafka("string")
    entity_name: str | None = kafka("string", nullable=True)


@entity
class ClientQuotaRecord(MetadataRecord):
    """A quota was set or removed."""

    TYPE: ClassVar = 14
    VERSIONS: ClassVar = range(1)

    entity: tuple[EntityData, ...] = kafka("[]")
    key: str = kafka("string")
    value: float = kafka("float64")
    remove: bool = kafka("bool")
