"""What records of metadata have changed: `Delta`, from which those who use the metadata learn what to look at again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from octavo.schemas.metadata.nodes import (
    BrokerRegistrationChangeRecord,
    FeatureLevelRecord,
    FenceBrokerRecord,
    RegisterBrokerRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
)
from octavo.schemas.metadata.progress import NoOpRecord
from octavo.schemas.metadata.record import MetadataRecord
from octavo.schemas.metadata.topics import (
    ClearElrRecord,
    ConfigRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)

_OF_BROKERS: Final = frozenset(
    {
        RegisterBrokerRecord,
        UnregisterBrokerRecord,
        BrokerRegistrationChangeRecord,
        FenceBrokerRecord,
        UnfenceBrokerRecord,
    }
)
_NOTED_APART: Final = frozenset(  # by their keys; a no-op changes nothing
    {
        TopicRecord,
        RemoveTopicRecord,
        PartitionRecord,
        PartitionChangeRecord,
        ClearElrRecord,
        ConfigRecord,
        NoOpRecord,
    }
)


@dataclass(slots=True)
class Delta:
    """What differs between two images of a cluster."""

    changed_topics: set[UUID] = field(default_factory=set)  # made, removed or changed, if only in their configuration
    changed_configs: set[tuple[int, str]] = field(default_factory=set)  # by resource type and name
    has_brokers: bool = False
    has_features: bool = False
    has_others: bool = False  # quotas, credentials and what else there is

    def __bool__(self) -> bool:
        """Return whether anything differs."""
        return bool(
            self.changed_topics or self.changed_configs or self.has_brokers or self.has_features or self.has_others
        )

    @property
    def has_configs(self) -> bool:
        """Whether a configuration has changed."""
        return bool(self.changed_configs)

    def note(self, record: MetadataRecord) -> None:
        """Note what a record changes, except for topics and configurations, which are noted by their keys."""
        kind = type(record)
        if kind in _NOTED_APART:
            return
        if kind in _OF_BROKERS:
            self.has_brokers = True
        elif kind is FeatureLevelRecord:
            self.has_features = True
        else:
            self.has_others = True

    def add(self, other: Delta) -> None:
        """Note what another delta has as well."""
        self.changed_topics |= other.changed_topics
        self.changed_configs |= other.changed_configs
        self.has_brokers |= other.has_brokers
        self.has_features |= other.has_features
        self.has_others |= other.has_others


def everything(topics: Iterable[UUID], configs: Iterable[tuple[int, str]]) -> Delta:
    """Return the delta of an image that is all new, with these topics and configurations."""
    return Delta(set(topics), set(configs), has_brokers=True, has_features=True, has_others=True)
