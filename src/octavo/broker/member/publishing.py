"""Take over new metadata: `Publishing` gives the replicas of this broker their roles, and handlers a new image.

Metadata are applied and published in steps, one after the other. A step that needs the disk is prepared in another
thread: folders are put away and made, and leader epochs written. Records that come meanwhile wait for the next step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from octavo.broker.member.assigning import Assigning
from octavo.broker.member.elsewhere import CoordinatorsElsewhere
from octavo.broker.member.following import Following
from octavo.broker.member.leaders import Leaders
from octavo.broker.member.surroundings import Surroundings
from octavo.cluster.leading import ClusterView
from octavo.cluster.messages import TopicIdPartition
from octavo.cluster.quorum import Apply
from octavo.cluster.replicas import Changed, LocalChanges, LocalReplicas, leader_endpoint
from octavo.errors import OctavoError
from octavo.log.directory.member_directory import MemberDirectory
from octavo.log.log import Log
from octavo.log.metadata.delta import Delta
from octavo.log.metadata.image import Image

if TYPE_CHECKING:
    from octavo.broker.broker import Broker

_SHOWN: Final = 5  # partitions in a sentence


@dataclass(slots=True)
class Step:
    """Metadata that are being published."""

    image: Image
    offset: int  # of the last record
    delta: Delta
    changes: LocalChanges
    is_first: bool
    logs: dict[TopicIdPartition, Log] = field(default_factory=dict)
    epoch_starts: dict[TopicIdPartition, int] = field(default_factory=dict)  # of new terms as a leader
    is_under_way: bool = False

    @property
    def changed(self) -> list[Changed]:
        """All partitions that are led or followed, with what has changed."""
        return [*self.changes.led, *self.changes.followed]

    @property
    def needs_disk(self) -> bool:
        """Whether another thread has to prepare it."""
        return (
            self.is_first
            or bool(self.changes.deleted)
            or self.delta.has_configs
            or any(change.is_new or change.is_new_epoch for change in self.changed)
        )


class Publishing:
    """Applies metadata, and tells everybody of them."""

    def __init__(
        self,
        broker: Broker,
        directory: MemberDirectory,
        here: Surroundings,
        *,
        view: ClusterView,
        leaders: Leaders,
        following: Following,
        assigning: Assigning,
        listener_name: str,
        may_apply: Callable[[], bool],
        is_leaving: Callable[[], bool],
        on_first: Callable[[], None],
        on_failure: Callable[[str, Exception], None],
    ) -> None:
        """Publish nothing before `begin`.

        listener_name: the listener by which brokers reach each other
        may_apply: tells whether nobody else changes the metadata
        is_leaving: tells whether the broker shuts down: then it does not come back into the ISR of its partitions
        on_first: is called when the first metadata are published
        on_failure: is told why metadata cannot be applied. Nothing is published any more
        """
        # The last record that was published; before the first time, the last one that was applied.
        self.offset = directory.metadata.applied_offset
        self._broker: Final = broker
        self._directory: Final = directory
        self._metadata: Final = directory.metadata
        self._here: Final = here
        self._view: Final = view
        self._leaders: Final = leaders
        self._following: Final = following
        self._assigning: Final = assigning
        self._listener_name: Final = listener_name
        self._may_apply: Final = may_apply
        self._is_leaving: Final = is_leaving
        self._on_first: Final = on_first
        self._on_failure: Final = on_failure
        self._replicas: Final = LocalReplicas(here.node_id)
        self._end_offset = -1  # up to which records are committed
        self._is_complete = False  # nothing that was committed was missing, once
        self._has_begun = False
        self._is_first = True
        self._has_failed = False
        self._pending = Delta()
        self._step: Step | None = None

    @property
    def is_under_way(self) -> bool:
        """Whether metadata are being published, which must stay as they are until that is done."""
        return self._step is not None

    def apply(self, effect: Apply) -> None:
        """Apply all records before an offset, now or when the last step is over."""
        self._end_offset = max(self._end_offset, effect.end_offset)
        self._is_complete |= effect.is_caught_up
        self.go_on()

    def begin(self) -> None:
        """Publish from now on, as soon as everything that was committed has been applied."""
        self._has_begun = True
        self.go_on()

    def go_on(self) -> None:
        """Do what can be done now. Call this when a partition is busy no more."""
        if self._step is not None:
            self._prepare(self._step)  # which goes on by itself
            return
        if self._has_failed or not self._may_apply() or self._end_offset < 0:
            return
        try:
            self._pending.add(self._metadata.apply(self._end_offset))
        except (OctavoError, OSError) as error:
            self._fail(error)
            return
        may_publish = self._has_begun and self._is_complete
        if may_publish and (self._pending or self._is_first):
            try:
                self._start()
            except Exception as raised:  # a mistake of ours: nothing would be published any more
                self._fail(raised)
        else:
            self.offset = self._metadata.applied_offset

    def _fail(self, error: Exception) -> None:
        self._has_failed = True
        what = str(error) if isinstance(error, OctavoError | OSError) else repr(error)
        self._on_failure(f"new metadata cannot be taken over: {what}", error)

    # ----------------------------------------------------------------------------------------------------------- steps

    def _start(self) -> None:
        """Take the roles away that end, and wait for those who use them."""
        delta, self._pending = self._pending, Delta()
        image = self._metadata.image
        topics = {topic_id: image.partitions_of(topic_id) for topic_id in delta.changed_topics}
        changes = self._replicas.update(topics, delta.changed_topics)
        self._step = step = Step(image, self._metadata.applied_offset, delta, changes, self._is_first)
        self._is_first = False
        for partition in changes.deleted:
            self._following.forget(partition)
            self._leaders.depose(partition)
        for change in changes.followed:
            self._leaders.depose(change.partition)
            is_outside = self._here.node_id not in change.record.isr
            if change.is_new_epoch or (is_outside and self._is_leaving()):
                self._following.forget(change.partition)
        for change in changes.led:
            if change.is_new_epoch:
                self._following.forget(change.partition)
        if not step.is_first:
            # As in Kafka, clients may hear of a leader that has not begun yet: it has them ask again.
            self._broker.publish(delta)
        self._prepare(step)

    def _prepare(self, step: Step) -> None:
        partitions = [*step.changes.deleted, *(change.partition for change in step.changed)]
        if step.is_under_way or any(map(self._following.is_busy, partitions)):
            return
        step.is_under_way = True
        if step.needs_disk:
            self._here.elsewhere(lambda: self._work(step))
        else:
            self._finish(step, None)

    def _work(self, step: Step) -> None:
        """Change what is on the disk, in a thread that may wait."""
        error: Exception | None = None
        try:
            self._change(step)
        except Exception as raised:  # a mistake of ours, too: nothing would be published any more
            error = raised
        self._here.call(lambda: self._finish(step, error))

    def _change(self, step: Step) -> None:
        directory = self._directory
        new = [change.partition for change in step.changed if change.is_new]
        strays = directory.adopt_metadata(step.changes.deleted, new)
        if strays:
            shown = ", ".join(map(str, strays[:_SHOWN])) + (", ..." if len(strays) > _SHOWN else "")
            self._here.say(f"the cluster has no replicas of {shown} here: the folders were renamed, and end in -stray")
        for change in step.changed:
            partition, record = change.partition, change.record
            log = step.logs[partition] = directory.log_of(partition)
            if change.is_new_epoch and record.leader == self._here.node_id:
                step.epoch_starts[partition] = log.become_leader(record.leader_epoch)
            elif change.is_new_epoch:
                log.become_follower(record.leader_epoch)

    def _finish(self, step: Step, error: Exception | None) -> None:
        """Go on after a step that was prepared, unless that has failed."""
        self._here.poke()
        try:
            if error is not None:
                raise error
            self._give_roles(step)
        except Exception as raised:  # a mistake of ours, too: nothing would be published any more
            self._fail(raised)
            return
        self.offset = step.offset
        self._step = None
        if step.is_first:
            self._on_first()
        self.go_on()

    def _give_roles(self, step: Step) -> None:
        """Give roles, and at first let handlers see the metadata."""
        image = step.image
        self._view.brokers = image.brokers
        if step.is_first:
            self._broker.metadata_changed()
        for change in step.changes.led:
            self._lead(step, change)
        for change in step.changes.followed:
            if change.is_new_epoch:
                self._follow(step, change)
        self._broker.roles_changed()
        assert isinstance(self._broker.coordinators, CoordinatorsElsewhere)
        self._broker.coordinators.look_at(image, step.delta.changed_topics)
        if step.delta.has_configs:
            self._leaders.settings_changed()
        elif step.delta.has_brokers:
            self._leaders.check(self._here.now_ms())
        self._assigning.take(step.changes, image.metadata_version)

    def _lead(self, step: Step, change: Changed) -> None:
        partition = change.partition
        log = step.logs.get(partition) or self._directory.log_of(partition)
        self._leaders.lead(change, log, epoch_start=step.epoch_starts.get(partition))

    def _follow(self, step: Step, change: Changed) -> None:
        partition, record = change.partition, change.record
        endpoint = leader_endpoint(record, step.image.brokers, self._listener_name)
        is_outside = self._here.node_id not in record.isr
        if endpoint is not None and not (is_outside and self._is_leaving()):
            self._following.follow(partition, step.logs[partition], record.leader, record.leader_epoch, endpoint)
