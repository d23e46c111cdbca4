"""Read the transactional ids of a data directory from its `__transaction_state`, without a lock."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from octavo.inspect.open_transactions import OpenTransaction, open_transactions
from octavo.log import DataDirectory
from octavo.log.names import TRANSACTION_STATE, TopicPartition
from octavo.log.partition_folders import find_all_partitions
from octavo.schemas.transaction_state import TransactionLogValue, TransactionState, read_transaction_key
from octavo.schemas.versioned import read_value


class TransactionalId(NamedTuple):
    """A transactional id, and its last transaction."""

    id: str
    value: TransactionLogValue

    @property
    def partitions(self) -> set[TopicPartition]:
        """The partitions that still wait for the end of the transaction."""
        return {
            TopicPartition(each.topic, number)
            for each in self.value.transaction_partitions or ()
            for number in each.partition_ids
        }


def state_of(transaction: TransactionalId) -> str:
    """Return the state of a transactional id in Kafka's words, such as `CompleteCommit`."""
    state = transaction.value.transaction_status
    known = {each.value: each.name for each in TransactionState}
    return known[state].title().replace("_", "") if state in known else "Unknown"


def transactional_ids(folders: Sequence[Path]) -> list[TransactionalId]:
    """Return the transactional ids of a directory, in order. Raises `OctavoError` and `OSError`."""
    found: dict[str, TransactionLogValue | None] = {}
    with DataDirectory.open(list(folders), read_only=True) as data:
        for topic, number in data.partitions():
            if topic == TRANSACTION_STATE:
                for batch in data.log(topic, number).reader():
                    for record in batch if not batch.is_control else ():
                        key = None if record.key is None else read_transaction_key(record.key)
                        if key is not None:
                            value = None if record.value is None else read_value(TransactionLogValue, record.value)
                            found[key.transactional_id] = value
    return [TransactionalId(name, value) for name, value in sorted(found.items()) if value is not None]


def all_open_transactions(
    folders: Sequence[Path], topic: str | None = None, partition: int | None = None
) -> list[OpenTransaction]:
    """Return the open transactions of a directory's partitions. Raises `OctavoError` and `OSError`."""
    found: list[OpenTransaction] = []
    for each, folder in sorted(find_all_partitions(folders).items()):
        if topic in (None, each.topic) and partition in (None, each.partition):
            found += open_transactions(folder, each)
    return found
