"""The life of a broker in a cluster: `LifeCycle` registers it, sends heartbeats, and asks to shut down.

    life = LifeCycle(registration, now_ms)
    request = life.next_request(now_ms, metadata_offset)    # to the active controller; None if there is nothing to send
    events = life.registered(answer, now_ms)                # or `heard`, or `failed` if there was no answer
    events = life.tick(now_ms)                              # time has passed

One request is under way at a time. Whoever sends it gives it up after `heartbeat_ms`, and drops an answer that comes
later. The controller does not tell a broker that it is fenced: only metadata do, and the next heartbeat may end it.
"""

from __future__ import annotations

from enum import Enum, IntEnum, auto
from typing import Final
from uuid import UUID

from octavo.cluster.messages import (
    NO_EPOCH,
    NONE,
    BrokerHeartbeatAnswer,
    BrokerHeartbeatRequest,
    BrokerRegistrationAnswer,
    BrokerRegistrationRequest,
)
from octavo.errors import ErrorCode

HEARTBEAT_MS: Final = 2000  # broker.heartbeat.interval.ms
REGISTRATION_MS: Final = 60_000  # initial.broker.registration.timeout.ms
SHUT_DOWN_MS: Final = 300_000  # how long a broker waits until it may shut down
REPORT_MS: Final = 30_000  # log.dir.failure.timeout.ms
_STARTING_MS: Final = 10  # between heartbeats until the broker has caught up
_FIRST_WAIT_MS: Final = 50  # until the second heartbeat of a shutdown


class State(IntEnum):
    """The state of a broker, with Kafka's numbers."""

    STARTING = 1  # the metadata log is read up to the registration
    RECOVERY = 2  # logs are opened
    RUNNING = 3  # it may lead partitions
    PENDING_CONTROLLED_SHUTDOWN = 6  # leadership moves to others
    SHUTTING_DOWN = 7  # nothing is sent any more: a heartbeat would bring the broker back


class Event(Enum):
    """What the rest of the broker has to know."""

    REGISTERED = auto()  # the broker has an epoch
    CAUGHT_UP = auto()  # open the logs, then call `ready`
    UNFENCED = auto()  # serve clients
    REPORTED = auto()  # the controller knows of all directories that have failed
    SHUT_DOWN = auto()  # stop serving
    GAVE_UP = auto()  # the broker could not register, or not report a failed directory, and has to stop
    NOT_CONTROLLER = auto()  # look for the active controller


