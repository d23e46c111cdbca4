"""What brokers do for producers and consumers beside the logs, in one object: `Coordinator`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from octavo.log.coordinator.offsets import Offsets, check_commit
from octavo.log.coordinator.producer_ids import ProducerIds
from octavo.log.coordinator.transaction_log import ProducerIdentity
from octavo.log.coordinator.transactions import Transactions
from octavo.log.names import TopicPartition
from octavo.log.offset_and_metadata import OffsetAndMetadata
from octavo.schemas.transactions import TransactionLogValue

if TYPE_CHECKING:
    from octavo.log.directory import DataDirectory

DEFAULT_TIMEOUT_MS = 60_000


class Coordinator:
    """Producer ids, committed offsets and transactions of one open directory. Any thread may use it.

    What a call has returned from survives the process, as an append does. `transactions` says what holds when the power
    goes; a commit of offsets outside a transaction is then kept as far as it was flushed, as any append.
    """

    def __init__(self, data: DataDirectory) -> None:
        """Not for callers: see `of`."""
        self._producer_ids = ProducerIds(data)
        self._offsets = Offsets(data)
        self._transactions = Transactions(data, self._producer_ids, self._offsets)

    @staticmethod
    def of(data: DataDirectory) -> Coordinator:
        """The one that the directory has."""
        return data.coordinator

    # ------------------------------------------------------------------------------------------------------- producers

    def init_producer_id(
        self, transactional_id: str | None = None, timeout_ms: int = DEFAULT_TIMEOUT_MS
    ) -> ProducerIdentity:
        """The identity of a new producer.

        With a transactional id, whoever had it before is fenced off by a larger epoch; a transaction that it had
        decided to commit is committed, any other aborted. Raises `CoordinatorRefused`, `InvalidInput`, and `LogError`
        where the directory is not the only node of its cluster.
        """
        if transactional_id is None:
            return ProducerIdentity(self._producer_ids.next(), 0)
        return self._transactions.init(transactional_id, timeout_ms)

    def add_partitions(
        self, transactional_id: str, ident: ProducerIdentity, partitions: Iterable[TopicPartition]
    ) -> None:
        """Have partitions in the transaction, before anything is written to them as part of it; the first begin it.

        Raises `CoordinatorRefused` (`ProducerFenced`, `TransactionIsEnding`, ...) and `UnknownPartition`.
        """
        self._transactions.add_partitions(transactional_id, ident, partitions)

    def end_transaction(self, transactional_id: str, ident: ProducerIdentity, commit: bool) -> None:
        """Commit or abort the transaction; when this returns all partitions have the marker.

        What fails with an `OSError` can be asked for again. A transaction that no partition was added to has never
        begun: there is nothing to end, and `WrongTransactionState` is raised unless the last one ended the same way.
        """
        self._transactions.end(transactional_id, ident, commit=commit)

    def abort_timed_out(self, now_ms: int) -> list[str]:
        """Abort the transactions that are open for longer than their producers asked for; the transactional ids."""
        return self._transactions.abort_timed_out(now_ms)

    def finish_prepared(self) -> None:
        """End the transactions that were decided before a crash, unless that is done since the directory is open."""
        self._transactions.read()

    def transaction(self, transactional_id: str) -> TransactionLogValue | None:
        """What is known of a transactional id, as `__transaction_state` has it."""
        return self._transactions.state(transactional_id)

    # ------------------------------------------------------------------------------------------------------- consumers

    def commit_offsets(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        transactional_id: str | None = None,
        ident: ProducerIdentity | None = None,
    ) -> None:
        """Let a group go on from these positions; with a transaction, if and when that is committed.

        Raises `CoordinatorRefused`, `InvalidInput` and `UnknownPartition`.
        """
        if transactional_id is None or ident is None:
            self._offsets.commit(group_id, offsets)
            return
        check_commit(group_id, offsets)
        if offsets:
            partition = self._offsets.partition_for(group_id)
            self._transactions.add_partitions(transactional_id, ident, [partition])
            self._offsets.commit(group_id, offsets, ident)

    def committed(
        self, group_id: str, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Where a group is in each of the partitions, None for nowhere; without `partitions` wherever it is."""
        return self._offsets.committed(group_id, partitions)

    def groups(self) -> list[str]:
        """The groups that have committed anything."""
        return self._offsets.groups()

    def forget_topic(self, topic: str) -> None:
        """Take away the positions of all groups in a topic that was deleted."""
        self._offsets.forget_topic(topic)
