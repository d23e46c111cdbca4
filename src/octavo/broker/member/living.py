"""Keep a broker registered with the active controller: `Living` sends what `LifeCycle` asks for."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final
from uuid import UUID, uuid4

from octavo.broker.member.assigning import DIRECTORIES
from octavo.broker.member.config import MemberConfig
from octavo.broker.member.features import FEATURES
from octavo.broker.member.pulse import Beat, Pulse
from octavo.broker.member.surroundings import Surroundings
from octavo.broker.member.versions import ControllerVersions
from octavo.broker.wire.api_keys import BROKER_HEARTBEAT, BROKER_REGISTRATION
from octavo.broker.wire.member_messages import (
    BROKER_REGISTRATION_VERSION,
    read_broker_heartbeat,
    read_broker_registration,
    write_broker_heartbeat,
    write_broker_registration,
)
from octavo.cluster.life_cycle import Event, LifeCycle, State
from octavo.cluster.messages import (
    BrokerHeartbeatAnswer,
    BrokerRegistrationAnswer,
    BrokerRegistrationRequest,
    Endpoint,
    Listener,
)
from octavo.log.directory.member_directory import MemberDirectory
from octavo.schemas.metadata.nodes import RegisterBrokerRecord

_CHANNEL: Final = "life"
_CORDONS: Final = 30  # the metadata.version from which on heartbeats name cordoned directories
_LOOK_MS: Final = 20  # while nobody knows the active controller


def new_life(directory: MemberDirectory, listeners: Sequence[Listener], config: MemberConfig, now_ms: int) -> LifeCycle:
    """Return the life of a process as a broker, which begins now. `listeners`: where others reach it."""
    registration = BrokerRegistrationRequest(
        directory.node_id,
        directory.cluster_id,
        uuid4(),
        listeners,
        FEATURES,
        config.broker_rack or None,
        (directory.directory_id,),
        directory.epoch_of_clean_shutdown,
    )
    return LifeCycle(
        registration,
        now_ms,
        heartbeat_ms=config.broker_heartbeat_interval_ms,
        registration_timeout_ms=config.initial_broker_registration_timeout_ms,
        report_timeout_ms=config.log_dir_failure_timeout_ms,
    )


class Living:
    """Sends registrations and heartbeats."""

    def __init__(
        self,
        life: LifeCycle,
        here: Surroundings,
        versions: ControllerVersions,
        *,
        heartbeat_ms: int,
        controller: Callable[[], Endpoint | None],
        happened: Callable[[Event], None],
    ) -> None:
        """Begin to register.

        versions: those of all controllers that `controller` returns
        controller: returns where the active controller is, as far as that is known
        happened: is told of every event
        """
        self.life: Final = life
        self._here: Final = here
        self._versions: Final = versions
        self._heartbeat_ms: Final = heartbeat_ms
        self._controller: Final = controller
        self._happened: Final = happened
        self.pulse: Final = Pulse(heartbeat_ms)
        self._beat: Beat | None = None  # the heartbeat that was sent last
        self._has_registered_directory = False
        self._was_in: bool | None = None  # whether the metadata had let this broker in; None before the first time
        self.answered_ms = here.now_ms()  # when a controller has answered last

    def poll(self, now_ms: int, metadata_offset: int) -> float:
        """Send what is due. Returns when there is something to do again."""
        life = self.life
        self.tell(life.tick(now_ms))
        endpoint = self._controller()
        if endpoint is None:
            return math.inf if life.next_ms is None else max(life.next_ms, now_ms + _LOOK_MS)
        request = life.next_request(now_ms, metadata_offset)
        if isinstance(request, BrokerRegistrationRequest):
            self._here.ask(
                endpoint,
                _CHANNEL,
                (BROKER_REGISTRATION, BROKER_REGISTRATION_VERSION),
                write_broker_registration(request),
                read_broker_registration,
                self._registered,
                self._failed,
                timeout_ms=self._heartbeat_ms,
            )
        elif request is not None:
            version = self._versions.version(endpoint, BROKER_HEARTBEAT)
            self._beat = Beat(endpoint, version, write_broker_heartbeat(request, version))
            self._here.ask(
                endpoint,
                _CHANNEL,
                (BROKER_HEARTBEAT, version),
                self._beat.body,
                partial(read_broker_heartbeat, version=version),
                self._heard,
                self._failed,
                timeout_ms=self._heartbeat_ms,
            )
        return math.inf if life.next_ms is None else life.next_ms

    def _registered(self, answer: BrokerRegistrationAnswer) -> None:
        self.answered_ms = self._here.now_ms()
        self.tell(self.life.registered(answer, self._here.now_ms()))

    def _heard(self, answer: BrokerHeartbeatAnswer) -> None:
        self.answered_ms = self._here.now_ms()
        self.tell(self.life.heard(answer, self._here.now_ms()))
        self.pulse.keep(self._beat if self.life.may_repeat else None, self.answered_ms)

    def _failed(self, reason: str) -> None:
        self.life.failed(self._here.now_ms())

    def look_at(self, registration: RegisterBrokerRecord | None, metadata_version: int) -> None:
        """Look at what new metadata say of this broker."""
        self.life.knows_cordons = metadata_version >= _CORDONS
        if registration is not None and metadata_version >= DIRECTORIES:
            self._register_directory(registration)
        self.life.look_at_registration(is_there=registration is not None)
        self._tell_fencing(registration)

    def _register_directory(self, registration: RegisterBrokerRecord) -> None:
        """Register again if the cluster had not known of directories before."""
        is_own = registration.broker_epoch == self.life.broker_epoch
        if is_own and not registration.log_dirs and not self._has_registered_directory:
            self._has_registered_directory = True
            self.life.register_again(self._here.now_ms())

    def _tell_fencing(self, registration: RegisterBrokerRecord | None) -> None:
        """Tell the operator when the broker is fenced, and when it is let in again: only metadata say so."""
        is_in = registration is not None and not registration.fenced
        if self.life.state is not State.RUNNING or is_in is self._was_in or (self._was_in is None and not is_in):
            return
        if registration is None:
            self._here.say("the broker was unregistered; it registers again when it is started again")
        elif not is_in:
            self._here.say("the controller has fenced this broker: it has not heard of it for too long")
        elif self._was_in is not None:
            self._here.say("the controller has let this broker in again")
        self._was_in = is_in

    def begin_shutdown(self, *, is_controlled: bool) -> None:
        """Shut down; if that is controlled, the controller is asked first to have others lead this one's partitions."""
        self.pulse.stop()
        self.answered_ms = self._here.now_ms()
        self.tell(self.life.begin_shutdown(self.answered_ms) if is_controlled else self.life.leave_at_once())

    def leave_at_once(self) -> None:
        """Shut down without the controller's consent."""
        self.pulse.stop()
        self.tell(self.life.leave_at_once())

    def fail_directory(self, directory: UUID) -> None:
        """Report a directory that has failed."""
        self.pulse.stop()
        self.life.fail_directory(directory, self._here.now_ms())

    def tell(self, events: Iterable[Event]) -> None:
        """Tell of events."""
        for event in events:
            self._happened(event)
