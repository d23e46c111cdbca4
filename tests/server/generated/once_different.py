"""Cases that were found by chance with other seeds, because the broker answered them in another way than Kafka."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, Final

from octavo.broker.wire import api_keys as keys
from octavo.records import BatchBuilder
from octavo.records.checksum import crc32c
from tests.server.generated.cases import Case
from tests.server.generated.step import Step
from tests.server.generated.symbols import LogDir, SessionId

_TRANSACTIONAL: Final = 0x10
_NO_CODEC: Final = 5
_GARBAGE: Final = bytes(12) + b"\xff" * 60
_OLD: Final = bytes(11) + b"\x46" + bytes(4) + b"\0" + bytes(4) + b"\xff" * 10 + bytes(51)  # magic 0, and of no use


def once_different() -> Iterator[Case]:
    """Return the cases, numbered below all others."""
    every = (*_produces(), *_changes(), *_topics(), *_folders(), *_sessions(), *_transactions())
    for number, steps in enumerate(every, 2):
        yield Case(-number, steps[-1].api_key, steps[-1].version, steps)


def _batch(attributes: int = 0) -> bytes:
    builder = BatchBuilder()
    builder.append(b"key", b"value", timestamp_ms=1_700_000_000_000)
    checked = struct.pack(">h", attributes) + bytes(builder.build())[23:]
    return bytes(builder.build())[:17] + struct.pack(">I", crc32c(checked)) + checked


def _produces() -> Iterator[list[Step]]:
    """A codec that does not exist fails everything in old versions; what is first decides about a transaction."""
    for version in (3, 6, 7, 12):
        for several in (
            [_batch(_NO_CODEC)],
            [_batch(_TRANSACTIONAL), _batch(_NO_CODEC)],
            [_batch(_NO_CODEC), b""],
            [_batch(_TRANSACTIONAL)],
            [_batch(_TRANSACTIONAL), _GARBAGE],
            [_GARBAGE, _batch(_TRANSACTIONAL)],
            [_OLD, _batch(_NO_CODEC)],
        ):
            data = [{"index": index, "records": each} for index, each in enumerate(several)]
            topics = [{"name": "a-data", "partition_data": data}]
            content = {"transactional_id": None, "acks": 1, "timeout_ms": 5000, "topic_data": topics}
            yield [Step(keys.PRODUCE, version, content, is_tried=True)]


def _changes() -> Iterator[list[Step]]:
    """A user named twice is refused for that, whatever the password; names of settings come before values."""
    good: dict[str, Any] = {"mechanism": 1, "iterations": 4096, "salt": b"salt", "salted_password": b"p" * 32}
    bad = good | {"salted_password": b""}
    for several in ([bad], [bad, good], [bad, bad, good], [bad, bad | {"mechanism": 3}]):
        content = {"deletions": [], "upsertions": [each | {"name": "once-different"} for each in several]}
        yield [Step(keys.ALTER_USER_SCRAM_CREDENTIALS, 0, content, is_tried=True)]
    configs = [{"name": "consumer.session.timeout.ms", "value": "x"}, {"name": "nope", "value": "1"}]
    resource = {"resource_type": 32, "resource_name": "g", "configs": configs}
    yield [Step(keys.ALTER_CONFIGS, 2, {"resources": [resource], "validate_only": True}, is_tried=True)]


def _topics() -> Iterator[list[Step]]:
    """A topic named twice does not count for the limit of partitions; settings are not told if a request fails."""
    for several in ({"a": [20_000], "b": [1]}, {"a": [20_000, 20_000]}, {"a": [9000, 2000], "b": [9000]}):
        topics = [
            {
                "name": f"once-different-{name}",
                "num_partitions": count,
                "replication_factor": 1,
                "assignments": [],
                "configs": [{"name": "flush.ms", "value": "1"}],
            }
            for name, counts in several.items()
            for count in counts
        ]
        yield [Step(keys.CREATE_TOPICS, 7, {"topics": topics, "timeout_ms": 1000, "validate_only": True}, None, True)]


def _folders() -> Iterator[list[Step]]:
    """A topic whose name is too long for the folder of a copy is refused before anything is looked for."""
    for path in (LogDir(), "nope"):
        topics = [{"name": "x" * length, "partitions": [0, 10]} for length in (212, 213, 214, 250)]
        content = {"dirs": [{"path": path, "topics": topics}]}
        yield [Step(keys.ALTER_REPLICA_LOG_DIRS, 2, content, is_tried=True)]


def _transactions() -> Iterator[list[Step]]:
    """A transactional id that is there twice: the last one's partitions count, and the first one's are told."""
    for version in (4, 5):
        for verifies in ((True, True), (False, False), (True, False), (False, True)):
            for several in (([0, 1], [0]), ([0], [1, 0]), ([0, 99], [0]), ([0], [0, 99]), ([0], [])):
                transactions = [
                    {
                        "transactional_id": "once-different",
                        "producer_id": 1 << 40,
                        "producer_epoch": 0,
                        "verify_only": verify,
                        "topics": [{"name": "a-data", "partitions": partitions}],
                    }
                    for verify, partitions in zip(verifies, several, strict=True)
                ]
                yield [Step(keys.ADD_PARTITIONS_TO_TXN, version, {"transactions": transactions}, is_tried=True)]


def _sessions() -> Iterator[list[Step]]:
    """A request that makes its session forget everything is answered without a session."""
    for version in (7, 12):
        for first, wanted, forgotten in (([0], [0], [0]), ([0], [0, 1], [0, 1]), ([0], [], [0]), ([0, 1], [0], [0])):
            yield [
                _fetch(version, 0, first, []),
                _fetch(version, 1, wanted, forgotten),
                _fetch(version, 2, [], []),
            ]


def _fetch(version: int, epoch: int, wanted: list[int], forgotten: list[int]) -> Step:
    partitions = [
        {
            "partition": each,
            "current_leader_epoch": -1,
            "fetch_offset": 0,
            "last_fetched_epoch": -1,
            "log_start_offset": -1,
            "partition_max_bytes": 1_000_000,
        }
        for each in wanted
    ]
    content: dict[str, Any] = {
        "replica_id": -1,
        "max_wait_ms": 0,
        "min_bytes": 1,
        "max_bytes": 10_000_000,
        "isolation_level": 0,
        "session_id": SessionId() if epoch else 0,
        "session_epoch": epoch,
        "topics": [{"topic": "a-tuned", "partitions": partitions}] if wanted else [],
        "forgotten_topics_data": [{"topic": "a-tuned", "partitions": forgotten}] if forgotten else [],
        "rack_id": "",
    }
    return Step(keys.FETCH, version, content, is_tried=True)
