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


class Send(Operation):
    """A producer sends a value. Kafka numbers it when it is written."""

    __slots__ = ("key", "offset", "partition", "promises", "value")

    def __init__(
        self,
        process: int,
        partition: Partition,
        value: Value,
        promises: Promises,
        *,
        key: Hashable = None,
        invoked_ns: int | None = None,
    ) -> None:
        super().__init__(process, invoked_ns)
        self.partition = partition
        self.value = value
        self.promises = promises
        self.key = key  # only compaction looks at it
        self.offset: int | None = None

    def succeed(self, offset: int | None = None, at_ns: int | None = None) -> None:
        """Note the acknowledgement; `offset` None if the client was not told where the value is."""
        self.offset = offset
        self._complete(Outcome.OK, at_ns)

    def __repr__(self) -> str:
        at = "" if self.offset is None else f" at {self.offset}"
        return f"process {self.process} sent {self.value!r}: {self.outcome.value}{at}"


class Poll(Operation):
    """A consumer asks for records of the partitions that it is assigned."""

    __slots__ = ("records",)

    def __init__(self, process: int, invoked_ns: int | None = None) -> None:
        super().__init__(process, invoked_ns)
        self.records: Records = {}

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
