"""What clients do: one class for each kind of operation.

An operation is in the history from the moment it is asked for. It is completed in place, by the thread of the client or
by a callback. One that is never completed may have happened or not.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Mapping, Sequence
from enum import Enum, Flag, auto
from typing import TypeAlias

Partition: TypeAlias = tuple[str, int]
Value: TypeAlias = Hashable
Records: TypeAlias = Mapping[Partition, Sequence[tuple[int, Value]]]  # offsets and values in the order of the poll


class Outcome(Enum):
    """What the client knows about the outcome."""

    UNKNOWN = "unknown"
    OK = "ok"
    FAILED = "failed"  # it has not happened, and never will


class Promises(Flag):
    """What a producer promises, by its configuration."""

    NOTHING = 0
    ORDER = auto()  # one request in flight: retries change no order
    NO_DUPLICATES = auto()
    IDEMPOTENT = ORDER | NO_DUPLICATES


class Operation:
    """An operation of one client, with the times between which it happened, if it did."""

    __slots__ = ("completed_ns", "invoked_ns", "outcome", "process")

    def __init__(self, process: int, invoked_ns: int | None = None) -> None:
        """`process`: the number of the client. `invoked_ns`: by default now, by the monotonic clock."""
        self.process = process
        self.invoked_ns = time.monotonic_ns() if invoked_ns is None else invoked_ns
        self.completed_ns: int | None = None
        self.outcome = Outcome.UNKNOWN

    def _complete(self, outcome: Outcome, at_ns: int | None) -> None:
        assert self.outcome is Outcome.UNKNOWN, "an operation is completed once"
        self.completed_ns = time.monotonic_ns() if at_ns is None else at_ns
        self.outcome = outcome

    def fail(self, at_ns: int | None = None) -> None:
        """Note that the operation has not happened and never will."""
        self._complete(Outcome.FAILED, at_ns)


class Transaction(Operation):
    """A transaction of a producer, from its begin on. `fail` notes that it was aborted.

    What its producer never asked to commit cannot be committed. If it was asked, and nobody knows the answer, then
    everything is there in the end, or nothing.
    """

    __slots__ = ("commit_ns", "group", "offsets", "sends")

    def __init__(self, process: int, invoked_ns: int | None = None) -> None:
        super().__init__(process, invoked_ns)
        self.sends: list[Send] = []
        self.group: str | None = None
        self.offsets: dict[Partition, int] = {}  # what the group goes on from if this is committed
        self.commit_ns: int | None = None

    def send_offsets(self, group: str, offsets: Mapping[Partition, int]) -> None:
        """Note that offsets of a group are about to be committed with the transaction. They only ever grow."""
        assert self.group in (None, group), "a transaction has offsets of one group"
        self.group = group
        self.offsets.update(offsets)

    def commit(self, at_ns: int | None = None) -> None:
        """Note that the commit is about to be asked for."""
        self.commit_ns = time.monotonic_ns() if at_ns is None else at_ns

    def succeed(self, at_ns: int | None = None) -> None:
        """Note that the commit was acknowledged."""
        assert self.commit_ns is not None, "nobody has asked for the commit"
        self._complete(Outcome.OK, at_ns)

    @property
    def partition(self) -> Partition:
        """One of the partitions that it has to do with."""
        return next(iter((*(send.partition for send in self.sends), *self.offsets)))

    @property
    def is_aborted(self) -> bool:
        """Whether nothing of it may ever be seen."""
        return self.commit_ns is None or self.outcome is Outcome.FAILED

    def __repr__(self) -> str:
        outcome = "aborted" if self.is_aborted else "committed" if self.outcome is Outcome.OK else "perhaps committed"
        return f"the transaction of process {self.process} with {[send.value for send in self.sends]!r}, {outcome}"


class FetchOffsets(Operation):
    """A consumer asks where its group goes on, and is given stable offsets only: none of an open transaction."""

    __slots__ = ("group", "offsets")

    def __init__(self, process: int, group: str, invoked_ns: int | None = None) -> None:
        super().__init__(process, invoked_ns)
        self.group = group
        self.offsets: Mapping[Partition, int | None] = {}

    def succeed(self, offsets: Mapping[Partition, int | None], at_ns: int | None = None) -> None:
        """Note the answer; None where the group has committed nothing."""
        self.offsets = offsets
        self._complete(Outcome.OK, at_ns)

    def __repr__(self) -> str:
        return f"process {self.process} was told of {self.group}: {dict(self.offsets)!r}"


class Send(Operation):
    """A producer sends a value. Kafka numbers it when it is written."""

    __slots__ = ("key", "offset", "partition", "promises", "transaction", "value")

    def __init__(
        self,
        process: int,
        partition: Partition,
        value: Value,
        promises: Promises,
        *,
        key: Hashable = None,
        transaction: Transaction | None = None,
        invoked_ns: int | None = None,
    ) -> None:
        super().__init__(process, invoked_ns)
        self.partition = partition
        self.value = value
        self.promises = promises
        self.key = key  # only compaction looks at it
        self.offset: int | None = None
        self.transaction = transaction
        if transaction is not None:
            transaction.sends.append(self)

    @property
    def must_be_there(self) -> bool:
        """Whether readers have to see the value; of a transaction, whether its commit was acknowledged."""
        return (self if self.transaction is None else self.transaction).outcome is Outcome.OK

    def succeed(self, offset: int | None = None, at_ns: int | None = None) -> None:
        """Note the acknowledgement; `offset` None if the client was not told where the value is."""
        self.offset = offset
        self._complete(Outcome.OK, at_ns)

    def __repr__(self) -> str:
        at = "" if self.offset is None else f" at {self.offset}"
        return f"process {self.process} sent {self.value!r}: {self.outcome.value}{at}"


class Poll(Operation):
    """A consumer asks for records of the partitions that it is assigned."""

    __slots__ = ("records", "transaction")

    def __init__(self, process: int, invoked_ns: int | None = None, *, transaction: Transaction | None = None) -> None:
        super().__init__(process, invoked_ns)
        self.records: Records = {}
        self.transaction = transaction  # the one that has the offsets of these records, and what is made of them

    def succeed(self, records: Records, at_ns: int | None = None) -> None:
        """Note what the consumer was given."""
        self.records = records
        self._complete(Outcome.OK, at_ns)

    def __repr__(self) -> str:
        return f"process {self.process} polled {dict(self.records)!r}"


class Assign(Operation):
    """A consumer goes to the given positions; None for one that is not known, such as the start of a log.

    It keeps its place in the partitions that are not named, or gives them up if it `replaces` the assignment.
    """

    __slots__ = ("positions", "replaces")

    def __init__(
        self, process: int, positions: Mapping[Partition, int | None], *, replaces: bool, invoked_ns: int | None = None
    ) -> None:
        super().__init__(process, invoked_ns)
        self.positions = positions
        self.replaces = replaces
        self._complete(Outcome.OK, self.invoked_ns)

    def __repr__(self) -> str:
        return f"process {self.process} went to {dict(self.positions)!r}"
