"""The state of a broker, and the way of a request through it: `Broker`.

Handlers run in one thread, that of the reactor. Work that takes long (`Later`) runs in others; it may call
`create_topic` and the like, which change the directory. So may anybody who has the directory: it tells the broker of
every change (`DirectoryObserver`), and the broker replaces the image, and tries again what waits for a log.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from octavo.broker.answer_cache import AnswerCache
from octavo.broker.answers import Answer, Change, Parked, Wait
from octavo.broker.auto_creation import AutoCreation
from octavo.broker.broker_settings import BrokerSettings
from octavo.broker.cluster_image import (
    NO_LISTENER,
    ClusterImage,
    ListenerImage,
    Node,
    PartitionImage,
    TopicImage,
    cluster_image,
    member_image,
    topic_image,
)
from octavo.broker.config import BrokerConfig
from octavo.broker.config_resources import ResourceType
from octavo.broker.coordinators import Coordinators
from octavo.broker.failures import failed, guarded
from octavo.broker.fetch_sessions import FetchSessions
from octavo.broker.handlers import HANDLERS, member_handlers
from octavo.broker.member.elsewhere import CoordinatorsElsewhere
from octavo.broker.member.leaders import Committed, Leaders, Led
from octavo.broker.notices import VARIOUS, Notices
from octavo.broker.request import Client, Request
from octavo.broker.troubles import Troubles
from octavo.broker.wire.api_keys import APIS, MEMBER_APIS
from octavo.broker.wire.frames import read_header, response_header
from octavo.broker.without_effect import new_without_effect
from octavo.errors import ErrorCode, InvalidConfig, UnknownPartition
from octavo.log.config.broker_defaults import ALL_BROKERS
from octavo.log.directory.data_directory import DataDirectory
from octavo.log.log import Log
from octavo.log.metadata.delta import Delta
from octavo.log.names import TopicPartition
from octavo.schemas.metadata.record import MetadataRecord

if TYPE_CHECKING:
    from octavo.broker.member.member import Member
    from octavo.broker.member.to_controller import ToController
    from octavo.broker.member.verification import TransactionVerification


class LedLog(NamedTuple):
    """The log of a partition that this broker leads."""

    topic: TopicImage
    log: Log
    led: Led | None = None  # the leader's side of replication, if this broker is a member of a cluster


def _nothing() -> None:
    """Do nothing: nobody waits."""


def _at_once(work: Callable[[], None]) -> None:
    """Do something now: there is no other thread."""
    work()


def _epoch_error(asked: int, known: int) -> int:
    """Return the error for a client that believes in another leader epoch; 0 if it is the same."""
    if asked == known:
        return ErrorCode.NONE
    return ErrorCode.FENCED_LEADER_EPOCH if asked < known else ErrorCode.UNKNOWN_LEADER_EPOCH


def _have_gone(before: ClusterImage, image: ClusterImage) -> bool:
    """Return whether topics were deleted, or replaced by others of their name."""
    for name in image.topics.changed_since(before.topics):
        old, now = before.topics.get(name), image.topics.get(name)
        if old is not None and (now is None or now.id != old.id):
            return True
    return False


class Broker:
    """A broker on an open data directory."""

    def __init__(
        self,
        directory: DataDirectory,
        config: BrokerConfig,
        *,
        say: Callable[[str], object],
        properties: Mapping[str, str] | None = None,
        is_member: bool = False,
    ) -> None:
        """Make a broker.

        say: tells the operator what happened
        properties: what the broker was started with, by Kafka's names
        is_member: it will be a `Member` of a cluster, and leads only what it is told to
        """
        self.directory: Final = directory
        self.member: Member | None = None  # of a cluster; None if this broker is alone
        self.config = config  # with what was changed since it was started
        self.notices: Final = Notices(say)
        self.troubles: Final = Troubles(self.notices)
        self.sessions: Final = FetchSessions(config.max_incremental_fetch_session_cache_slots, time.monotonic)
        self.answers: Final = AnswerCache()
        self.node_id: Final = directory.node_id
        self._told_remote: Final[set[TopicPartition]] = set()  # where clients ask for what is in remote storage
        self._started_with: Final = config
        self._properties: Final = {
            **(properties or {}),
            "node.id": str(self.node_id),
            "log.dirs": ",".join(str(folder.absolute()) for folder in directory.folders),
        }
        self.leaders: Leaders | None = None  # of a member of a cluster; None if this broker is alone
        self.verification: TransactionVerification | None = None  # likewise
        self._waits: Final[dict[Log, set[Wait]]] = {}
        self._changed: Final[set[Log]] = set()  # by any thread, since `take_woken` was last called
        self._woken: Final[set[Wait]] = set()  # likewise
        self._have_topics_changed = False
        self._is_poked = False  # `take_woken` will be called
        self._thread: int | None = None  # that of the handlers
        self._poke: Callable[[], object] = _nothing  # has that thread call `take_woken` soon
        self.do_elsewhere: Callable[[Callable[[], None]], object] = _at_once  # has another thread change something
        self.auto_creation: Final = AutoCreation(self)
        self._is_member: Final = is_member
        self.apis: Final = MEMBER_APIS if is_member else APIS
        self._handlers: Final = member_handlers() if is_member else HANDLERS
        self.controller: ToController | None = None  # of a member of a cluster; None if this broker is alone
        if not is_member:
            directory.lead_all()
        self.image = self._make_image()
        self.settings = self._read_settings()
        self._settings_of = self._stored_settings()
        self._told: Final[set[str]] = set()  # what has no effect, of that which was set since the broker runs
        self._is_stale = False  # the image, because of a change that is under way or was interrupted
        self._led: dict[tuple[str | bytes, int], LedLog] = {}  # those that were asked for, of the current image
        self.coordinators: Final = (
            CoordinatorsElsewhere(self) if is_member else Coordinators(directory, self.config, self.troubles, self.wake)
        )
        directory.observe(self)

    def say(self, message: str) -> None:
        """Tell the operator what happened, unless there are too many messages. Any thread may call this."""
        self.notices.say(VARIOUS, message)

    def tell_remote(self, log: Log, offset: int) -> None:
        """Tell the operator that a client wants what is in remote storage, once for each partition."""
        if offset >= log.start_offset or log.partition in self._told_remote:
            return
        part = log.remote_part
        if part is not None and offset >= part.first:
            self._told_remote.add(log.partition)
            self.say(f"a client asks for offset {offset} of {log.partition}, and gets OFFSET_OUT_OF_RANGE: {part}")

    # ------------------------------------------------------------------------------------------------------- requests

    def handle(self, frame: memoryview, client: Client) -> Answer:
        """Answer a request. Raises `MalformedRequest` and `ConnectionRefused` to have the connection closed."""
        if self._is_stale:
            self.directory.tell_again()
        header = read_header(frame, self.apis)
        request = Request(header, frame[header.body_at :], client)
        try:
            answer = self._handlers[header.api_key](self, request)
        except Exception as error:
            answer = failed(self, request, error)
        if answer is None:
            return None
        head = response_header(header)
        if isinstance(answer, list):
            return [head, *answer]
        return guarded(self, head, request, answer)

    @property
    def features_epoch(self) -> int:
        """How new the features are: the offset of the last record of the cluster's metadata; 0 if it is alone."""
        return self.directory.metadata_end[1] - 1 if self._is_member else 0

    def listener_for(self, client: Client) -> ListenerImage:
        """Return the brokers, with the addresses of the listener that the client has come by."""
        if self._is_member:
            return self.image.listeners.get(client.listener_name, NO_LISTENER)
        return ListenerImage({self.node_id: Node(self.node_id, *client.listener)}, {self.node_id: frozenset()})

    # ----------------------------------------------------------------------------------------------------- partitions

    def led_log(self, topic: str | bytes, index: int, leader_epoch: int = -1) -> LedLog | int:
        """Return the log of a partition by its topic's name or id, or the code of the error.

        leader_epoch: the epoch that the client believes in; -1 if it has none
        """
        led = self._led
        known = led.get((topic, index))
        if known is None or not known.log.is_open or (known.led is not None and known.led.state.is_deposed):
            found = self._find_led(topic, index)
            if isinstance(found, int):
                followed = None if leader_epoch == -1 else self._followed(topic, index)
                return found if followed is None else _epoch_error(leader_epoch, followed.leader_epoch) or found
            known = led[topic, index] = found
        if leader_epoch not in (-1, known.log.leader_epoch):
            return _epoch_error(leader_epoch, known.log.leader_epoch)
        return known

    @property
    def roles(self) -> object:
        """Another object than before if metadata or roles are others: then anything may be led by another broker."""
        return self._led

    def _find_led(self, topic: str | bytes, index: int) -> LedLog | int:
        found = self.image.topic(topic)
        if found is None:
            if isinstance(topic, bytes):
                return ErrorCode.UNKNOWN_TOPIC_ID
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        partition = found.partitions.get(index)
        if partition is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if partition.leader != self.node_id:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if self.leaders is not None:
            led = self.leaders.get(found.id, index)
            if led is None:  # not yet
                return ErrorCode.NOT_LEADER_OR_FOLLOWER
            return LedLog(found, led.log, led)
        try:
            log = self.directory.log(found.name, index)
        except UnknownPartition:  # its topic was deleted a moment ago
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        now = self.image.topic(topic)
        if now is None or now.id != found.id:  # the log may be that of a new topic of the same name
            return self._find_led(topic, index)
        return LedLog(found, log)

    def replica_log(self, topic: str, index: int) -> Log | int:
        """Return the log of a partition, whoever leads it, or the code of the error."""
        found = self.image.topics.get(topic)
        partition = None if found is None else found.partitions.get(index)
        if partition is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        try:
            return self.directory.log(topic, index)
        except UnknownPartition:  # it is not here, not yet, or not any more
            return ErrorCode.NOT_LEADER_OR_FOLLOWER

    def readable_log(self, topic: str | bytes, index: int, leader_epoch: int = -1) -> LedLog | int:
        """Return the log of a partition that this broker leads or follows, or the code of the error; as `led_log`."""
        found = self.led_log(topic, index, leader_epoch)
        if found != ErrorCode.NOT_LEADER_OR_FOLLOWER:
            return found
        image = self.image.topic(topic)
        if image is None or self._followed(topic, index) is None:
            return found
        try:
            return LedLog(image, self.directory.log(image.name, index))
        except UnknownPartition:  # not yet, or no more
            return found

    def _followed(self, topic: str | bytes, index: int) -> PartitionImage | None:
        """Return a partition that this broker follows; None if it does not."""
        found = None if self.leaders is None else self.image.topic(topic)
        partition = None if found is None else found.partitions.get(index)
        if partition is None or partition.leader == self.node_id or self.node_id not in partition.replicas:
            return None
        return partition

    def create_topic(self, name: str, partitions: int, config: Mapping[str, str]) -> TopicImage:
        """Create a topic. Raises as `DataDirectory.create_topic` does."""
        return topic_image(self.directory.create_topic(name, partitions, config))

    def add_partitions(self, name: str, count: int) -> None:
        """Give a topic more partitions, `count` in all."""
        self.directory.add_partitions(name, count)

    def delete_topic(self, name: str) -> None:
        """Delete a topic. Those who wait for its records are answered."""
        self.directory.delete_topic(name)

    def set_config(self, name: str, changes: Mapping[str, str | None]) -> None:
        """Change the settings of a topic."""
        self.directory.set_config(name, changes)

    def change_cluster(self, records: Sequence[MetadataRecord]) -> None:
        """Append records to the metadata that concern the cluster as a whole."""
        self.directory.change_cluster(records)

    def set_broker_config(self, name: str, changes: Mapping[str, str | None]) -> None:
        """Change the settings of this broker by its id, or of all brokers by the name ""."""
        self.directory.set_broker_config(name, changes)

    def set_resource_config(self, resource_type: int, name: str, changes: Mapping[str, str | None]) -> None:
        """Change the settings of a resource that is neither a topic nor a broker."""
        self.directory.set_resource_config(resource_type, name, changes)

    def _read_settings(self) -> BrokerSettings:
        """Return the settings of this broker, and have `config` follow them."""
        everyone, own = self._stored_settings()
        settings = BrokerSettings(self._properties, everyone, own, is_member=self._is_member)
        try:
            self.config = settings.changed(self._started_with)
        except InvalidConfig as error:  # another program has written it
            self.say(f"settings in the metadata are ignored: {error}")
        return settings

    def _stored_settings(self) -> tuple[Mapping[str, str], Mapping[str, str]]:
        """Return the settings of all brokers, and those of this broker, as they are in the metadata."""
        configs = self.image.configs
        return (
            configs.get((ResourceType.BROKER, ALL_BROKERS), {}),
            configs.get((ResourceType.BROKER, str(self.node_id)), {}),
        )

    def assignment_problem(self, replicas: Sequence[int]) -> str | None:
        """Return what is wrong with a list of brokers for a partition, in Kafka's words; None if nothing is."""
        if not replicas:
            return "The manual partition assignment includes an empty replica list."
        for replica in replicas:
            if replica not in self.image.nodes:
                return f"The manual partition assignment includes broker {replica}, but no such broker is registered."
        if len(set(replicas)) < len(replicas):
            return f"The manual partition assignment includes the broker {replicas[0]} more than once."
        return None

    def next_producer_id(self) -> int:
        """Return a producer id that nobody has. Raises `LogError` and `OSError`."""
        return self.directory.coordinator.init_producer_id().producer_id

    def _make_image(self) -> ClusterImage:
        if self._is_member:
            return member_image(self.directory.cluster, self.directory.cluster_id, None)
        return cluster_image(self.directory, getattr(self, "image", None))

    # ----------------------------------------------------------------------------------------------------------- waits

    def watch(self, wait: Wait) -> None:
        """Have a wait be tried again when one of its logs changes."""
        for log in wait.logs:
            self._waits.setdefault(log, set()).add(wait)
        if isinstance(wait, Parked):
            wait.is_watched = True
            if wait.is_given:  # before there was anybody to wake
                self.wake(wait)
        elif self.leaders is not None and isinstance(wait, Committed):
            self.leaders.watch(wait)

    def forget(self, wait: Wait) -> None:
        """Take a wait off the list: it was answered, or nobody waits any more."""
        wait.is_over = True
        for log in wait.logs:
            waiting = self._waits.get(log)
            if waiting is not None:
                waiting.discard(wait)
                if not waiting:
                    del self._waits[log]

    def run_here(
        self, poke: Callable[[], object], do_elsewhere: Callable[[Callable[[], None]], object] = _at_once
    ) -> None:
        """Take the current thread for that of the handlers. It calls `take_woken` after requests, and after `poke`.

        do_elsewhere: has another thread do something that may take long
        """
        self._thread, self._poke, self.do_elsewhere = threading.get_ident(), poke, do_elsewhere
        self._poke()

    def wake(self, wait: Wait) -> None:
        """Have a wait be tried again soon. Any thread may call this."""
        self._woken.add(wait)
        self._be_poked()

    def log_changed(self, log: Log) -> None:
        """Have everything tried again soon that waits for this log. Any thread may call this."""
        self._changed.add(log)
        self._be_poked()

    def metadata_changing(self) -> None:
        """Note that the image will have to be replaced."""
        self._is_stale = True

    def metadata_changed(self) -> None:
        """Replace the image. The caller has the lock of the directory, so there is one caller at a time.

        An exception, such as an interrupt, may end this at any point. Then the next request has it done again.
        """
        self._adopt(self._make_image())

    def publish(self, delta: Delta) -> None:
        """Replace the image of a member by what the metadata of the cluster are now. `delta`: what has changed."""
        of_topics = all(kind == ResourceType.TOPIC for kind, _ in delta.changed_configs)
        only_topics = of_topics and not (delta.has_brokers or delta.has_features or delta.has_others)
        cluster, cluster_id = self.directory.cluster, self.directory.cluster_id
        self._adopt(member_image(cluster, cluster_id, self.image, only_topics=only_topics))

    def roles_changed(self) -> None:
        """Look again at what is led and followed here: roles have begun, and logs were closed, since `publish`."""
        self._led = {}
        self._have_topics_changed = True
        self._be_poked()

    def _adopt(self, image: ClusterImage) -> None:
        if _have_gone(self.image, image):
            self._have_topics_changed = True  # their logs were closed, for which somebody may wait
        for sentence in new_without_effect(self.image, image, self.node_id):
            if sentence not in self._told:
                self._told.add(sentence)
                self.notices.say(sentence, sentence)
        self.image = image
        self._led = {}  # after the image: whoever sees this dict sees the image, too
        if self._stored_settings() != self._settings_of:
            self.settings = self._read_settings()
            self.coordinators.adopt(self.config)
            self._settings_of = self._stored_settings()
        self.coordinators.time.topics_changed()
        self._be_poked()
        self._is_stale = False

    def _be_poked(self) -> None:
        if not self._is_poked:
            self._is_poked = True
            if threading.get_ident() != self._thread:
                self._poke()

    def take_woken(self) -> list[Wait]:
        """Return the waits to try again, each once."""
        if not self._is_poked:
            return []
        self._is_poked = False  # before looking: what changes from here on pokes again
        if self._have_topics_changed:
            self._have_topics_changed = False
            self._changed.update(log for log in self._waits if not log.is_open)
        woken: dict[Wait, None] = {}
        leaders = self.leaders
        while self._changed:
            log = self._changed.pop()
            waiting = self._waits.get(log, ())
            if leaders is None:
                woken.update(dict.fromkeys(waiting))
                continue
            change = leaders.log_changed(log)  # the log may change again by this: the high watermark may move
            for wait in waiting:
                if change is Change.ANY or wait.needs in (Change.ANY, change):
                    woken.setdefault(wait)
        while self._woken:
            woken.setdefault(self._woken.pop())
        return [wait for wait in woken if not wait.is_over]
