"""A broker as a member of a cluster: `Member` drives the decisions of `octavo.cluster`, and carries them out.

Everything here runs in the reactor's thread. What may take long is given to other threads, which call back. The parts:

    observing     follows the metadata log of the controllers
    living        registers the broker, and sends heartbeats
    publishing    gives replicas their roles when metadata have changed
    following     fetches from the leaders of partitions
    leaders       leads partitions
    altering      asks the controller for changes of ISRs
    assigning     tells the controller in which directory replicas are
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from octavo.broker.answers import Work
from octavo.broker.member.altering import Altering
from octavo.broker.member.assigning import Assigning
from octavo.broker.member.config import RACK_AWARE
from octavo.broker.member.controller import ControllerChannel
from octavo.broker.member.features import unsupported
from octavo.broker.member.following import Cluster, Following
from octavo.broker.member.leaders import Leaders, min_isr
from octavo.broker.member.living import Living, new_life
from octavo.broker.member.observing import Observing, new_observer
from octavo.broker.member.publishing import Publishing
from octavo.broker.member.quota import ReplicationQuota
from octavo.broker.member.reasons import what_is_awaited, why_not_registered
from octavo.broker.member.surroundings import Surroundings
from octavo.broker.member.to_controller import ToController
from octavo.broker.member.verification import TransactionVerification
from octavo.broker.member.versions import ControllerVersions
from octavo.broker.troubles import reason
from octavo.broker.wire.replica_fetch import FetchLimits
from octavo.cluster.leading import ClusterView
from octavo.cluster.life_cycle import Event, State
from octavo.cluster.messages import Endpoint, Listener
from octavo.cluster.quorum import Apply

if TYPE_CHECKING:
    from octavo.broker.broker import Broker
    from octavo.broker.member.config import MemberSettings
    from octavo.broker.member.peers import Peers
    from octavo.log.directory.member_directory import MemberDirectory

_PATIENCE_MS: Final = 10_000  # with controllers that do not answer, when the broker shuts down


def monotonic_ms() -> int:
    """Return the time in milliseconds by a clock that never goes back."""
    return time.monotonic_ns() // 1_000_000


class Member:
    """What a broker does as a member of a cluster."""

    def __init__(
        self,
        broker: Broker,
        directory: MemberDirectory,
        settings: MemberSettings,
        *,
        listeners: Sequence[Listener],
        properties: Mapping[str, str],
        peers: Peers,
        call: Callable[[Callable[[], None]], object],
        work: Callable[[Work, Callable[[], None]], object],
        on_published: Callable[[], None],
        on_unfenced: Callable[[], None],
        on_end: Callable[[], None],
    ) -> None:
        """Ask nobody anything before `tick`.

        listeners: where others reach this broker
        properties: what it was started with, by Kafka's names
        call: has the reactor's thread call a function
        work: has another thread do something
        on_published: the replicas here have the settings that are committed
        on_unfenced: the broker may serve clients
        on_end: the broker has shut down, or has to stop: `failure` says why
        """
        config = settings.config
        self.broker: Final = broker
        self.failure: str | None = None  # why the broker cannot be a member
        self.is_unfenced = False  # or was, once
        self.has_ended: Final = threading.Event()
        self._settings: Final = settings
        self._directory: Final = directory
        self._on_published: Final = on_published
        self._on_unfenced: Final = on_unfenced
        self._on_end: Final = on_end
        self._has_bad_disk = False
        self._is_poked = False
        self._next_ms = 0.0
        self._check_ms = 0.0  # when leaders look who is out of sync
        here = Surroundings(
            peers,
            broker.node_id,
            call,
            lambda function: work(Work.CHANGE, function),
            broker.say,
            monotonic_ms,
            self._poke,
        )
        replicating = replace(here, elsewhere=lambda function: work(Work.APPEND, function))
        self._versions: Final = ControllerVersions()
        self.observer: Final = new_observer(settings, directory.metadata)
        self._observing: Final = Observing(
            self.observer,
            directory,
            here,
            self._versions,
            timeout_ms=config.controller_quorum_request_timeout_ms,
            may_load=lambda: not self.publishing.is_under_way,
            apply=self._apply,
            stop=self._stop,
            disk_failed=self._disk_failed,
        )
        self.life: Final = new_life(directory, listeners, config, monotonic_ms())
        self._living: Final = Living(
            self.life,
            here,
            self._versions,
            heartbeat_ms=config.broker_heartbeat_interval_ms,
            controller=self._find_controller,
            happened=self._happened,
        )
        self.pulse: Final = self._living.pulse
        self.view: Final = ClusterView(broker.node_id, -1, {}, config.replica_lag_time_max_ms)
        self._altering: Final = Altering(
            here, self.view, timeout_ms=config.controller_socket_timeout_ms, controller=self._find_controller
        )
        self.leaders: Final = Leaders(
            self.view,
            min_isr=lambda topic_id: min_isr(broker.image, topic_id, broker.settings.of_topics),
            submit=self._altering.submit,
            wake=broker.wake,
            changed=broker.log_changed,
            elsewhere=replicating.elsewhere,
            clock_ms=monotonic_ms,
            quota=ReplicationQuota(broker, "leader", monotonic_ms),
            is_rack_aware=config.replica_selector_class == RACK_AWARE,
        )
        self._altering.settled = self.leaders.settled
        self.following: Final = Following(
            replicating,
            Cluster(directory.metadata, self.view),
            quota=ReplicationQuota(broker, "follower", monotonic_ms),
            limits=FetchLimits(
                config.replica_fetch_wait_max_ms,
                config.replica_fetch_min_bytes,
                config.replica_fetch_response_max_bytes,
                config.replica_fetch_max_bytes,
            ),
            back_off_ms=config.replica_fetch_backoff_ms,
            timeout_ms=config.replica_socket_timeout_ms,
            done=lambda: self.publishing.go_on(),
            failed=self._disk_failed,
        )
        self._channel: Final = ControllerChannel(
            peers,
            self._find_controller,
            channel="forward",
            client_id=str(broker.node_id),
            clock_ms=monotonic_ms,
            attempt_ms=config.controller_socket_timeout_ms,
        )
        self._assigning: Final = Assigning(
            self._channel, self.view, directory.directory_id, clock_ms=monotonic_ms, poke=self._poke
        )
        self.publishing: Final = Publishing(
            broker,
            directory,
            here,
            view=self.view,
            leaders=self.leaders,
            following=self.following,
            assigning=self._assigning,
            listener_name=settings.inter_broker_listener,
            may_apply=lambda: not self._observing.is_loading,
            is_leaving=lambda: self.life.state is State.PENDING_CONTROLLED_SHUTDOWN,
            on_first=self._published,
            on_failure=self._cannot_publish,
        )
        broker.leaders = self.leaders
        broker.troubles.disk_failed = lambda error: call(lambda: self._disk_failed(error))
        broker.verification = TransactionVerification(broker, peers, listener_name=settings.inter_broker_listener)
        broker.controller = ToController(
            self._channel,
            config,
            properties,
            request_timeout_ms=broker.config.request_timeout_ms,
            node_id=broker.node_id,
            broker_epoch=lambda: self.life.broker_epoch,
            served=lambda: self._versions.served,
            clock_ms=monotonic_ms,
            wake=broker.wake,
            say=broker.say,
        )

    def _find_controller(self) -> Endpoint | None:
        """Return the active controller, as far as it is known, and what it can be asked."""
        controller = self.observer.controller
        return controller if controller is not None and self._versions.knows(controller) else None

    # ------------------------------------------------------------------------------------------------------ the reactor

    @property
    def next_ms(self) -> float:
        """When `tick` has something to do."""
        return min(self._next_ms, self._channel.next_ms)

    def tick(self, now_ms: int) -> None:
        """Do what there is to do now. The reactor calls this after each turn."""
        self.pulse.turn(now_ms)
        if now_ms < self.next_ms or self.has_ended.is_set():
            return
        self._is_poked = False
        times = [
            self._observing.poll(now_ms),
            self._living.poll(now_ms, self.publishing.offset),
            self.following.poll(now_ms),
            self._altering.poll(now_ms),
            self._assigning.poll(now_ms),
            self._look_at_followers(now_ms),
            self._give_up_leaving(now_ms),
        ]
        self._channel.tick(now_ms)
        self._next_ms = 0.0 if self._is_poked else min(times)

    def _poke(self) -> None:
        self._is_poked = True
        self._next_ms = 0.0

    def _look_at_followers(self, now_ms: int) -> float:
        if now_ms >= self._check_ms:
            self._check_ms = now_ms + max(1, self.view.max_lag_ms // 2)
            self.leaders.check(now_ms)
        return self._check_ms

    # ------------------------------------------------------------------------------------------------------------- life

    @property
    def waits_for(self) -> str:
        """What the broker waits for before it may serve, in words."""
        return what_is_awaited(self.life, self.observer)

    def _apply(self, effect: Apply) -> None:
        self.publishing.apply(effect)
        image = self._directory.metadata.image
        self._living.look_at(image.brokers.get(self.broker.node_id), image.metadata_version)
        problem = unsupported(image.features) if effect.is_caught_up else None
        if problem is not None:
            self._stop(problem)

    def _published(self) -> None:
        self._on_published()
        self.life.ready(monotonic_ms())

    def _happened(self, event: Event) -> None:
        self._poke()
        if event is Event.REGISTERED:
            self.view.broker_epoch = self.life.broker_epoch
        elif event is Event.CAUGHT_UP:
            self.publishing.begin()
        elif event is Event.UNFENCED:
            self.is_unfenced = True
            self._on_unfenced()
        elif event is Event.REPORTED or (event is Event.GAVE_UP and self._has_bad_disk):
            self._stop("its disk has failed")
        elif event is Event.SHUT_DOWN:
            self._end()
        elif event is Event.GAVE_UP:
            why = self._versions.problem or why_not_registered(
                self.life, self.observer, self._settings, self.broker.node_id
            )
            self._stop(why)

    def begin_shutdown(self) -> None:
        """Ask the controller to have others lead the partitions of this broker; `has_ended` is set when that is so."""
        if not self.has_ended.is_set():
            self._living.begin_shutdown(is_controlled=self._settings.config.controlled_shutdown_enable)
            self._poke()

    def leave_at_once(self) -> None:
        """Wait no longer for the controller."""
        self._living.leave_at_once()

    def _give_up_leaving(self, now_ms: int) -> float:
        """Shut down without the controllers if they do not answer."""
        if self.life.state is not State.PENDING_CONTROLLED_SHUTDOWN:
            return math.inf
        until = self._living.answered_ms + _PATIENCE_MS
        if now_ms >= until:
            self.broker.say("the controllers do not answer, and the broker shuts down without them")
            self.leave_at_once()
        return until

    def note_clean_epoch(self) -> None:
        """Have the directory be closed with the epoch of this broker. Call this when nothing is replicated any more."""
        self._directory.set_clean_epoch(self.life.clean_epoch)

    # --------------------------------------------------------------------------------------------------------- failures

    def _cannot_publish(self, why: str, error: Exception) -> None:
        """Stop, after others have taken over what this broker leads: it no longer knows what was decided."""
        if isinstance(error, OSError):
            self._disk_failed(error)
            return
        self.failure = why
        if self.is_unfenced:
            self.broker.say(why)
            self.begin_shutdown()
        else:
            self._end()

    def _disk_failed(self, error: OSError) -> None:
        """Report that the disk has failed, and stop when the controller knows."""
        if not self._has_bad_disk:
            self._has_bad_disk = True
            self.broker.say(f"the disk has failed: {reason(error)}")
            self._directory.note_failure()
            self._living.fail_directory(self._directory.directory_id)
            self._poke()

    def _stop(self, why: str) -> None:
        """Stop at once, because this broker cannot be a member."""
        if self.failure is None:
            self.failure = why
        self._end()

    def _end(self) -> None:
        if not self.has_ended.is_set():
            self.has_ended.set()
            self._on_end()
