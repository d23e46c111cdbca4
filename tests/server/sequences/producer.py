"""A producer with a transactional id, and what anybody may ask about transactions."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any, Final

from octavo.broker.wire import api_keys as keys
from octavo.errors import ErrorCode
from octavo.records import BatchBuilder
from tests.server.sequences.script import PATIENCE_S, Script

_GOING_ON: Final = ("PrepareCommit", "PrepareAbort", "PrepareEpochFence")
TIMEOUT_MS: Final = 600_000


class Producer:
    """One producer. It remembers the id and the epoch that it was given last, and counts what it has produced."""

    def __init__(self, script: Script, name: str = "p", transactional_id: str = "id") -> None:
        self.script: Final = script
        self.client: Final = script.client(name)
        self.transactional_id: Final = script.named(transactional_id)
        self.id = -1
        self.epoch = -1
        self.sequence = 0

    def _identity(self, **changes: Any) -> dict[str, Any]:
        known = {"transactional_id": self.transactional_id, "producer_id": self.id, "producer_epoch": self.epoch}
        return known | changes

    def init(self, *, version: int = 5, **changes: Any) -> Any:
        """Ask for an identity, as a producer that has just started."""
        content = {"transactional_id": self.transactional_id, "transaction_timeout_ms": TIMEOUT_MS}
        content |= {"producer_id": -1, "producer_epoch": -1, "enable2_pc": False, "keep_prepared_txn": False}
        # Kafka answers so while it fetches a block of ids, too.
        loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        answer = self.client.until(
            lambda each: each.error_code != loading, keys.INIT_PRODUCER_ID, version, content | changes
        )
        if isinstance(answer, SimpleNamespace) and answer.error_code == ErrorCode.NONE:
            self.id, self.epoch, self.sequence = answer.producer_id, answer.producer_epoch, 0
        self.settle()  # a transaction may be aborted now
        return answer

    def add(self, *partitions: int, topic: str = "t", version: int = 3, **changes: Any) -> Any:
        """Say which partitions will be written."""
        content = {f"v3_and_below_{name}": value for name, value in self._identity(**changes).items()}
        content["v3_and_below_topics"] = [{"name": self.script.named(topic), "partitions": list(partitions)}]
        return self.client.ask(keys.ADD_PARTITIONS_TO_TXN, version, content)

    def add_batched(self, *partitions: int, verify: bool, version: int = 5, **changes: Any) -> Any:
        """Ask as another broker does."""
        topics = [{"name": self.script.topic, "partitions": list(partitions)}]
        one = {**self._identity(**changes), "verify_only": verify, "topics": topics}
        return self.client.ask(keys.ADD_PARTITIONS_TO_TXN, version, {"transactions": [one]})

    def produce(self, value: str, partition: int = 0, *, version: int = 11, **changes: Any) -> Any:
        """Produce one record as part of the transaction."""
        fields = {"producer_id": self.id if self.id >= 0 else 888_888, "producer_epoch": max(self.epoch, 0)}
        fields |= {"base_sequence": self.sequence}
        builder = BatchBuilder(**{**fields, "transactional": True, **changes})
        builder.append(b"k", value.encode(), timestamp_ms=0)
        data = [{"index": partition, "records": builder.build()}]
        topic = {"name": self.script.topic, "topic_id": self.script.topic_id(), "partition_data": data}
        content = {"transactional_id": self.transactional_id, "acks": -1, "timeout_ms": 5000, "topic_data": [topic]}
        answer = self.client.ask(keys.PRODUCE, version, content)
        if isinstance(answer, SimpleNamespace) and answer.responses[0].partition_responses[0].error_code == 0:
            self.sequence += 1
        return answer

    def add_offsets(self, *, group: str = "g", version: int = 4, **changes: Any) -> Any:
        """Say that offsets of a group will be committed."""
        content = {**self._identity(**changes), "group_id": self.script.named(group)}
        return self.client.ask(keys.ADD_OFFSETS_TO_TXN, version, content)

    def commit_offset(self, offset: int, *, version: int = 4, **changes: Any) -> Any:
        """Commit an offset of a group as part of the transaction."""
        partition = {"partition_index": 0, "committed_offset": offset, "committed_leader_epoch": -1}
        topics = [{"name": self.script.topic, "partitions": [{**partition, "committed_metadata": "t"}]}]
        member = {"generation_id": -1, "member_id": "", "group_instance_id": None}
        content = {**self._identity(), "group_id": self.script.group, **member, "topics": topics}
        return self.client.ask(keys.TXN_OFFSET_COMMIT, version, content | changes)

    def end(self, *, commit: bool, version: int = 4, **changes: Any) -> Any:
        """End the transaction, and wait until that is done."""
        answer = self.client.ask(keys.END_TXN, version, {**self._identity(**changes), "committed": commit})
        if isinstance(answer, SimpleNamespace) and answer.error_code == ErrorCode.NONE:
            if version >= 5:
                if answer.producer_epoch != self.epoch:
                    self.sequence = 0
                self.id, self.epoch = answer.producer_id, answer.producer_epoch
            self.settle()
        return answer

    def settle(self) -> None:
        """Wait until what was decided is done: Kafka writes the markers after its answer."""
        deadline = time.monotonic() + PATIENCE_S
        content = {"transactional_ids": [self.transactional_id]}
        while time.monotonic() < deadline:
            answer = self.client.quietly(keys.DESCRIBE_TRANSACTIONS, 0, content)
            if not isinstance(answer, SimpleNamespace):
                return
            if answer.transaction_states[0].transaction_state not in _GOING_ON:
                return

    # Anybody may ask these.

    def describe(self, *ids: str) -> Any:
        """Describe transactional ids."""
        wanted = [self.script.named(each) for each in ids] or [self.transactional_id]
        return self.client.ask(keys.DESCRIBE_TRANSACTIONS, 0, {"transactional_ids": wanted})

    def describe_until(self, state: str) -> Any:
        """Describe the transactional id when it has reached a state."""
        return self.client.until(
            lambda each: each.transaction_states[0].transaction_state == state,
            keys.DESCRIBE_TRANSACTIONS,
            0,
            {"transactional_ids": [self.transactional_id]},
        )

    def list(self, *, version: int = 2, **changes: Any) -> Any:
        """List transactional ids of this run."""
        content = {"state_filters": [], "producer_id_filters": [], "duration_filter": -1}
        content |= {"transactional_id_pattern": f"{self.script.prefix}.*"}
        return self.client.ask(keys.LIST_TRANSACTIONS, version, content | changes)

    def describe_producers(self, *partitions: int) -> Any:
        """Describe who produces to partitions."""
        topics = [{"name": self.script.topic, "partition_indexes": list(partitions or (0,))}]
        return self.client.ask(keys.DESCRIBE_PRODUCERS, 0, {"topics": topics})

    def fetch(self, *, committed: bool = True, partition: int = 0, offset: int = 0) -> Any:
        """Read from a partition."""
        wanted: dict[str, Any] = {
            "partition": partition,
            "current_leader_epoch": -1,
            "fetch_offset": offset,
            "last_fetched_epoch": -1,
        }
        wanted |= {"log_start_offset": -1, "partition_max_bytes": 1 << 20}
        sizes: dict[str, Any] = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 1 << 22}
        content: dict[str, Any] = {
            "replica_id": -1,
            **sizes,
            "isolation_level": int(committed),
            "session_id": 0,
            "session_epoch": -1,
        }
        topics = [{"topic": self.script.topic, "partitions": [wanted]}]
        content |= {"topics": topics, "forgotten_topics_data": [], "rack_id": ""}
        return self.client.ask(keys.FETCH, 12, content)

    def list_offsets(self, *, committed: bool = True, partition: int = 0) -> Any:
        """Return the last offset, or the last stable one."""
        asked = [{"partition_index": partition, "timestamp": -1, "current_leader_epoch": -1}]
        topics = [{"name": self.script.topic, "partitions": asked}]
        content = {"replica_id": -1, "isolation_level": int(committed), "topics": topics}
        return self.client.ask(keys.LIST_OFFSETS, 8, content)

    def write_marker(self, *, commit: bool, partition: int = 0, version: int = 1, **changes: Any) -> Any:
        """End the transaction in a partition, as an administrator does."""
        topics = [{"name": self.script.topic, "partition_indexes": [partition]}]
        marker: dict[str, Any] = {"producer_id": self.id, "producer_epoch": self.epoch, "transaction_result": commit}
        marker |= {"topics": topics, "coordinator_epoch": 0, "transaction_version": 0}
        return self.client.ask(keys.WRITE_TXN_MARKERS, version, {"markers": [marker | changes]})
