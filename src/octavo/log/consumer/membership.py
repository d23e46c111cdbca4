"""A consumer in its group: `Membership`.

The coordinator assigns partitions to the members of a group (see `log/coordinator/member.py`). A consumer takes notice
when it polls: first it commits what was read of the partitions that it has to give back, if auto-commit is on, and
calls `on_revoke`; then it gives them back; then it begins with those that it gets. No other member gets a partition
before the one that has it has given it back. So every record is read by one of them, and none is left out.

Without a group, a consumer reads all partitions that it is subscribed to.
"""

from __future__ import annotations

import re
import time
import weakref
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from octavo.errors import ConsumerError, MemberFenced, OctavoError
from octavo.log.consumer.assignment import LOOK_AGAIN_S, Assignment
from octavo.log.consumer.commits import Commits
from octavo.log.consumer.committed_offsets import GroupOffsets
from octavo.log.consumer.config import ConsumerConfig
from octavo.log.coordinator.notice import Notice
from octavo.log.directory.data_directory import DataDirectory
from octavo.log.names import TopicPartition

if TYPE_CHECKING:
    from octavo.log.coordinator.member import Member

Subscription = frozenset[str] | re.Pattern[str]
OnRebalance = Callable[[Any, list[TopicPartition]], object]  # is called with the consumer, and with partitions


class Callbacks(NamedTuple):
    """What is called when partitions come and go."""

    on_assign: OnRebalance | None = None
    on_revoke: OnRebalance | None = None
    on_lost: OnRebalance | None = None  # without it, `on_revoke` is called


