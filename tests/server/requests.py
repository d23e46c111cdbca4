"""Ordinary requests, as frames and as what a `Conversation` asks."""

from __future__ import annotations

from octavo.broker.wire import api_keys
from octavo.broker.wire.api_keys import APIS
from octavo.broker.wire.messages import write_request
from tests.server.question import Question
from tests.server.raw import header

MAX_INT32 = 0x7FFFFFFF


def frame(question: Question) -> bytes:
    """The frame of a request, without its size."""
    flexible = question.version >= APIS[question.api_key].flexible
    body = write_request(question.api_key, question.version, question.content)
    return header(question.api_key, question.version, flexible=flexible) + body


def create(topic: str) -> Question:
    """Have a topic created."""
    wanted = {"name": topic, "num_partitions": -1, "replication_factor": -1}
    return Question(api_keys.CREATE_TOPICS, 4, {"topics": [wanted], "timeout_ms": 30_000})


def ask_for(topic: str) -> Question:
    """Ask for a topic, which may be created by that."""
    return Question(api_keys.METADATA, 4, {"topics": [{"name": topic}], "allow_auto_topic_creation": True})


def delete(*topics: str) -> Question:
    """Have topics deleted."""
    return Question(api_keys.DELETE_TOPICS, 3, {"topic_names": list(topics), "timeout_ms": 30_000})


def produce(topic: str, records: bytes, acks: int = -1) -> Question:
    """Append records to partition 0."""
    sent = [{"name": topic, "partition_data": [{"index": 0, "records": records}]}]
    content = {"transactional_id": None, "acks": acks, "timeout_ms": 10_000, "topic_data": sent}
    return Question(api_keys.PRODUCE, 8, content)


def fetch(topic: str, offset: int, *, max_wait_ms: int = 10_000, max_bytes: int = 1 << 20) -> Question:
    """Read partition 0 from an offset on, and wait for the first byte."""
    wanted = {"partition": 0, "current_leader_epoch": -1, "log_start_offset": -1}
    wanted |= {"fetch_offset": offset, "partition_max_bytes": max_bytes}
    content = {
        "replica_id": -1,
        "max_wait_ms": max_wait_ms,
        "min_bytes": 1,
        "max_bytes": max_bytes,
        "isolation_level": 0,
        "session_id": 0,
        "session_epoch": -1,
        "topics": [{"topic": topic, "partitions": [wanted]}],
        "forgotten_topics_data": [],
        "rack_id": "",
    }
    return Question(api_keys.FETCH, 11, content)
