"""What all kinds of groups have: `Group`."""

from __future__ import annotations

from abc import ABC, abstractmethod

from octavo.coordinator.groups.requests import CommitRequest, ListedGroup
from octavo.coordinator.journal import Tracked
from octavo.errors import ErrorCode


class Group(Tracked, ABC):
    """A group of one of Kafka's kinds. It has no members where a method does not say otherwise."""

    group_id: str

    @abstractmethod
    def listed(self) -> ListedGroup:
        """Return the group as it stands in a list."""

    @abstractmethod
    def commit_error(self, request: CommitRequest) -> ErrorCode:
        """Return why offsets must not be committed; NONE if they may."""

    @abstractmethod
    def fetch_error(self, member_id: str | None, member_epoch: int) -> ErrorCode:
        """Return why committed offsets must not be told; NONE if they may."""

    @abstractmethod
    def deletion_error(self) -> ErrorCode:
        """Return why the group must not be deleted; NONE if it may."""

    @abstractmethod
    def offset_deletion_error(self) -> ErrorCode:
        """Return why none of its offsets must be deleted; NONE if those of topics may that nobody subscribes to."""

    @abstractmethod
    def subscribes_to(self, topic: str) -> bool:
        """Return whether a member subscribes to a topic, so that its offsets neither expire nor are deleted."""

    @abstractmethod
    def unused_since(self, committed_ms: int) -> int | None:
        """Return since when an offset counts as unused that was committed at a time; None if it is in use."""
