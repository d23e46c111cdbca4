"""Groups on their way from the classic protocol to the consumer protocol, and back: `Migration`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NoReturn

from octavo.coordinator.groups.classic.group import CONSUMER, ClassicGroup, ClassicMember
from octavo.coordinator.groups.classic.requests import Protocols
from octavo.coordinator.groups.consumer import records
from octavo.coordinator.groups.consumer.assignors.assignor import Assignment
from octavo.coordinator.groups.consumer.changes import Changes
from octavo.coordinator.groups.consumer.group import ConsumerGroup, ConsumerMember
from octavo.coordinator.groups.consumer.metadata_hash import metadata_hash
from octavo.coordinator.groups.consumer.protocol import (
    read_assignment,
    read_subscription,
    to_assignment,
    write_assignment,
)
from octavo.coordinator.groups.consumer.requests import Refused
from octavo.errors import ErrorCode, FormatError
from octavo.schemas.consumer_offsets.consumer_groups import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupTargetAssignmentMemberKey,
)

if TYPE_CHECKING:
    from octavo.coordinator.groups.group_shard import GroupShard

_UPGRADES: Final = ("bidirectional", "upgrade")
_DOWNGRADES: Final = ("bidirectional", "downgrade")


class Migration:
    """Conversions of groups, as far as the setting group.consumer.migration.policy allows them."""

    def __init__(self, shard: GroupShard, changes: Changes) -> None:
        self._shard: Final = shard
        self._changes: Final = changes

    @property
    def policy(self) -> str:
        """What is allowed."""
        return self._shard.config.group_consumer_migration_policy.lower()

    # ------------------------------------------------------------------------------------------------------- upgrades

    def upgrade(self, classic: ClassicGroup) -> ConsumerGroup:
        """Go on with a classic group by the consumer protocol. Its members are asked to join again."""
        group_id, topics = classic.group_id, self._shard.topics
        self._check_upgrade(classic)
        members = [_upgraded(classic, member) for _, member in sorted(classic.members.items())]
        targets = [self._assignment(classic, member) for _, member in sorted(classic.members.items())]
        epoch = classic.generation_id
        self._shard.classic.dissolve(classic)
        group = self._shard.consumer.add(group_id)
        for member in members:
            self._changes.put_member(group, member)
        self._changes.put_epoch(group, epoch, metadata_hash(group.subscribed_names(), topics))
        for member, target in zip(members, targets, strict=True):
            key = ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member.member_id)
            self._shard.write(key, records.target_value(target))
        self._changes.put_target_epoch(group, epoch, 0)
        for member, target in zip(members, targets, strict=True):
            self._changes.put_current(group, _holding(member, target, epoch))
            assert member.classic is not None
            self._changes.expect(group, member.member_id, member.classic.session_timeout_ms)
        return group

    def _check_upgrade(self, group: ClassicGroup) -> None:
        because = ""
        if self.policy not in _UPGRADES:
            because = "online upgrade is disabled"
        elif group.protocol_type != CONSUMER:
            because = "the group does not use the consumer embedded protocol"
        elif len(group.members) > self._shard.config.group_consumer_max_size:
            because = "the group size exceeds the consumer group maximum size"
        if because:
            _refuse_upgrade(group, f"{because}.")

    def _assignment(self, group: ClassicGroup, member: ClassicMember) -> Assignment:
        if not member.assignment:
            return {}
        try:
            read = read_assignment(member.assignment)
        except FormatError:
            _refuse_upgrade(group, _MALFORMED)
        if read.user_data:
            _refuse_upgrade(group, _CUSTOM)
        return to_assignment(read.assigned_partitions, self._shard.topics)

    # ----------------------------------------------------------------------------------------- removals, downgrades

    def remove(self, group: ConsumerGroup, members: Sequence[ConsumerMember]) -> None:
        """Remove members. If only classic ones are left, the group goes on by the classic protocol."""
        gone = {member.member_id for member in members}
        left = [member for member_id, member in group.members.items() if member_id not in gone]
        if left and all(member.classic is not None for member in left) and self._may_downgrade(len(left)):
            self.downgrade(group, gone, rebalances=True)
        elif members:
            self._changes.remove(group, members)

    def may_downgrade_by(self, group: ConsumerGroup, replaced: ConsumerMember | None) -> bool:
        """Return whether only classic members are left when a static member is replaced by one."""
        return (
            replaced is not None
            and replaced.classic is None
            and group.classic_count == len(group.members) - 1
            and self._may_downgrade(len(group.members))
        )

    def _may_downgrade(self, count: int) -> bool:
        return self.policy in _DOWNGRADES and count <= self._shard.config.group_max_size

    def downgrade(self, group: ConsumerGroup, without: set[str], *, rebalances: bool) -> None:
        """Go on with a group by the classic protocol."""
        members = [
            _downgraded(member) for member_id, member in sorted(group.members.items()) if member_id not in without
        ]
        targets: Mapping[str, Assignment] = dict(group.targets)
        generation_id = group.group_epoch
        self._changes.delete(group)

        def assignment(member_id: str, metadata: bytes) -> bytes:
            return write_assignment(targets.get(member_id, {}), self._shard.topics, metadata)

        self._shard.classic.convert(group.group_id, generation_id, members, assignment, rebalances=rebalances)


_MALFORMED: Final = "the embedded consumer protocol is malformed."
_CUSTOM: Final = (
    "an unsupported custom assignor is in use. Please refer to the documentation or switch to a default assignor "
    "before re-attempting the upgrade."
)


def _refuse_upgrade(group: ClassicGroup, because: str) -> NoReturn:
    message = f"Cannot upgrade classic group {group.group_id} to consumer group because {because}"
    raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, message)


def _upgraded(group: ClassicGroup, member: ClassicMember) -> ConsumerMember:
    """Return a classic member as it is in a consumer group, as yet without partitions."""
    try:
        subscription = read_subscription(member.metadata(group.protocol_name))
    except FormatError:
        _refuse_upgrade(group, _MALFORMED)
    return ConsumerMember(
        member_id=member.member_id,
        instance_id=member.group_instance_id,
        rack_id=subscription.rack_id or None,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        subscribed_topic_names=frozenset(subscription.topics),
        classic=classic_metadata(member.session_timeout_ms, member.protocols),
    )


def _holding(member: ConsumerMember, target: Assignment, epoch: int) -> ConsumerMember:
    assigned = {topic: dict.fromkeys(partitions, epoch) for topic, partitions in target.items()}
    return member._replace(member_epoch=epoch, previous_member_epoch=epoch, assigned=assigned)


def _downgraded(member: ConsumerMember) -> ClassicMember:
    assert member.classic is not None
    return ClassicMember(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        session_timeout_ms=member.classic.session_timeout_ms,
        protocol_type=CONSUMER,
        protocols=tuple((protocol.name, protocol.metadata) for protocol in member.classic.supported_protocols),
    )


def classic_metadata(session_timeout_ms: int, protocols: Protocols) -> ClassicMemberMetadata:
    """Return what is kept of a member that uses the classic protocol."""
    supported = tuple(ClassicProtocol(name=name, metadata=metadata) for name, metadata in protocols)
    return ClassicMemberMetadata(session_timeout_ms=session_timeout_ms, supported_protocols=supported)