class LifeCycle:
    """The life of one process as a broker."""

    def __init__(
        self,
        registration: BrokerRegistrationRequest,
        now_ms: int,
        *,
        heartbeat_ms: int = HEARTBEAT_MS,
        registration_timeout_ms: int = REGISTRATION_MS,
        shut_down_timeout_ms: int = SHUT_DOWN_MS,
        report_timeout_ms: int = REPORT_MS,
    ) -> None:
        """Begin to register.

        registration: its `previous_broker_epoch` is that of the last run only if all its data were flushed and closed
        """
        self.state = State.STARTING
        self.broker_epoch = NO_EPOCH
        self.refusal = NONE  # the controller's last error; it tells why a broker could not register
        self.knows_cordons = False  # whether metadata.version is so high that heartbeats name cordoned directories
        self._registration: Final = registration
        self._heartbeat_ms: Final = heartbeat_ms
        self._shut_down_timeout_ms: Final = shut_down_timeout_ms
        self._report_timeout_ms: Final = report_timeout_ms
        self._give_up_ms: int | None = now_ms + registration_timeout_ms  # None once it has registered
        self._shut_down_ms: int | None = None  # when it shuts down, whatever the controller says
        self._failed_dirs: Final[dict[UUID, int | None]] = {}  # until when each has to be reported; None: it is
        self._reported: tuple[UUID, ...] = ()  # the failed directories in the heartbeat that is under way
        self._is_registered = False
        self._is_unregistered = False  # somebody has removed it from the cluster
        self._is_ready = False
        self._is_under_way = False
        self._is_urgent = False  # send the next request as soon as the one under way is answered
        self._due_ms = now_ms
        self._is_second_wait = False

    # -------------------------------------------------------------------------------------------- what others decide

    def ready(self, now_ms: int) -> None:
        """Note that all logs are open and the first metadata are published: the broker may lead partitions."""
        self._is_ready = True
        self._hurry(now_ms)

    def register_again(self, now_ms: int) -> None:
        """Register again with the same incarnation. The broker keeps its epoch."""
        self._is_registered = False
        self._hurry(now_ms)

    def look_at_registration(self, *, is_there: bool) -> None:
        """Note whether the metadata know this broker. One that was removed stays out until it is started again."""
        self._is_unregistered = self.state is State.RUNNING and not is_there
        self._is_registered = self._is_registered or self._is_unregistered  # no registration, but heartbeats

    def fail_directory(self, directory: UUID, now_ms: int) -> None:
        """Report a directory that has failed, and ask to be fenced. If that takes too long, the broker gives up.

        A leader that learns of the report while the broker is still unfenced would wait for it: it was in sync a moment
        ago, and might come back. Kafka's leaders do not look again until somebody writes.
        """
        self._failed_dirs.setdefault(directory, now_ms + self._report_timeout_ms)
        if self._is_registered:
            self._hurry(now_ms)

    def begin_shutdown(self, now_ms: int) -> list[Event]:
        """Ask the controller to have others lead this broker's partitions. A broker that leads none stops at once."""
        if self.state is State.RUNNING and not self._is_unregistered:
            self.state = State.PENDING_CONTROLLED_SHUTDOWN
            self._shut_down_ms = now_ms + self._shut_down_timeout_ms
            self._hurry(now_ms)
            return []
        if self.state is State.PENDING_CONTROLLED_SHUTDOWN:
            return []
        return self._shut_down()

    def leave_at_once(self) -> list[Event]:
        """Shut down without the controller's consent: it does not answer, or somebody is in a hurry."""
        return [] if self.state is State.SHUTTING_DOWN else self._shut_down()

    @property
    def clean_epoch(self) -> int:
        """The broker epoch to leave behind after a clean stop, for the next registration.

        A process that stops before it was registered has changed nothing, and leaves behind what it found. (Kafka
        leaves -1, and the controller then takes the last complete replica for a damaged one.)
        """
        return self._registration.previous_broker_epoch if self.broker_epoch == NO_EPOCH else self.broker_epoch

    @property
    def may_repeat(self) -> bool:
        """Whether the last heartbeat may be repeated: the broker serves, and has nothing new to say."""
        return self.state is State.RUNNING and self._is_registered and not self._failed_dirs

    # ------------------------------------------------------------------------------------------------------- requests

    def next_request(
        self, now_ms: int, metadata_offset: int
    ) -> BrokerRegistrationRequest | BrokerHeartbeatRequest | None:
        """Return the request to send now; None if it is not the time, or one is under way.

        metadata_offset: the offset of the last metadata record that was applied, not of the next
        """
        if self._is_under_way or self.state is State.SHUTTING_DOWN or now_ms < self._due_ms:
            return None
        self._is_under_way = True
        if not self._is_registered:
            return self._registration
        self._reported = tuple(self._failed_dirs)
        return BrokerHeartbeatRequest(
            self._registration.broker_id,
            self.broker_epoch,
            metadata_offset,
            want_fence=not self._is_ready or bool(self._reported),
            want_shut_down=self.state is State.PENDING_CONTROLLED_SHUTDOWN,
            offline_log_dirs=self._reported,
            cordoned_log_dirs=() if self.knows_cordons and self.state is not State.STARTING else None,
        )

    @property
    def next_ms(self) -> int | None:
        """The time at which `next_request` or `tick` has something to do; None if there is no such time."""
        if self.state is State.SHUTTING_DOWN:
            return None
        times = [self._give_up_ms, self._shut_down_ms, *self._failed_dirs.values()]
        if not self._is_under_way:
            times.append(self._due_ms)
        return min((time for time in times if time is not None), default=None)

    def tick(self, now_ms: int) -> list[Event]:
        """Give up what has taken too long."""
        if self.state is State.SHUTTING_DOWN:
            return []
        reports = (time for time in self._failed_dirs.values() if time is not None)
        is_late = self._give_up_ms is not None and self._give_up_ms <= now_ms
        if is_late or any(time <= now_ms for time in reports):
            self.state = State.SHUTTING_DOWN
            return [Event.GAVE_UP]
        if self._shut_down_ms is not None and self._shut_down_ms <= now_ms:
            return self._shut_down()
        return []

    # -------------------------------------------------------------------------------------------------------- answers

    def registered(self, answer: BrokerRegistrationAnswer, now_ms: int) -> list[Event]:
        """Take the answer to a registration.

        Whatever the error, it is tried again: while the session of the last run lasts, the controller refuses this one.
        """
        self._is_under_way = False
        self.refusal = answer.error_code
        if answer.error_code != NONE:
            return self._refused(answer.error_code, now_ms)
        self.broker_epoch = answer.broker_epoch
        self._is_registered = True
        self._give_up_ms = None
        self._next_in(0, now_ms)
        return [Event.REGISTERED]

    def heard(self, answer: BrokerHeartbeatAnswer, now_ms: int) -> list[Event]:
        """Take the answer to a heartbeat."""
        self._is_under_way = False
        if self.state is State.SHUTTING_DOWN:
            return []
        self.refusal = answer.error_code
        if answer.error_code == ErrorCode.STALE_BROKER_EPOCH and not self._is_unregistered:
            # Somebody else has registered under this id. It may have been an earlier process, whose request came late:
            # then this one is let in again as soon as that session is over. (Kafka's brokers stay out for ever.)
            self._is_registered = False
        if answer.error_code != NONE:
            return self._refused(answer.error_code, now_ms)
        delay_ms, events = self._heartbeat_ms, self._note_reported()
        if self.state is State.STARTING:
            delay_ms = _STARTING_MS
            if answer.is_caught_up:
                self.state = State.RECOVERY
                events.append(Event.CAUGHT_UP)
        elif self.state is State.RECOVERY and self._is_ready and not answer.is_fenced:
            # Not before it is ready, whatever the controller says: clients would be told that topics do not exist.
            self.state = State.RUNNING
            events.append(Event.UNFENCED)
        elif self.state is State.PENDING_CONTROLLED_SHUTDOWN:
            if answer.should_shut_down:
                return self._shut_down()
            if not self._is_second_wait:
                delay_ms, self._is_second_wait = _FIRST_WAIT_MS, True
        self._next_in(delay_ms, now_ms)
        return events

    def failed(self, now_ms: int) -> None:
        """Note that there was no answer."""
        self._is_under_way = False
        self._later(now_ms)

    # -------------------------------------------------------------------------------------------------------- details

    def _refused(self, error_code: int, now_ms: int) -> list[Event]:
        self._later(now_ms)
        return [Event.NOT_CONTROLLER] if error_code == ErrorCode.NOT_CONTROLLER else []

    def _note_reported(self) -> list[Event]:
        is_news = any(self._failed_dirs[directory] is not None for directory in self._reported)
        self._failed_dirs.update(dict.fromkeys(self._reported))
        return [Event.REPORTED] if is_news and all(time is None for time in self._failed_dirs.values()) else []

    def _shut_down(self) -> list[Event]:
        self.state = State.SHUTTING_DOWN
        return [Event.SHUT_DOWN]

    def _hurry(self, now_ms: int) -> None:
        self._is_urgent = self._is_under_way
        self._due_ms = min(self._due_ms, now_ms)

    def _next_in(self, delay_ms: int, now_ms: int) -> None:
        self._due_ms = now_ms + (0 if self._is_urgent else delay_ms)
        self._is_urgent = False

    def _later(self, now_ms: int) -> None:
        """Never at once after a failure."""
        self._is_urgent = False
        self._due_ms = now_ms + self._heartbeat_ms
