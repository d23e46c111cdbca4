"""The transactions of one producer, with the states of Kafka's client: `ProducerTransactions`.

UNINITIALIZED -> READY                        init_transactions
READY -> IN_TRANSACTION                       begin_transaction
IN_TRANSACTION -> COMMITTING -> READY         commit_transaction
IN_TRANSACTION -> ABORTING -> READY           abort_transaction
IN_TRANSACTION -> ABORTABLE_ERROR             something could not be appended: the transaction can only be aborted
any -> FATAL_ERROR                            another producer has the transactional id: this one can only be closed

COMMITTING and ABORTING last only if the call was interrupted or has failed. The same call can be repeated then. After
COMMITTING, `abort_transaction` is possible too: it finds out whether the commit was decided.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import contextmanager, suppress
from enum import Enum
from typing import TYPE_CHECKING, Final

from octavo.errors import (
    OctavoError,
    ProducerFenced,
    TransactionFailed,
    UnknownProducer,
    WrongTransactionOrder,
    WrongTransactionState,
)
from octavo.log.coordinator import Coordinator, OffsetAndMetadata, ProducerIdentity
from octavo.log.coordinator.consumer_group_metadata import ConsumerGroupMetadata
from octavo.log.names import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterator

    from octavo.log.directory.data_directory import DataDirectory
    from octavo.log.producer.identity import Identity


class State(Enum):
    """State of a transactional producer. Its value completes the sentence of an error message."""

    UNINITIALIZED = "before init_transactions"
    READY = "outside a transaction"
    IN_TRANSACTION = "in a transaction"
    COMMITTING = "in a transaction whose commit was interrupted"
    ABORTING = "in a transaction whose abort was interrupted"
    ABORTABLE_ERROR = "in a transaction that has failed"
    FATAL_ERROR = "by a producer that was fenced off"


_OPEN: Final = (State.IN_TRANSACTION, State.ABORTABLE_ERROR, State.COMMITTING, State.ABORTING)
_HINTS: Final = {
    State.UNINITIALIZED: "call init_transactions first",
    State.COMMITTING: "call commit_transaction again, or abort_transaction",
    State.ABORTING: "call abort_transaction again",
}
_FATAL: Final = (ProducerFenced, UnknownProducer)


class ProducerTransactions:
    """Keeps the transaction state of a producer, and calls the coordinator."""

    def __init__(
        self,
        data: DataDirectory,
        transactional_id: str,
        timeout_ms: int,
        identity: Identity,
        *,
        on_error: Callable[[], None],
    ) -> None:
        self._coordinator: Final = Coordinator.of(data)
        self._id: Final = transactional_id
        self._timeout_ms: Final = timeout_ms
        self._identity: Final = identity
        self._on_error: Final = on_error
        self._added: set[TopicPartition] = set()
        self._has_begun = False  # whether the coordinator knows of the transaction
        self._may_have_begun = False  # the coordinator was asked, and may know of it
        self.state = State.UNINITIALIZED
        self.error: Exception | None = None  # cause of an error state

    @property
    def ident(self) -> ProducerIdentity:
        """The producer id and epoch by which the coordinator knows the producer."""
        return self._identity.producer

    @property
    def is_open(self) -> bool:
        """Whether there is a transaction to end."""
        return self.state in _OPEN

    def failure(self) -> Exception:
        """The exception to raise in an error state."""
        error = self.error
        assert error is not None
        if self.state is State.FATAL_ERROR:
            return error
        failed = TransactionFailed(f"the transaction can only be aborted: {error}")
        failed.__cause__ = error
        return failed

    def _check(self, what: str, *states: State, hint: str = "call begin_transaction first") -> None:
        """Raise `WrongTransactionOrder` unless the state is one of `states`; in an error state, raise `failure()`."""
        if self.state in states:
            return
        if self.error is not None:
            raise self.failure()
        raise WrongTransactionOrder(what, self.state.value, _HINTS.get(self.state, hint))

    # ------------------------------------------------------------------------------------------------------- the order

    def init(self) -> None:
        """Take over the transactional id from its previous producer."""
        self._check("init_transactions", State.UNINITIALIZED, hint="it is done once, at first")
        with self._noting_fences():
            self._identity.become(self._coordinator.init_producer_id(self._id, self._timeout_ms))
        self.state = State.READY

    def begin(self) -> None:
        """Begin a transaction. The coordinator learns of it with its first partition."""
        self._check("begin_transaction", State.READY, hint="end the one that is open first")
        self.state = State.IN_TRANSACTION

    def check_may_send(self) -> None:
        """Raise unless the producer is in a transaction that has not failed."""
        self._check("send", State.IN_TRANSACTION)

    def add_partition(self, partition: TopicPartition) -> None:
        """Add a partition to the transaction, before anything is written to it."""
        self.check_may_send()
        if partition not in self._added:
            self._may_have_begun = True
            with self._noting_fences():
                self._coordinator.add_partitions(self._id, self.ident, [partition])
            self._has_begun = True
            self._added.add(partition)

    def send_offsets(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group: str | ConsumerGroupMetadata
    ) -> None:
        """Add the offsets of a group to the transaction. They are committed if the transaction is."""
        self._check("send_offsets_to_transaction", State.IN_TRANSACTION)
        if offsets:
            self._may_have_begun = True
            try:
                with self._noting_fences():
                    self._coordinator.commit_offsets(group, offsets, self._id, self.ident)
            except (OctavoError, OSError) as error:
                self.fail(error)
                raise
            self._has_begun = True

    def commit(self, flush: Callable[[], None]) -> None:
        """Call `flush` to append what was sent, then commit the transaction."""
        if self.state is not State.COMMITTING:
            self._check("commit_transaction", State.IN_TRANSACTION)
            flush()
            self._check("commit_transaction", State.IN_TRANSACTION)
            self.state = State.COMMITTING  # from now on it may be decided
        self._end(commit=True)

    def abort(self, drop: Callable[[], None]) -> None:
        """Call `drop` to drop what was not appended, then abort the transaction.

        Raises `WrongTransactionState` if it was committed by a `commit` that was interrupted. It has ended then, too.
        """
        self._check("abort_transaction", *_OPEN)
        if not self._abort(drop):
            raise WrongTransactionState(
                f"the transaction of {self._id!r} cannot be aborted: its commit was decided before it was interrupted, "
                "and is complete now. The producer can begin the next one"
            )

    def finish(self, drop: Callable[[], None]) -> None:
        """End what is open, before the producer is closed: abort it, unless its commit was decided already."""
        if self.is_open:
            with suppress(*_FATAL):  # the one that took over the transactional id has ended the transaction
                self._abort(drop)

    def _abort(self, drop: Callable[[], None]) -> bool:
        """Abort the transaction. Return whether that was possible; if not, it is committed."""
        was_committing = self.state is State.COMMITTING
        if not was_committing:
            self.state = State.ABORTING  # what is dropped now may not be missing in a commit
        drop()
        try:
            self._end(commit=False)
        except WrongTransactionState:
            if not was_committing:
                raise
            self._end(commit=True)
            return False
        return True

    def _end(self, *, commit: bool) -> None:
        """Have the coordinator end the transaction. After an exception in the middle this can be repeated."""
        if self._may_have_begun:
            with self._noting_fences():
                self._end_at_coordinator(commit=commit)
            self._added.clear()  # before these: after a call a signal may be handled, and then they have to say so
            self._has_begun = False
            self._may_have_begun = False
        if self.error is not None or self._identity.is_unsure:
            # It is unknown which sequence numbers the logs have seen. With a new epoch they start at 0 (KIP-360).
            with self._noting_fences():
                again = self._coordinator.init_producer_id(self._id, self._timeout_ms, self.ident)
            self._identity.become(again)
        self.error = None
        self.state = State.READY

    def _end_at_coordinator(self, *, commit: bool) -> None:
        try:
            self._coordinator.end_transaction(self._id, self.ident, commit)
        except WrongTransactionState:
            if self._has_begun:
                raise
            # The request that was to begin it was interrupted, and did not get there.

    # ---------------------------------------------------------------------------------------------------------- errors

    def fail(self, error: Exception) -> None:
        """Enter the abortable error state: something in the transaction failed."""
        if self.error is None:
            self.error = error
            self.state = State.ABORTABLE_ERROR
            self._on_error()

    @contextmanager
    def _noting_fences(self) -> Iterator[None]:
        try:
            yield
        except _FATAL as fenced:
            self.error = fenced
            self.state = State.FATAL_ERROR
            self._on_error()
            raise
