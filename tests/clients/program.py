"""A driver in another process: `Program`.

The process gets one request a line on its stdin, and writes lines of JSON to its stdout. Bytes are base64.

    {"call": "produce", "topic": "t", "records": [RECORD, ...], "settings": {"acks": "all"}}
    {"result": [0, 1]}

A request has the name of a method of `Driver` and its arguments by their names. `bootstrap_servers` is given on the
command line. RECORD has the fields of `Record`: key, value, headers (a list of pairs), timestamp_ms, partition, offset,
timestamp_type. Methods of `Groups` and `Transactions` are called as `groups.join`; what `poll` and `describe_group`
return are objects with the fields of `Polled` and `GroupDescription`, a place is a list, and a mapping is a list of
pairs. An answer is one of

    {"result": ...}                            what the method returns (pairs as lists)
    {"item": RECORD}                           of `consume` only: a record, at once; {"result": null} ends them
    {"error": {"code": 10, "text": "..."}}     `ClientError`; code is null if the client does not tell
    {"cannot": "..."}                          `CannotDo`

The process ends when its stdin does.
"""

from __future__ import annotations

import json
import select
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tests.clients.driver import (
    PATIENCE_S,
    CannotDo,
    ClientError,
    ConsumeSettings,
    ProduceSettings,
    Record,
    Start,
)
from tests.clients.json_records import from_json, to_json
from tests.clients.program_groups import ProgramGroups, ProgramTransactions

_ANSWER_S: Final = 2 * PATIENCE_S  # the program gives up by itself before that


class Program:
    """A driver that is another program. `close` ends it."""

    def __init__(
        self, command: Sequence[str], *, cwd: Path | None = None, env: Mapping[str, str] | None = None
    ) -> None:
        self._process: Final = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, cwd=cwd, env=env
        )
        self._unread = b""
        self._lock: Final = threading.Lock()  # members of groups are polled by several threads
        self.groups: Final = ProgramGroups(self._call)
        self.transactions: Final = ProgramTransactions(self._call)

    def produce(self, topic: str, records: Sequence[Record], settings: ProduceSettings) -> list[int]:
        offsets: list[int] = self._call(
            "produce", topic=topic, records=[to_json(record) for record in records], settings=settings
        )
        return offsets

    def consume(
        self, topic: str, partition: int, start: Start, count: int, settings: ConsumeSettings
    ) -> Iterator[Record]:
        self._send("consume", topic=topic, partition=partition, start=start, count=count, settings=settings)
        while "item" in (answer := self._answer()):
            yield from_json(answer["item"])

    def offset_for_time(self, topic: str, partition: int, timestamp_ms: int) -> int | None:
        offset: int | None = self._call("offset_for_time", topic=topic, partition=partition, timestamp_ms=timestamp_ms)
        return offset

    def offsets(self, topic: str, partition: int) -> tuple[int, int]:
        earliest, end = self._call("offsets", topic=topic, partition=partition)
        return earliest, end

    def partitions(self, topic: str, *, may_create: bool) -> int:
        return int(self._call("partitions", topic=topic, may_create=may_create))

    def create_topic(self, topic: str, partitions: int, config: Mapping[str, str]) -> None:
        self._call("create_topic", topic=topic, partitions=partitions, config=dict(config))

    def list_topics(self) -> list[str]:
        return list(self._call("list_topics"))

    def add_partitions(self, topic: str, total: int) -> None:
        self._call("add_partitions", topic=topic, total=total)

    def delete_topic(self, topic: str) -> None:
        self._call("delete_topic", topic=topic)

    def describe_config(self, topic: str) -> dict[str, str]:
        return dict(self._call("describe_config", topic=topic))

    def replace_config(self, topic: str, config: Mapping[str, str]) -> None:
        self._call("replace_config", topic=topic, config=dict(config))

    def change_config(self, topic: str, config: Mapping[str, str | None]) -> None:
        self._call("change_config", topic=topic, config=dict(config))

    def delete_records(self, topic: str, partition: int, before: int) -> int:
        return int(self._call("delete_records", topic=topic, partition=partition, before=before))

    def kill(self) -> None:
        """Kill the program (SIGKILL)."""
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    # Inside

    def _call(self, call: str, **arguments: Any) -> Any:
        with self._lock:
            self._send(call, **arguments)
            return self._answer()["result"]

    def _send(self, call: str, **arguments: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"call": call, **arguments}).encode() + b"\n")

    def _answer(self) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self._line())
        if "cannot" in answer:
            raise CannotDo(answer["cannot"])
        if "error" in answer:
            raise ClientError(answer["error"]["code"], answer["error"]["text"])
        return answer

    def _line(self) -> bytes:
        assert self._process.stdout is not None
        deadline = time.monotonic() + _ANSWER_S
        while b"\n" not in self._unread:
            if not select.select([self._process.stdout], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise ClientError(None, f"the client did not answer within {_ANSWER_S} s")
            more = self._process.stdout.read(1 << 20)
            if not more:
                raise ClientError(None, f"the client ended with {self._process.wait(PATIENCE_S)}")
            self._unread += more
        line, _, self._unread = self._unread.partition(b"\n")
        return line
