"""Ask the controller for changes of ISRs: `Altering` sends what `IsrChanges` has collected."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from octavo.broker.member.surroundings import Surroundings
from octavo.broker.wire.api_keys import ALTER_PARTITION
from octavo.broker.wire.member_messages import ALTER_PARTITION_VERSION, read_alter_partition, write_alter_partition
from octavo.cluster.isr_changes import IsrChanges
from octavo.cluster.leading import ClusterView, IsrChange
from octavo.cluster.messages import AlteredPartition, AlterPartitionAnswer, Endpoint

_CHANNEL: Final = "changes"
_LOOK_MS: Final = 20  # while nobody knows the active controller


class Altering:
    """Sends one AlterPartition after the other."""

    def __init__(
        self, here: Surroundings, view: ClusterView, *, timeout_ms: int, controller: Callable[[], Endpoint | None]
    ) -> None:
        """Begin with nothing to ask for. `controller`: returns where the active one is, as far as that is known."""
        self.settled: Callable[[IsrChange, AlteredPartition], None] = lambda *_: None  # takes what has become of one
        self._here: Final = here
        self._view: Final = view
        self._timeout_ms: Final = timeout_ms
        self._controller: Final = controller
        self._changes: Final = IsrChanges(here.node_id)
        self._asked: Endpoint | None = None  # the controller whose answer is awaited

    def submit(self, change: IsrChange) -> bool:
        """Ask for a change. Returns False if an older one of the partition waits."""
        self._here.poke()
        return self._changes.submit(change)

    def poll(self, now_ms: int) -> float:
        """Ask what there is to ask. Returns when there is something to do again."""
        changes = self._changes
        endpoint = self._controller()
        if self._asked is not None and endpoint not in (None, self._asked):  # one that hangs would not tell
            self._here.peers.disconnect(self._asked, _CHANNEL, "the node is not the active controller")
        due_ms = changes.next_ms
        if due_ms is None:
            return math.inf
        if endpoint is None or now_ms < due_ms:
            return max(due_ms, now_ms + _LOOK_MS)
        request = changes.next_request(self._view.broker_epoch, now_ms)
        if request is not None:
            self._asked = endpoint
            self._here.ask(
                endpoint,
                _CHANNEL,
                (ALTER_PARTITION, ALTER_PARTITION_VERSION),
                write_alter_partition(request),
                read_alter_partition,
                self._answered,
                self._failed,
                timeout_ms=self._timeout_ms,
            )
        return math.inf  # until the answer comes

    def _answered(self, answer: AlterPartitionAnswer) -> None:
        self._asked = None
        for change, altered in self._changes.answered(answer, self._here.now_ms()).answers:
            self.settled(change, altered)

    def _failed(self, reason: str) -> None:
        self._asked = None
        self._changes.failed(self._here.now_ms())
