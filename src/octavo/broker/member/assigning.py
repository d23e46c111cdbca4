"""Tell the controller where replicas are: `Assigning` sends what `DirectoryAssignments` has collected."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final
from uuid import UUID

from octavo.broker.member.controller import ControllerChannel
from octavo.broker.wire.api_keys import ASSIGN_REPLICAS_TO_DIRS
from octavo.broker.wire.member_messages import (
    ASSIGN_REPLICAS_TO_DIRS_VERSION,
    read_assign_replicas_to_dirs,
    write_assign_replicas_to_dirs,
)
from octavo.cluster.directory_assignments import DirectoryAssignments
from octavo.cluster.leading import ClusterView
from octavo.cluster.replicas import LocalChanges
from octavo.errors import ErrorCode

DIRECTORIES: Final = 17  # the metadata.version from which on records name directories
_TIMEOUT_MS: Final = 60_000


class Assigning:
    """Sends one AssignReplicasToDirs after the other. Nearly always there is nothing to tell."""

    def __init__(
        self,
        channel: ControllerChannel,
        view: ClusterView,
        directory_id: UUID,
        *,
        clock_ms: Callable[[], int],
        poke: Callable[[], object],
    ) -> None:
        """Begin with nothing to tell. `poke`: has `poll` be called soon."""
        self._channel: Final = channel
        self._view: Final = view
        self._directory_id: Final = directory_id
        self._clock_ms: Final = clock_ms
        self._poke: Final = poke
        self._assignments: Final = DirectoryAssignments(view.node_id, directory_id)

    def take(self, changes: LocalChanges, metadata_version: int) -> None:
        """Look at replicas whose records have changed."""
        if metadata_version < DIRECTORIES:
            return
        for partition in changes.deleted:
            self._assignments.update(partition, None)
        for change in (*changes.led, *changes.followed):
            self._assignments.update(change.partition, change.record)
        if self._assignments.next_ms is not None:
            self._poke()

    def poll(self, now_ms: int) -> float:
        """Send what there is to tell. Returns when there is something to do again.

        The directory has to be registered: to the controller, replicas in another one are lost.
        """
        assignments = self._assignments
        registration = self._view.brokers.get(self._view.node_id)
        if registration is None or self._directory_id not in registration.log_dirs:
            return math.inf
        partitions = assignments.next_request(now_ms)
        if partitions:
            body = write_assign_replicas_to_dirs(
                self._view.node_id, self._view.broker_epoch, self._directory_id, partitions
            )
            self._channel.ask(
                ASSIGN_REPLICAS_TO_DIRS,
                ASSIGN_REPLICAS_TO_DIRS_VERSION,
                body,
                answered=self._answered,
                failed=self._failed,
                timeout_ms=_TIMEOUT_MS,
            )
        return math.inf if assignments.next_ms is None else assignments.next_ms

    def _answered(self, body: memoryview) -> bool:
        error_code, partitions = read_assign_replicas_to_dirs(body)
        if error_code == ErrorCode.NOT_CONTROLLER:
            return False
        self._assignments.answered(error_code, partitions, self._clock_ms())
        self._poke()
        return True

    def _failed(self, reason: str) -> None:
        self._assignments.failed(self._clock_ms())
        self._poke()
