"""Ask two brokers the same, and compare what they answer: codes, messages, fields, and whether the connection stays."""

from __future__ import annotations

import contextlib
import re
import struct
import time
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Final

from octavo.broker.wire import api_keys as keys
from octavo.broker.wire.api_keys import API_VERSIONS, APIS
from octavo.broker.wire.messages import read_response, write_request
from octavo.errors import ErrorCode, MalformedRequest, OctavoError
from octavo.records import TimestampType, read_batches
from tests.server.conversation import CLOSED, SILENT, differences
from tests.server.generated.cases import Case, damaged
from tests.server.generated.on_purpose import is_on_purpose, without_what_is_meant
from tests.server.generated.step import Step
from tests.server.generated.symbols import Known, resolved
from tests.server.generated.values import FIXED, INTERNAL
from tests.server.raw import RawClient, header

NO_ANSWER: Final = "no answer, and the connection stays"
_PROBE: Final = header(API_VERSIONS, 0, 99, flexible=False)
_PATIENCE_S: Final = 10  # in which Kafka's brokers learn of a change

# What differs from broker to broker and from run to run.
_OWN: Final = {
    "throttle_time_ms",
    "cluster_id",
    "host",
    "port",
    "log_dir",
    "total_bytes",
    "usable_bytes",
    "finalized_features_epoch",
    "producer_id",
    "session_id",
}
_TIME: Final = re.compile(r"-?\d{13,}")
_NOW_FROM: Final = 1_750_000_000_000  # the times in generated records are before this
_TIMES: Final = {"last_timestamp", "timestamp", "transaction_start_time_ms"}
_OF_BATCHES: Final = {"length", "crc", "producer_id"}
_LISTS: Final = {"topics", "replica_election_results", "config_resources"}


_TOPIC: Final = 2  # a kind of resource


class Talk:
    """A conversation of one broker with one client."""

    def __init__(self, address: str, known: Known, patience_s: float = 20) -> None:
        self._address = address
        self._client: RawClient | None = None
        self._patience_s = patience_s
        self.known = replace(known, topic_ids=dict(known.topic_ids))
        self._body = b""
        self._flexible = False

    def send(self, step: Step) -> None:
        """Send a request. After acks=0 another follows, which tells whether the connection is still there."""
        if self._client is None:
            self._client = RawClient(self._address)
            self._client.socket.settimeout(self._patience_s)
        self._flexible = step.version >= APIS[step.api_key].flexible
        content = resolved(step.content, self.known)
        body = write_request(step.api_key, step.version, content)
        self._body = damaged(body, step.damage, flexible=self._flexible)
        frame = header(step.api_key, step.version, flexible=self._flexible) + self._body
        sized = struct.pack(">i", len(frame)) + frame
        if _is_silent(step):
            sized += struct.pack(">i", len(_PROBE)) + _PROBE
        with contextlib.suppress(OSError):  # closed: `receive` finds that out
            self._client.socket.sendall(sized)

    def receive(self, step: Step) -> Any:
        """Return the answer as nested dicts, or what happened instead."""
        assert self._client is not None
        try:
            answer = self._client.receive()
        except TimeoutError:
            self.close()
            return SILENT
        if answer is None:
            self.close()
            return CLOSED
        if _is_silent(step) and answer[:4] == struct.pack(">i", 99):
            return NO_ANSWER
        return self._read(step, answer)

    def _read(self, step: Step, answer: bytes) -> Any:
        begin = 5 if self._flexible and step.api_key != API_VERSIONS else 4
        body = memoryview(answer)[begin:]
        try:
            response = read_response(step.api_key, step.version, body)
        except MalformedRequest:
            response = read_response(step.api_key, 0, body)
        if _is_silent(step):
            assert self._client is not None
            self._client.receive()  # the answer to the probe
        self.known.session_id = getattr(response, "session_id", 0) or self.known.session_id
        if step.api_key == keys.INIT_PRODUCER_ID and response.error_code == 0:
            self.known.producer_id = response.producer_id
        if step.api_key == keys.JOIN_GROUP and response.error_code == 0:
            self.known.member_id = response.member_id
        return response

    def close(self) -> None:
        """Close the connection."""
        if self._client is not None:
            self._client.socket.close()
            self._client = None


def _is_silent(step: Step) -> bool:
    return step.api_key == keys.PRODUCE and (step.content["acks"] == 0 or step.damage is not None)


