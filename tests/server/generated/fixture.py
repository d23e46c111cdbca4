"""The topics that exist on both sides before the first case, and how two brokers are asked many cases."""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from octavo.broker.wire import api_keys as keys
from octavo.errors import ErrorCode
from tests.server.generated.asking import _PATIENCE_S, Plain, Result, Talk, _wait_for, ask_both
from tests.server.generated.batches import some_records
from tests.server.generated.cases import Case
from tests.server.generated.step import Step
from tests.server.generated.symbols import Known, TopicId
from tests.server.generated.values import FIXED, INTERNAL

# For both brokers. Records are old: nothing may be deleted for that.
SETTINGS: Final = {
    "auto.create.topics.enable": "false",
    "log.retention.ms": "-1",
    "group.initial.rebalance.delay.ms": "0",
    "transaction.state.log.num.partitions": "1",
}
_CONFIGS: Final = {
    "a-compact": {"cleanup.policy": "compact"},
    "a-tuned": {"max.message.bytes": "1000", "compression.type": "uncompressed", "retention.bytes": "1000000"},
}
_WORKERS: Final = 6


def prepare(talk: Talk) -> Known:
    """Create and fill the topics; returns what is to be known of them."""
    topics = [
        {
            "name": name,
            "num_partitions": partitions,
            "replication_factor": 1,
            "assignments": [],
            "configs": [{"name": each, "value": value} for each, value in _CONFIGS.get(name, {}).items()],
        }
        for name, partitions in {**FIXED, INTERNAL: 1}.items()
    ]
    plain = Plain(Case(-1, 0, 0), talk)
    created = _done(
        talk, plain, Step(keys.CREATE_TOPICS, 7, {"topics": topics, "timeout_ms": 30_000, "validate_only": False})
    )
    _wait_for(talk, created)
    _wait_for_coordinators(talk)
    rng = random.Random(5)
    for name in ("a-data", "a-compact", "a-tuned", "a-trimmed"):
        for _ in range(6):
            _done(talk, plain, _filling(rng, name))
    trim = {
        "topics": [{"name": "a-trimmed", "partitions": [{"partition_index": 0, "offset": 3}]}],
        "timeout_ms": 30_000,
    }
    _done(talk, plain, Step(keys.DELETE_RECORDS, 2, trim))
    asked = Step(keys.DESCRIBE_LOG_DIRS, 4, {"topics": []})
    talk.send(asked)
    talk.known.log_dir = talk.receive(asked).results[0].log_dir
    talk.close()
    return talk.known


def _wait_for_coordinators(talk: Talk) -> None:
    """Wait until Kafka's coordinators are loaded."""
    group: dict[str, Any] = {"group_id": "g", "topics": [], "member_id": None, "member_epoch": -1}
    _until_done(talk, Step(keys.OFFSET_FETCH, 9, {"groups": [group], "require_stable": False}))
    _until_done(talk, Step(keys.FIND_COORDINATOR, 3, {"key": "t", "key_type": 1}))
    ids = {"transactional_id": "t", "transaction_timeout_ms": 1000, "producer_id": -1, "producer_epoch": -1}
    _until_done(talk, Step(keys.INIT_PRODUCER_ID, 4, ids))


def _until_done(talk: Talk, step: Step) -> None:
    until = time.monotonic() + _PATIENCE_S
    code: int = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    while code != ErrorCode.NONE and time.monotonic() < until:
        talk.send(step)
        answer = talk.receive(step)
        code = (answer.groups[0] if step.api_key == keys.OFFSET_FETCH else answer).error_code


def _filling(rng: random.Random, name: str) -> Step:
    data = [{"index": number, "records": some_records(rng, 0.0, keyed=True)} for number in range(min(2, FIXED[name]))]
    content: dict[str, Any] = {"transactional_id": None, "acks": -1, "timeout_ms": 5000}
    return Step(keys.PRODUCE, 13, {**content, "topic_data": [{"topic_id": TopicId(name), "partition_data": data}]})


def _done(talk: Talk, plain: Plain, step: Step) -> Any:
    talk.send(step)
    return plain(step, talk.receive(step))


def ask_all(cases: Iterable[Case], ours: str, theirs: str, workers: int = _WORKERS) -> Iterator[Result]:
    """Ask all cases of both brokers, several at the same time."""
    we_know, they_know = prepare(Talk(ours, Known())), prepare(Talk(theirs, Known()))

    def ask(case: Case) -> Result:
        return ask_both(case, Talk(ours, we_know), Talk(theirs, they_know))

    with ThreadPoolExecutor(workers) as pool:
        yield from pool.map(ask, cases)
