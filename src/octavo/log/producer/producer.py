"""`Producer`: sends records to the topics of a data directory, as Kafka's producer sends them to brokers."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, Never

from octavo.errors import ProducerClosed, TransactionAborted, WrongCall, WrongTransactionOrder
from octavo.log.clients.arguments import (
    check_config,
    check_function,
    offsets_by_partition,
    partitions_of,
    writable_directory,
)
from octavo.log.clients.ported_calls import (
    NO_WAIT,
    OF_PRODUCERS,
    answering,
    quick_way_of,
    refusing,
    without,
    wrong_call,
)
from octavo.log.clock import NS_PER_MS, Clock, monotonic_ms, wall_clock_ms
from octavo.log.closing import ClosedByWith
from octavo.log.coordinator.consumer_group_metadata import ConsumerGroupMetadata
from octavo.log.names import TopicPartition
from octavo.log.ownership.fork_safe import in_child, make_rlock
from octavo.log.producer.config import ProducerConfig
from octavo.log.producer.future import OnDelivery, SendFuture
from octavo.log.producer.identity import Identity
from octavo.log.producer.inbox import Inbox, Limits
from octavo.log.producer.linger_thread import Linger, LingerThread
from octavo.log.producer.partitioner import Partitioner, chosen_partition
from octavo.log.producer.sender import Sender
from octavo.records.layout import Buffer
from octavo.records.v2 import HeaderLike

if TYPE_CHECKING:
    from octavo.log.coordinator.offset_and_metadata import OffsetAndMetadata
    from octavo.log.directory.data_directory import DataDirectory
    from octavo.log.producer.deliverer import Deliverer
    from octavo.log.producer.packer import Packer
    from octavo.log.producer.transactional import ProducerTransactions

Serializer = Callable[[Any], Buffer | None]  # returns the bytes of a key or value

_OF_SEND: Final = {"*": "what follows topic, value and key is named, as in partition=0"}
_NOTHING: Final = object()


@without(**OF_PRODUCERS)
class Producer(ClosedByWith):
    """Sends records to topics. Any number of threads may use it. `close` it, or use it in a `with`.

    A record waits until its batch is full (`batch.size`) or `linger.ms` have passed. `flush`, `close` and
    `SendFuture.result` end the wait earlier. "Appended" means: in the page cache, as with `Log.append`.

    config, or keywords with `_` for `.`: options with Kafka's names; see `ProducerConfig`
    key_serializer, value_serializer: convert what is sent to bytes
    partitioner: chooses a partition for a record sent without one, from topic, key, value and the number of partitions
    clock: returns milliseconds, by which `linger.ms` is measured. If it is given, no thread is started: call `run_once`

    Raises `InvalidConfig`, and `WrongCall` without a directory.
    """

    @refusing
    def __init__(
        self,
        data: DataDirectory | None = None,
        config: Mapping[str, Any] | None = None,
        *more: Never,
        key_serializer: Serializer | None = None,
        value_serializer: Serializer | None = None,
        partitioner: Partitioner | None = None,
        clock: Clock | None = None,
        choose: Callable[[int], int] = random.randrange,
        **settings: Any,
    ) -> None:
        data = writable_directory(data)
        check_config("Producer", config, more)
        check_function("key_serializer", key_serializer, "key")
        check_function("value_serializer", value_serializer, "value")
        check_function("partitioner", partitioner, "topic", "key", "value", "partition_count")
        self.config: Final = ProducerConfig.of(config, **settings)
        self._data: Final = data
        self._key_serializer: Final = key_serializer
        self._value_serializer: Final = value_serializer
        self._partitioner: Final = partitioner
        self._prepares: Final = any((key_serializer, value_serializer, partitioner))
        self._identity: Final = Identity(data, idempotent=self.config.enable_idempotence)
        self._choose: Final = choose
        # The wall clock is quickest to read in nanoseconds. They become milliseconds for many records at once.
        is_wall_clock = data._clock is wall_clock_ms
        self._now: Final[Callable[[], int]] = time.time_ns if is_wall_clock else data._clock
        self._clock_unit: Final = NS_PER_MS if is_wall_clock else 1
        self._clock: Final = clock or monotonic_ms
        self._sender: Final = Sender(
            self.config, self._make_packer, self._make_deliverer, self._clock, check_process=self._check_process
        )
        self._linger: Final = Linger(self._sender, self.config.linger_ms, self._clock)
        self._has_thread: Final = clock is None
        self._thread: LingerThread | None = None
        self._lock: Final = make_rlock()  # held to open inboxes, end transactions, and close
        self._checked: dict[str, Inbox] = {}  # inboxes to which records may be sent now
        self._inboxes: dict[str, Inbox] = {}  # the same, but empty if there are serializers or a partitioner
        self._is_closed = False
        self._transactions: Final = self._make_transactions()
        data._on_close.add(self._stop_sends)
        in_child.add(self._stop_sends)

    def _make_packer(self) -> Packer:
        from octavo.log.producer.packer import Packer

        return Packer(self.config, self._identity, clock_unit=self._clock_unit, choose=self._choose)

    def _make_deliverer(self) -> Deliverer:
        from octavo.log.producer.deliverer import Deliverer

        return Deliverer(self._data, self.config, self._identity, self._transactions, on_unknown=self._forget)

    def _make_transactions(self) -> ProducerTransactions | None:
        if self.config.transactional_id is None:
            return None
        from octavo.log.producer.transactional import ProducerTransactions

        timeout_ms = self.config.transaction_timeout_ms
        return ProducerTransactions(
            self._data, self.config.transactional_id, timeout_ms, self._identity, on_error=self._stop_sends
        )

    # ------------------------------------------------------------------------------------------------------------ send

    def _send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        *,
        headers: Iterable[HeaderLike] | Mapping[str, Buffer | None] | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> SendFuture:
        """Send a record, and return a future for its offset, or for the error if it cannot be appended.

        `on_delivery` is called once with `(error, metadata)`, by the thread that appends the record: with None and a
        `RecordMetadata`, or with the error and None. It must not take long. Exceptions that it raises go to
        `threading.excepthook`.

        Raises `InvalidInput` if the record is not valid, or too large (`RecordTooLarge`); `UnknownPartition`,
        `ProducerClosed`, `Closed` if the directory is closed, `WrongTransactionOrder` outside of a transaction, and
        `WrongProcess` in a fork of the process that opened the directory.
        """
        inbox = self._checked.get(topic) or self._inbox(topic)
        if self._prepares:
            key, value, partition = self._prepared(inbox, key, value, partition)
        key, value, time = inbox.checked(key, value, self._now(), partition, timestamp_ms, headers)
        future = SendFuture()
        future._holder = inbox
        if on_delivery is not None:
            self._sender.call_back(future, on_delivery)
        inbox.rows.extend((key, value, time, future))
        if len(inbox.rows) >= inbox.room:
            self._tend(inbox)
        return future

    @quick_way_of(_send)
    def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        by_position: object = _NOTHING,
        headers: Any = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> SendFuture:
        # Most records have a value and perhaps a key, and nothing else. Keyword-only parameters would cost a tenth of
        # the time of a call, since Python looks up their defaults by name.
        try:
            inbox = self._inboxes[topic]
        except KeyError:
            inbox = None
        if (
            inbox is not None
            and by_position is _NOTHING
            and headers is None
            and partition is None
            and timestamp_ms is None
            and on_delivery is None
            and type(value) is bytes
            and len(value) <= inbox.small
            and (key is None or (type(key) is bytes and len(key) <= inbox.small_key))
        ):
            future = SendFuture()
            future._holder = inbox
            rows = inbox.rows
            rows += (key, value, self._now(), future)  # one operation: other threads cannot interleave
            if len(rows) >= inbox.room:
                self._tend(inbox)
            return future
        if by_position is not _NOTHING:
            wrong_call("Producer.send", (by_position,), {}, _OF_SEND)
        return self._send(
            topic,
            value,
            key,
            headers=headers,
            partition=partition,
            timestamp_ms=timestamp_ms,
            on_delivery=on_delivery,
        )

    def _prepared(
        self, inbox: Inbox, key: Any, value: Any, partition: int | None
    ) -> tuple[Buffer | None, Buffer | None, int | None]:
        if self._key_serializer is not None:
            key = self._key_serializer(key)
        if self._value_serializer is not None:
            value = self._value_serializer(value)
        if self._partitioner is not None and partition is None:
            partition = chosen_partition(self._partitioner, inbox.topic, key, value, inbox.partition_count)
        return key, value, partition

    def _inbox(self, topic: str) -> Inbox:
        """Return the inbox of a topic. Raises if nothing may be sent to it now."""
        with self._lock:
            self._check_open()
            if self._transactions is not None:
                self._transactions.check_may_send()
            inbox = self._sender.inboxes.get(topic)
            if inbox is None:
                limits = Limits(self.config.max_request_size, self.config.buffer_memory)
                inbox = Inbox(topic, self._partition_count(topic), self._sender, limits)
                self._sender.add(inbox)
            inbox.partition_count = self._partition_count(topic)
            if self._thread is None and self._has_thread:
                self._thread = LingerThread(self._linger, f"octavo-producer {self.config.client_id}".rstrip())
                self._sender.on_waiting = self._thread.wake
            self._checked[topic] = inbox
            if not self._prepares:
                self._inboxes[topic] = inbox
            if not self._data.is_open:  # closed meanwhile: `_stop_sends` may have run before the inbox was added
                self._stop_sends()
                self._check_open()
            return inbox

    def _forget(self, topic: str) -> None:
        """Make the next `send` to a topic count its partitions again."""
        self._inboxes.pop(topic, None)
        self._checked.pop(topic, None)

    def _partition_count(self, topic: str) -> int:
        return len(self.partitions_for(topic))

    def partitions_for(self, topic: str) -> list[TopicPartition]:
        """The partitions of a topic, in order. Raises `UnknownPartition` if there is no such topic."""
        return partitions_of(self._data, topic)

    def _tend(self, inbox: Inbox) -> None:
        """Start the wait for `linger.ms` in an idle inbox, and append the records of a full one."""
        if inbox.is_idle:
            inbox.since_ms = self._clock()
            inbox.set_idle(False)
            if self._thread is not None:
                self._thread.wake()
        if inbox.is_full:
            self._sender.send_full(inbox)

    def run_once(self) -> int | None:
        """Append records that have waited for `linger.ms`. Return the milliseconds until the next are due, or None.

        Call this only on a producer that was given a clock. Any other has a thread that does it.
        """
        return self._linger.run_once()

    @answering()
    def flush(self, timeout: float | None = None) -> None:
        """Append all records sent so far. The futures report which records failed.

        Raises `TimeoutError` after `timeout` seconds, and `WrongProcess` in a fork of the process that opened the
        directory.
        """
        self._sender.finish(timeout)

    # ---------------------------------------------------------------------------------------------------- transactions

    @answering(timeout=NO_WAIT)
    def init_transactions(self) -> None:
        """Take over the `transactional.id`: its previous producer is fenced, and a transaction it left open is ended.

        Raises `CoordinatorRefused` and, like the other transaction methods, `WrongTransactionOrder`.
        """
        with self._lock:
            self._transactional("init_transactions").init()

    @answering(timeout=NO_WAIT)
    def begin_transaction(self) -> None:
        """Begin a transaction. Everything sent from now on is part of it."""
        with self._lock:
            self._transactional("begin_transaction").begin()

    @answering(group_metadata="write group_id", timeout=NO_WAIT)
    def send_offsets_to_transaction(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata | int], group_id: str | ConsumerGroupMetadata
    ) -> None:
        """Add the offsets of a consumer group to the transaction. They are committed if the transaction is.

        With `Consumer.consumer_group_metadata()` instead of the group's id, `MemberFenced` is raised if the consumer is
        no longer a member of its group: others may have read the same records then.
        """
        if not isinstance(group_id, str | ConsumerGroupMetadata):
            raise WrongCall(
                f"a group is named by its group.id, or by consumer_group_metadata(), not by {type(group_id).__name__}"
            )
        with self._lock:
            given = offsets_by_partition(offsets)
            self._transactional("send_offsets_to_transaction").send_offsets(given, group_id)

    @answering(timeout=NO_WAIT)
    def commit_transaction(self) -> None:
        """Commit the transaction: append all that was sent, and make it visible. It is on the disk when this returns.

        Raises `TransactionFailed` if something could not be appended: abort the transaction then. A call that was
        interrupted can be repeated.
        """
        with self._lock:
            transactions = self._transactional("commit_transaction")
            self._stop_sends()
            transactions.commit(self.flush)

    @answering(timeout=NO_WAIT)
    def abort_transaction(self) -> None:
        """Abort the transaction: drop records that are not appended yet, and hide the appended ones from readers.

        Raises `WrongTransactionState` after a commit that was interrupted, if that was decided already: the transaction
        is committed then, and the next one can begin. A call that was interrupted can be repeated.
        """
        with self._lock:
            transactions = self._transactional("abort_transaction")
            self._stop_sends()
            transactions.abort(self._drop_transaction)

    def _stop_sends(self) -> None:
        """Make the next `send` check whether anything may be sent at all."""
        self._inboxes = {}
        self._checked = {}

    def _drop_transaction(self) -> None:
        self._sender.drop(TransactionAborted("the transaction was aborted before the record was appended"))

    def _transactional(self, what: str) -> ProducerTransactions:
        self._check_open()
        if self._transactions is None:
            raise WrongTransactionOrder(what, "by a producer without transactions", "give it a transactional.id")
        return self._transactions

    # ----------------------------------------------------------------------------------------------------------- close

    @answering()
    def close(self, timeout: float | None = None) -> None:
        """Append all that was sent, and accept no more. An open transaction is aborted, unless it is being committed.

        Raises `TimeoutError` after `timeout` seconds; the producer is closed nevertheless. In a fork of the process
        that opened the directory, nothing is appended: the parent appends what was sent before the fork.
        """
        if self._data.is_elsewhere:
            self._is_closed = True
            self._stop_sends()
            return
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            self._stop_sends()
        try:
            if self._transactions is not None and self._transactions.is_open:
                self._transactions.finish(self._drop_transaction)
            else:
                self._sender.finish(timeout)
        finally:
            self._sender.let_go()
            if self._thread is not None:
                self._thread.stop()
            self._sender.close(ProducerClosed("the producer was closed before the record was appended"))

    def _check_process(self) -> None:
        if self._data.is_elsewhere:
            self._data.check_owner()

    def _check_open(self) -> None:
        if self._is_closed:
            raise ProducerClosed("the producer is closed")
        self._data.check_open()