class Plain:
    """Makes answers comparable: ids get names, and what is of other cases is left out."""

    def __init__(self, case: Case, talk: Talk) -> None:
        self._case = case
        self._talk = talk
        self._names: dict[bytes, str] = {}

    def __call__(self, step: Step, answer: Any) -> Any:
        """Return an answer without what may differ."""
        self._names = {each: name for name, each in self._talk.known.topic_ids.items()}
        sent = write_request(step.api_key, step.version, resolved(step.content, self._talk.known))
        return self._plain(answer, "", sent)

    def _plain(self, value: Any, name: str, sent: bytes) -> Any:
        if isinstance(value, SimpleNamespace):
            topic_id, topic = getattr(value, "topic_id", bytes(16)), getattr(value, "name", None)
            if topic_id != bytes(16) and topic is not None and getattr(value, "error_code", 0) == 0:
                self._names[topic_id] = topic
                self._talk.known.topic_ids[topic] = topic_id
            if name == "next_cursor" and not self._is_of_all(value.topic_name):
                return None  # it names a topic of another case
            return {key: self._plain(each, key, sent) for key, each in vars(value).items() if key not in _OWN}
        if isinstance(value, tuple):
            return [self._plain(each, name, sent) for each in value if name not in _LISTS or self._is_meant(each, sent)]
        if name == "topic_id":
            return f"the id of {self._names[value]}" if value in self._names else value == bytes(16)
        if name == "records" and value:
            return _batches(value)
        if name == "log_append_time_ms":
            return value >= 0
        if (
            name in ("last_timestamp", "timestamp", "transaction_start_time_ms")
            and _NOW_FROM < value < 9_000_000_000_000
        ):
            return "now"
        if name == "member_id" and value:
            return "the member" if value == self._talk.known.member_id else value
        return _TIME.sub("(time)", value) if isinstance(value, str) else value

    def _is_meant(self, each: Any, sent: bytes) -> bool:
        """Return whether a topic belongs to all cases or to this one, or was asked for."""
        name = getattr(each, "name", None) or getattr(each, "topic", None)
        if getattr(each, "resource_type", 0) == _TOPIC:
            name = each.resource_name
        return not name or self._is_of_all(name) or name.encode() in sent

    def _is_of_all(self, name: str) -> bool:
        return name in FIXED or name == INTERNAL or name.startswith(f"z{self._case.number}-")


def _batches(data: bytes) -> Any:
    """Return the content of batches that may be compressed in another way, and of which some times are those of now."""
    batches = []
    try:
        for batch in read_batches(data):
            facts = batch.header._asdict()
            now = batch.timestamp_type == TimestampType.LOG_APPEND_TIME
            left_out = _OF_BATCHES | {"max_timestamp_ms"} if now else _OF_BATCHES
            records = [
                (each.offset, None if now else each.timestamp_ms, each.key, each.value, each.headers) for each in batch
            ]
            batches.append(
                {key: each for key, each in facts.items() if key not in left_out} | {"contents": repr(records)}
            )
    except OctavoError:
        return data
    return batches


class Result:
    """What came of a case."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.found: list[str] = []
        self.is_meant = False  # it ends with a difference that is meant
        self.tried: list[Any] = []  # Kafka's answers to what the case is about


def ask_both(case: Case, ours: Talk, theirs: Talk) -> Result:
    """Have a conversation with both brokers, and return where they differ."""
    result = Result(case)
    plain_ours, plain_theirs = Plain(case, ours), Plain(case, theirs)
    try:
        for step in case.steps:
            ours.send(step)
            theirs.send(step)
            answer = without_what_is_meant(plain_ours(step, ours.receive(step)))
            expected = without_what_is_meant(plain_theirs(step, theirs.receive(step)))
            lines = differences(answer, expected)
            until = time.monotonic() + _PATIENCE_S
            while lines and _may_change(case, step, expected) and time.monotonic() < until:
                theirs.send(step)
                expected = without_what_is_meant(plain_theirs(step, theirs.receive(step)))
                lines = differences(answer, expected)
            if step.is_tried:
                result.tried.append(expected)
            if lines and is_on_purpose(step, answer, expected):
                result.is_meant = True
                break
            result.found += [f"{step}\n      {line}" for line in lines]
            if step.api_key == keys.CREATE_TOPICS:
                _wait_for(theirs, expected)
        if case.topics:
            _clean(case, ours)
            _clean(case, theirs)
    finally:
        ours.close()
        theirs.close()
    return result


def _may_change(case: Case, step: Step, answer: Any) -> bool:
    """Return whether Kafka may give another answer a little later."""
    if isinstance(answer, dict) and answer.get("error_code") == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        return True
    if step.api_key == keys.TXN_OFFSET_COMMIT and isinstance(answer, dict):  # others ask for the same transaction
        codes = {each["error_code"] for topic in answer["topics"] for each in topic["partitions"]}
        return bool(codes & {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE})
    return step.only_reads and any(not each.only_reads for each in case.steps)


def _wait_for(talk: Talk, answer: Any) -> None:
    """Wait until Kafka's broker has the logs of topics that its controller has created."""
    if not isinstance(answer, dict):
        return
    for topic in answer["topics"]:
        if topic["error_code"] or topic.get("num_partitions", -1) < 1:
            continue
        asked = [
            {"partition_index": number, "timestamp": -1, "current_leader_epoch": -1}
            for number in range(topic["num_partitions"])
        ]
        content = {"replica_id": -1, "isolation_level": 0, "topics": [{"name": topic["name"], "partitions": asked}]}
        step = Step(keys.LIST_OFFSETS, 8, content)
        until = time.monotonic() + _PATIENCE_S
        while time.monotonic() < until:
            talk.send(step)
            found = talk.receive(step)
            if not isinstance(found, SimpleNamespace) or not any(
                each.error_code for each in found.topics[0].partitions
            ):
                break


def _clean(case: Case, talk: Talk) -> None:
    step = Step(keys.DELETE_TOPICS, 5, {"topic_names": case.topics, "timeout_ms": 30_000})
    talk.send(step)
    talk.receive(step)