class Membership:
    """The group of a consumer, as far as it shares partitions. Only the consumer's own thread may use it.

    notice: says that the next poll has to `look`
    """

    def __init__(
        self, data: DataDirectory, config: ConsumerConfig, assignment: Assignment, group: GroupOffsets, commits: Commits
    ) -> None:
        self.notice: Final = Notice()
        self._data: Final = data
        self._config: Final = config
        self._assignment: Final = assignment
        self._group: Final = group
        self._commits: Final = commits
        self._consumer: weakref.ref[Any] | None = None
        self._callbacks = Callbacks()
        self._told: frozenset[TopicPartition] = frozenset()  # those for which `on_assign` was called, and nothing since
        self._is_under_way = False  # a callback may call the consumer
        self._seen_version = -1  # of the topics, when the member subscribed last
        self._next_look = 0.0

    @property
    def member(self) -> Member | None:
        """The member; None without a subscription."""
        return self._group.member

    def is_deleted(self, partition: TopicPartition) -> bool:
        """Return whether the topic of an assigned partition is gone, which the coordinator has not noticed yet."""
        topic = self._data.topics.get(partition.topic)
        return self.member is not None and (topic is None or topic.id != self.member.owned.get(partition))

    # ---------------------------------------------------------------------------------------------- joining, leaving

    def subscribe(self, topics: Subscription, callbacks: Callbacks, consumer: object) -> None:
        """Join the group, or change the subscription. Raises `CoordinatorRefused`, and `ConsumerError` for a topic
        that has partitions, but is not in the metadata.
        """
        if isinstance(topics, frozenset):
            self._check_known(topics)
        member = self.member or self._new_member()
        self._assignment.subscribe(topics, are_given=True)
        self._callbacks = callbacks
        self._seen_version = self._version
        if self.member is None:
            self._join(member, topics, consumer)
        else:
            member.subscribe(self._topics(topics))
        self.look()

    def _new_member(self) -> Member:
        from octavo.log.coordinator.coordinator import group_hosts
        from octavo.log.coordinator.member import Member, MemberConfig

        config = self._config
        assert config.group_id is not None
        return Member(
            group_hosts(self._data),
            MemberConfig(
                config.group_id,
                config.group_instance_id,
                config.group_remote_assignor,
                config.max_poll_interval_ms,
                config.client_id,
            ),
            self.notice,
        )

    def _join(self, member: Member, topics: Subscription, consumer: object) -> None:
        self._consumer = weakref.ref(consumer)
        weakref.finalize(consumer, member.abandon).atexit = False
        try:
            member.subscribe(self._topics(topics))
            self._group.member = member
        except BaseException:
            self._assignment.unsubscribe()
            with suppress(OctavoError, OSError):
                member.leave()
            raise

    def leave(self) -> None:
        """Give all partitions back, and leave the group."""
        member = self.member
        if member is None:
            return
        self._is_under_way = True
        try:
            told, self._told = self._told, frozenset()
            on_lost = self._callbacks.on_lost or self._callbacks.on_revoke
            self._call(on_lost if member.is_lost else self._callbacks.on_revoke, told)
        finally:
            self._is_under_way = False
            self._group.member = None
            self._assignment.hold(())
            with suppress(OctavoError, OSError):  # a thread tries again while the directory is open
                member.leave()

    # ---------------------------------------------------------------------------------------------------- rebalances

    def look(self, *, now: bool = False) -> None:
        """Take notice of what has changed: in the group, or of topics. `now`: even if it is too early for that."""
        member = self.member
        if member is None:
            self._assignment.look(now=now)
            return
        if self._is_under_way:
            return
        member.polled()
        self._follow_topics(member, now=now)
        if not self.notice.is_there:
            return
        self.notice.is_there = False
        self._is_under_way = True
        try:
            self._reconcile(member)
        except BaseException:
            self.notice.is_there = True  # the next poll goes on from here
            raise
        finally:
            self._is_under_way = False

    def _follow_topics(self, member: Member, *, now: bool) -> None:
        """Tell the coordinator at once if topics have come or gone; a heartbeat would do so later."""
        subscription = self._assignment.subscription
        if subscription is None or not (now or time.monotonic() >= self._next_look):
            return
        self._next_look = time.monotonic() + LOOK_AGAIN_S
        version = self._version
        if version != self._seen_version:
            member.subscribe(self._topics(subscription))
            self._seen_version = version

    def _reconcile(self, member: Member) -> None:
        while self.member is member:  # a callback may end it
            error, member.error = member.error, None
            if error is not None:
                raise error
            if member.is_lost:
                self._lose(member)
                continue
            target, owned = member.target, member.owned
            revoked = {each for each, topic_id in owned.items() if target.get(each) != topic_id}
            if revoked:
                self._revoke(member, revoked)
                continue
            member.take()
            self._assignment.hold(member.owned)
            added, self._told = frozenset(member.owned) - self._told, frozenset(member.owned)
            self._call(self._callbacks.on_assign, added)
            if member.target == member.owned:
                return

    def _revoke(self, member: Member, revoked: Collection[TopicPartition]) -> None:
        deleted = {each for each in revoked if self.is_deleted(each)}  # positions mean nothing in a topic made anew
        self._assignment.hold(each for each in member.owned if each not in deleted)
        try:
            self._commits.commit_if_automatic()
        except MemberFenced:
            return  # they are lost already
        self._call(self._callbacks.on_revoke, self._told & frozenset(revoked))
        self._told -= frozenset(revoked)
        self._assignment.hold(each for each in member.owned if each not in revoked)
        if self.member is member:
            member.give_back(revoked)

    def _lose(self, member: Member) -> None:
        told, self._told = self._told, frozenset()
        self._assignment.hold(())
        self._call(self._callbacks.on_lost or self._callbacks.on_revoke, told)
        if self.member is member:
            member.rejoin()

    def _call(self, callback: OnRebalance | None, partitions: Collection[TopicPartition]) -> None:
        consumer = None if self._consumer is None else self._consumer()
        if callback is not None and partitions and consumer is not None:
            callback(consumer, sorted(partitions))

    # --------------------------------------------------------------------------------------------------------- topics

    @property
    def _version(self) -> int:
        return self._data.metadata_end[1]

    def _check_known(self, topics: frozenset[str]) -> None:
        for name in sorted(topics - self._data.topics.keys()):
            if any(partition.topic == name for partition in self._data.partitions()):
                raise ConsumerError(
                    f"a group cannot assign {name!r}, which is not in the metadata: add it by "
                    f"set_config({name!r}, {{}}), or assign() its partitions"
                )

    def _topics(self, subscription: Subscription) -> frozenset[str]:
        if isinstance(subscription, frozenset):
            return subscription
        return frozenset(name for name in list(self._data.topics) if self._assignment.matches(subscription, name))
