"""`Coordinator`: producer ids, committed offsets and transactions of a directory, in one object."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from octavo.coordinator.shard import Producer
from octavo.log.coordinator.consumer_group_metadata import ConsumerGroupMetadata
from octavo.log.coordinator.groups import Groups, check_commit
from octavo.log.coordinator.offset_and_metadata import OffsetAndMetadata
from octavo.log.coordinator.producer_identity import ProducerIdentity
from octavo.log.coordinator.producer_ids import ProducerIds
from octavo.log.coordinator.transactions import Transactions
from octavo.log.names import TopicPartition
from octavo.schemas.transaction_state import TransactionLogValue

if TYPE_CHECKING:
    from octavo.log.directory.data_directory import DataDirectory

DEFAULT_TIMEOUT_MS = 60_000


class Coordinator:
    """Producer ids, committed offsets and transactions of one open directory. Any thread may use it.

    Once a call returns, its effect survives a crash of the process, as an append does. The module `transactions`
    describes what survives a power failure. Offsets committed outside of a transaction survive one only if they were
    flushed, like any append.
    """

    def __init__(self, data: DataDirectory) -> None:
        """Do not call this: use `of`."""
        self._producer_ids = ProducerIds(data)
        self._groups = Groups(data)
        self._transactions = Transactions(data, self._producer_ids, self._groups)

    @staticmethod
    def of(data: DataDirectory) -> Coordinator:
        """Return the coordinator of a directory."""
        return data.coordinator

    def tick(self) -> None:
        """Have everything happen whose time has come in groups that are in use: offsets expire, members are missed.

        Where this process has members, their thread does so in time for their groups.
        """
        for host in self._groups.running:
            host.tick()

    # ------------------------------------------------------------------------------------------------------- producers

    def init_producer_id(
        self,
        transactional_id: str | None = None,
        timeout_ms: int = DEFAULT_TIMEOUT_MS,
        current: ProducerIdentity | None = None,
    ) -> ProducerIdentity:
        """Return the identity of a new producer, or a new epoch for one that has an identity and goes on.

        With a transactional id, the previous producer is fenced by a larger epoch. A transaction that it left is
        aborted, or committed if that was already decided. Raises `CoordinatorRefused`, `InvalidInput`, and `LogError`
        if the directory is not the only node of its cluster. A producer that gives its `current` identity must have
        ended its transaction. It fences nobody: `ProducerFenced` is raised if another one has the id now. An answer
        that was lost is given again.
        """
        if transactional_id is None:
            return ProducerIdentity(self._producer_ids.next(), 0)
        return self._transactions.init(transactional_id, timeout_ms, current)

    def add_partitions(
        self, transactional_id: str, ident: ProducerIdentity, partitions: Iterable[TopicPartition]
    ) -> None:
        """Add partitions to the transaction, before it writes to them. The first call begins the transaction.

        Raises `CoordinatorRefused` (`ProducerFenced`, `TransactionIsEnding`, ...) and `UnknownPartition`.
        """
        self._transactions.add_partitions(transactional_id, ident, partitions)

    def end_transaction(self, transactional_id: str, ident: ProducerIdentity, commit: bool) -> None:
        """Commit or abort the transaction. When this returns, all partitions have the marker.

        Only if another thread has taken over, because that takes more than a second, they may get it a little later.
        A call that fails with an `OSError` can be repeated. A transaction without partitions has never begun: there is
        nothing to end, and `WrongTransactionState` is raised unless the last transaction ended the same way.
        """
        self._transactions.end(transactional_id, ident, commit=commit)

    def abort_timed_out(self, now_ms: int) -> list[str]:
        """Abort transactions that exceeded the timeout of their producers. Return their transactional ids."""
        return self._transactions.abort_timed_out(now_ms)

    def finish_prepared(self) -> None:
        """Finish transactions that were decided but not completed before a crash, unless this was done already."""
        self._transactions.load()

    def transaction(self, transactional_id: str) -> TransactionLogValue | None:
        """The state of a transactional id, as in `__transaction_state`."""
        return self._transactions.state(transactional_id)

    # ------------------------------------------------------------------------------------------------------- consumers

    def commit_offsets(
        self,
        group_id: str | ConsumerGroupMetadata,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        transactional_id: str | None = None,
        ident: ProducerIdentity | None = None,
    ) -> None:
        """Commit offsets of a group. As part of a transaction, they count once that is committed.

        group_id: or what `Consumer.consumer_group_metadata` tells of a member; `MemberFenced` is raised if it is none
            any more

        Raises `CoordinatorRefused`, `InvalidInput` and `UnknownPartition`.
        """
        if transactional_id is None or ident is None:
            self._groups.commit(group_id, offsets)
            return
        name = group_id if isinstance(group_id, str) else group_id.group_id
        check_commit(name, offsets)
        if offsets:
            partition = self._groups.partition_for(name)
            self._transactions.add_partitions(transactional_id, ident, [partition])
            self._groups.commit(group_id, offsets, Producer(*ident))

    def committed(
        self, group_id: str, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """A group's committed offset in each partition, or None; without `partitions`, all that the group has."""
        return self._groups.committed(group_id, partitions)

    def groups(self) -> list[str]:
        """The groups that have committed offsets."""
        return self._groups.groups()

    def leave_groups(self) -> None:
        """Have all consumers in this process leave their groups, before the directory is closed."""
        self._groups.members.leave_all()

    def forget_topic(self, topic: str) -> None:
        """Remove the committed offsets of all groups in a topic that was deleted."""
        self._groups.forget_topic(topic)


def group_hosts(data: DataDirectory) -> Groups:
    """Return what runs the coordinators of groups of a directory. It is for the broker, and for members here."""
    return data.coordinator._groups


def transaction_hosts(data: DataDirectory) -> Transactions:
    """Return what runs the coordinators of transactions of a directory. It is for the broker."""
    return data.coordinator._transactions
