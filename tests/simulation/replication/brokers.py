"""The brokers of the model of a controller: registrations, sessions, fencing and controlled shutdown (`Brokers`)."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from octavo.cluster.messages import (
    BrokerHeartbeatAnswer,
    BrokerHeartbeatRequest,
    BrokerRegistrationAnswer,
    BrokerRegistrationRequest,
    TopicIdPartition,
)
from octavo.errors import ErrorCode
from octavo.schemas.metadata.nodes import RegisterBrokerRecord
from octavo.schemas.metadata.topics import PartitionRecord
from tests.simulation.replication.elections import NOBODY, changed, elr_of
from tests.simulation.replication.metadata_log import Image, MetadataLog

SESSION_MS: Final = 450
_FIRST_EPOCH: Final = 10_000  # far from offsets, so that nobody takes the one for the other


class Brokers:
    """The brokers that an active controller knows, and what changes for partitions when brokers come and go."""

    def __init__(self, min_isr: int, session_ms: int = SESSION_MS) -> None:
        self.min_isr: Final = min_isr
        self.log: Final = MetadataLog(Image({}, {}))
        self._session_ms: Final = session_ms
        self.sessions: Final[dict[int, int]] = {}  # the time of the last heartbeat
        self._registered_at: Final[dict[int, int]] = {}  # the offset of the registration
        self._offsets: Final[dict[int, int]] = {}  # which each has told of in its last heartbeat
        self._shut_down_at: Final[dict[int, int]] = {}  # the offset at which each has begun to leave
        self._next: Image | None = None  # what the present operation has changed so far
        self._changed: Final[set[int]] = set()  # brokers, in the present operation: what they have told is forgotten

    @property
    def brokers(self) -> dict[int, RegisterBrokerRecord]:
        """The brokers now."""
        return (self._next or self.log.images[-1]).brokers

    @property
    def partitions(self) -> dict[TopicIdPartition, PartitionRecord]:
        """The partitions now."""
        return (self._next or self.log.images[-1]).partitions

    @property
    def committed_partitions(self) -> dict[TopicIdPartition, PartitionRecord]:
        """The partitions, as they stay if another controller takes over."""
        return self.log.images[self.log.committed - 1].partitions

    def is_active(self, broker_id: int) -> bool:
        """Return whether a broker may lead, and be in sync."""
        broker = self.brokers.get(broker_id)
        return broker is not None and not broker.fenced and not broker.in_controlled_shutdown

    # ------------------------------------------------------------------------------------------------------ life cycle

    def register(self, request: BrokerRegistrationRequest, now_ms: int) -> BrokerRegistrationAnswer:
        """BrokerRegistration."""
        number = request.broker_id
        known = self.brokers.get(number)
        if known is not None and known.incarnation_id == request.incarnation_id:
            self._write_broker(replace(known, log_dirs=tuple(request.log_dirs)))
            self._end_operation()
            self._registered_at[number] = len(self.log.images) - 1
            self._shut_down_at.pop(number, None)
            return BrokerRegistrationAnswer(0, known.broker_epoch)
        if known is not None and self._has_session(number, now_ms):
            return BrokerRegistrationAnswer(ErrorCode.DUPLICATE_BROKER_REGISTRATION)
        epoch = _FIRST_EPOCH + len(self.log.images)
        if known is not None and request.previous_broker_epoch == known.broker_epoch:
            self._leave(number)
        else:
            self._lose(number)
        self._write_broker(
            RegisterBrokerRecord(
                broker_id=number,
                incarnation_id=request.incarnation_id,
                broker_epoch=epoch,
                end_points=(),
                features=(),
                rack=request.rack,
                fenced=True,
                log_dirs=tuple(request.log_dirs),
            )
        )
        self._end_operation()
        self._registered_at[number] = len(self.log.images) - 1
        for each in (self.sessions, self._shut_down_at, self._offsets):
            each.pop(number, None)
        return BrokerRegistrationAnswer(0, epoch)

    def _has_session(self, number: int, now_ms: int) -> bool:
        return number in self.sessions and now_ms - self.sessions[number] <= self._session_ms

    def heartbeat(self, request: BrokerHeartbeatRequest, now_ms: int) -> BrokerHeartbeatAnswer:
        """BrokerHeartbeat."""
        number = request.broker_id
        broker = self.brokers.get(number)
        if broker is None or broker.broker_epoch != request.broker_epoch:
            return BrokerHeartbeatAnswer(ErrorCode.STALE_BROKER_EPOCH)
        self.sessions[number] = now_ms
        is_caught_up = request.current_metadata_offset >= self._registered_at[number]
        is_fenced, is_leaving, is_granted = self._next_state(request, is_caught_up=is_caught_up)
        if is_fenced and not broker.fenced:
            self._leave(number)
            self._write_broker(replace(broker, fenced=True))
        elif broker.fenced and not is_fenced:
            self._write_broker(replace(broker, fenced=False))
            self._elect(number)
        elif is_leaving and number not in self._shut_down_at:
            self._leave(number)
            if not broker.in_controlled_shutdown:
                self._write_broker(replace(broker, in_controlled_shutdown=True))
        self._offsets[number] = request.current_metadata_offset
        self._end_operation()
        if is_fenced:
            self._shut_down_at.pop(number, None)
        elif is_leaving:
            self._shut_down_at.setdefault(number, len(self.log.images) - 1)
        return BrokerHeartbeatAnswer(0, is_caught_up, is_fenced, is_granted)

    def _next_state(self, request: BrokerHeartbeatRequest, *, is_caught_up: bool) -> tuple[bool, bool, bool]:
        """Return whether a broker is fenced then, whether it leaves, and whether it may shut down."""
        number = request.broker_id
        leads = any(record.leader == number for record in self.partitions.values())
        if number in self._shut_down_at:
            is_granted = not leads and self._shut_down_at[number] <= self._lowest_offset()
            return is_granted, True, is_granted
        if self.brokers[number].fenced:
            is_fenced = request.want_shut_down or request.want_fence or not is_caught_up
            return is_fenced, False, request.want_shut_down
        if request.want_fence or (request.want_shut_down and not leads):
            return True, False, request.want_shut_down
        return False, request.want_shut_down, False

    def _lowest_offset(self) -> int:
        return min((self._offsets.get(number, -1) for number in self.active), default=1 << 62)

    @property
    def active(self) -> list[int]:
        """The brokers for which those wait that shut down."""
        return [n for n, broker in self.brokers.items() if not broker.fenced and n not in self._shut_down_at]

    def is_leaving(self, broker_id: int) -> bool:
        """Return whether a broker waits until it may shut down."""
        return broker_id in self._shut_down_at

    @property
    def unheard(self) -> list[int]:
        """Of those, the ones that have told no offset since they were unfenced."""
        return [number for number in self.active if number not in self._offsets]

    def expire(self, now_ms: int) -> None:
        """Fence the brokers whose sessions are over, one after the other."""
        for number in list(self.sessions):
            if not self._has_session(number, now_ms):
                self.end_session(number)

    def end_session(self, number: int) -> None:
        """Fence a broker that was not heard for too long."""
        del self.sessions[number]
        self._shut_down_at.pop(number, None)
        self._leave(number)
        self._write_broker(replace(self.brokers[number], fenced=True))
        self._end_operation()

    # ------------------------------------------------------------------------------------------------------ partitions

    def _leave(self, number: int) -> None:
        """Take a broker that is fenced, or shuts down, out of the replicas in sync and away from the leadership."""
        for partition, now in self.partitions.items():
            if number in now.isr:
                self._change(partition, _without(now.isr, number), refused=number)

    def _lose(self, number: int) -> None:
        """Trust a broker no more: it may have lost what was not flushed."""
        for partition, now in self.partitions.items():
            if number in now.isr or number in elr_of(now):
                self._change(partition, _without(now.isr, number), refused=number, unclean=(number,))

    def _elect(self, added: int) -> None:
        """Elect leaders where there are none. A broker that was just unfenced may be one, even if it was to leave."""
        for partition, now in self.partitions.items():
            if now.leader == NOBODY:
                self._change(partition, now.isr, added=added)

    def _change(
        self,
        partition: TopicIdPartition,
        isr: tuple[int, ...],
        *,
        refused: int = NOBODY,
        added: int = NOBODY,
        unclean: tuple[int, ...] = (),
        recovery_state: int | None = None,
        is_preferred: bool = False,
    ) -> PartitionRecord:
        now = self.partitions[partition]
        after = changed(
            now,
            isr,
            lambda number: number != refused and (number == added or self.is_active(number)),
            min_isr=self.min_isr,
            unclean=unclean,
            recovery_state=recovery_state,
            is_preferred=is_preferred,
        )
        if after is not now:
            self._write_partition(partition, after)
        return after

    # ---------------------------------------------------------------------------------------------------- metadata log

    def _write_broker(self, broker: RegisterBrokerRecord) -> None:
        image = self._next or self.log.images[-1]
        self._next = image._replace(brokers={**image.brokers, broker.broker_id: broker})
        self._changed.add(broker.broker_id)

    def _write_partition(self, partition: TopicIdPartition, record: PartitionRecord) -> None:
        image = self._next or self.log.images[-1]
        self._next = image._replace(partitions={**image.partitions, partition: record})

    def _end_operation(self) -> None:
        if self._next is not None:
            image, self._next = self._next, None
            self.log.append(image)
            for number in self._changed:
                self._offsets.pop(number, None)
        self._changed.clear()

    def fail_over(self, now_ms: int) -> None:
        """Have another controller take over. It has heard of nobody but those who are not fenced."""
        self.log.fail_over()
        for number, offset in self._registered_at.items():
            self._registered_at[number] = min(offset, len(self.log.images))
        for each in (self.sessions, self._shut_down_at, self._offsets):
            each.clear()
        self.sessions.update((number, now_ms) for number, broker in self.brokers.items() if not broker.fenced)


def _without(isr: tuple[int, ...], number: int) -> tuple[int, ...]:
    return tuple(each for each in isr if each != number)
