"""The calls that every client is asked to make: `Driver`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypedDict

if TYPE_CHECKING:
    from tests.clients.group_driver import Groups, Transactions

PATIENCE_S: Final = 30  # how long a client may try before a call has failed
LARGEST_RECORD: Final = 8 << 20  # what clients are told to send, so that the broker is the one to judge

Headers = tuple[tuple[str, bytes | None], ...]
Start = int | Literal["earliest", "latest"]  # an offset, or one of the ends
Acks = Literal["0", "1", "all"]
TimestampType = Literal["CreateTime", "LogAppendTime"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A record to produce, or one that was consumed."""

    key: bytes | None = None
    value: bytes | None = None
    headers: Headers = ()
    timestamp_ms: int | None = None  # None: the client's choice
    partition: int = 0
    # Of records that were consumed:
    offset: int = -1
    timestamp_type: TimestampType | None = None  # None: the client does not tell


class ProduceSettings(TypedDict, total=False):
    """How to produce. What is not named is the client's default, but that no record waits for others (linger)."""

    compression: Literal["none", "gzip", "snappy", "lz4", "zstd"]
    acks: Acks
    idempotence: bool
    batch_bytes: int  # about how large a batch may become


class ConsumeSettings(TypedDict, total=False):
    """How to consume. Clients begin at the earliest record if their offset is out of range."""

    partition_bytes: int  # how much the broker may send of a partition at once
    max_wait_ms: int  # how long the broker may wait for records


class ClientError(Exception):
    """The client reported an error. `code` is the broker's error code, None if the client does not tell."""

    def __init__(self, code: int | None, text: str) -> None:
        super().__init__(text)
        self.code: Final = code

    def __str__(self) -> str:
        return f"error {self.code}: {self.args[0]}"


class CannotDo(Exception):
    """The client has no way to do what the scenario asks for."""


class ClientUnavailable(Exception):
    """The client is not installed; the text says how to install it."""


class Driver(Protocol):
    """A client, connected to one broker.

    Calls raise `ClientError` for an error of the broker or the client, and `CannotDo` for what the client has no call
    for. They wait at most about `PATIENCE_S`. A driver keeps its producers, by settings, so that a second call with the
    same settings goes on with the same producer.
    """

    @property
    def groups(self) -> Groups:
        """Members of groups."""

    @property
    def transactions(self) -> Transactions:
        """Transactional producers."""

    def produce(self, topic: str, records: Sequence[Record], settings: ProduceSettings) -> list[int]:
        """Produce the records in order, and return their offsets (-1: not known) when all are acknowledged."""

    def consume(
        self, topic: str, partition: int, start: Start, count: int, settings: ConsumeSettings
    ) -> Iterator[Record]:
        """Consume `count` records without a group, and yield each as soon as the client has it."""

    def offset_for_time(self, topic: str, partition: int, timestamp_ms: int) -> int | None:
        """Return the offset of the first record of this time or later; None if there is none."""

    def offsets(self, topic: str, partition: int) -> tuple[int, int]:
        """Return the earliest offset, and that behind the last record."""

    def partitions(self, topic: str, *, may_create: bool) -> int:
        """Return how many partitions the topic has, by asking once for it by name; 0 if there is no such topic.

        may_create: whether the client allows the broker to create the topic on the way
        """

    def create_topic(self, topic: str, partitions: int, config: Mapping[str, str]) -> None:
        """Create a topic."""

    def list_topics(self) -> list[str]:
        """Return the names of all topics."""

    def add_partitions(self, topic: str, total: int) -> None:
        """Give a topic more partitions, `total` in all."""

    def delete_topic(self, topic: str) -> None:
        """Delete a topic."""

    def describe_config(self, topic: str) -> dict[str, str]:
        """Return all settings of a topic."""

    def replace_config(self, topic: str, config: Mapping[str, str]) -> None:
        """Replace all settings that the topic has of its own (AlterConfigs)."""

    def change_config(self, topic: str, config: Mapping[str, str | None]) -> None:
        """Change some settings of a topic; None removes one (IncrementalAlterConfigs)."""

    def delete_records(self, topic: str, partition: int, before: int) -> int:
        """Delete the records before an offset, -1 for all, and return the earliest offset that is left."""

    def close(self) -> None:
        """Give back everything."""
