"""The operations of all clients in the order in which they were asked for: `History`."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterator, Mapping
from typing import Final

from tests.history.operations import (
    Assign,
    FetchOffsets,
    Operation,
    Partition,
    Poll,
    Promises,
    Send,
    Transaction,
    Value,
)


class History:
    """A history that clients in several threads append to."""

    def __init__(self) -> None:
        self._operations: Final[list[Operation]] = []
        self._processes: Final = itertools.count()

    def client(self, promises: Promises = Promises.NOTHING) -> Client:
        """Return a new client. `promises`: what it promises as a producer."""
        return Client(self, next(self._processes), promises)

    def append(self, operation: Operation) -> None:
        """Add an operation that is asked for now."""
        self._operations.append(operation)

    def __iter__(self) -> Iterator[Operation]:
        return iter(self._operations)

    def __len__(self) -> int:
        return len(self._operations)


class Client:
    """One client, which writes down what it does. It does one thing after the other, except that sends overlap."""

    def __init__(self, history: History, process: int, promises: Promises) -> None:
        """Do not call this; use `History.client`."""
        self.process: Final = process
        self._promises: Final = promises
        self._append: Final = history.append

    def begin(self, at_ns: int | None = None) -> Transaction:
        """Note that a transaction begins."""
        transaction = Transaction(self.process, at_ns)
        self._append(transaction)
        return transaction

    def send(
        self,
        partition: Partition,
        value: Value,
        *,
        key: Hashable = None,
        transaction: Transaction | None = None,
        at_ns: int | None = None,
    ) -> Send:
        """Note that a value is about to be sent."""
        send = Send(self.process, partition, value, self._promises, key=key, transaction=transaction, invoked_ns=at_ns)
        self._append(send)
        return send

    def poll(self, at_ns: int | None = None, *, transaction: Transaction | None = None) -> Poll:
        """Note that records are about to be asked for, perhaps to be transformed within a transaction."""
        poll = Poll(self.process, at_ns, transaction=transaction)
        self._append(poll)
        return poll

    def fetch_offsets(self, group: str, at_ns: int | None = None) -> FetchOffsets:
        """Note that the stable offsets of a group are about to be asked for."""
        fetch = FetchOffsets(self.process, group, at_ns)
        self._append(fetch)
        return fetch

    def assign(self, positions: Mapping[Partition, int | None], at_ns: int | None = None) -> None:
        """Note that the client reads these partitions from now on, and no others."""
        self._append(Assign(self.process, positions, replaces=True, invoked_ns=at_ns))

    def seek(self, positions: Mapping[Partition, int | None], at_ns: int | None = None) -> None:
        """Note that the client goes elsewhere in some of its partitions."""
        self._append(Assign(self.process, positions, replaces=False, invoked_ns=at_ns))
