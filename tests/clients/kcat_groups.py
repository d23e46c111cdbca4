"""Members of groups that are processes of kcat: `KcatGroups`. kcat has no transactions."""

from __future__ import annotations

import itertools
import os
import re
import selectors
import subprocess
import time
from collections.abc import Mapping, Sequence
from typing import Final, NoReturn

from tests.clients.driver import PATIENCE_S, CannotDo, Record
from tests.clients.group_driver import (
    HEARTBEAT_MS,
    POLL_S,
    SESSION_MS,
    GroupDescription,
    MemberSettings,
    Place,
    Polled,
)


class _Member:
    """A process, and what it has printed."""

    def __init__(self, command: Sequence[str]) -> None:
        self.process: Final = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assignment: frozenset[Place] = frozenset()
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self._selector: Final = selectors.DefaultSelector()
        self._unread: Final = {self.process.stdout: b"", self.process.stderr: b""}
        for stream in self._unread:
            os.set_blocking(stream.fileno(), False)
            self._selector.register(stream, selectors.EVENT_READ)

    def poll(self) -> list[Record]:
        assert self.process.stdout is not None
        records: list[Record] = []
        deadline = time.monotonic() + POLL_S
        while not records and (left := deadline - time.monotonic()) > 0:
            for key, _ in self._selector.select(left):
                stream = next(each for each in self._unread if each is key.fileobj)
                *lines, self._unread[stream] = (self._unread[stream] + (stream.read() or b"")).split(b"\n")
                for line in lines:
                    if stream is self.process.stdout:
                        partition, offset, value = line.split(b" ", 2)
                        records.append(Record(partition=int(partition), offset=int(offset), value=value))
                    else:
                        self._rebalance(line.decode())
        return records

    def _rebalance(self, line: str) -> None:
        if (told := re.search(r"rebalanced .*: (assigned|revoked): (.*)", line)) is not None:
            places = re.findall(r"(\S+) \[(\d+)\]", told[2]) if told[1] == "assigned" else []
            self.assignment = frozenset((topic, int(partition)) for topic, partition in places)

    def close(self) -> None:
        self.process.terminate()
        self.process.communicate(timeout=PATIENCE_S)
        self._selector.close()


class KcatGroups:
    """Members that are processes. They commit by themselves, at the latest when they end."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command: Final = command
        self._numbers: Final = itertools.count()
        self._members: Final[dict[int, _Member]] = {}

    def join(self, group: str, topics: Sequence[str], settings: MemberSettings) -> int:
        if settings.get("protocol") == "consumer":
            raise CannotDo("it does not have the consumer protocol")
        if settings.get("assignor") == "cooperative-sticky":
            raise CannotDo("it does not tell which partitions it keeps")
        if settings.get("tells_if_fenced"):
            raise CannotDo("it does not tell")
        options = {
            "auto.offset.reset": "earliest",
            "auto.commit.interval.ms": 100,
            "session.timeout.ms": settings.get("session_ms", SESSION_MS),
            "heartbeat.interval.ms": HEARTBEAT_MS,
            "partition.assignment.strategy": "range",
            "isolation.level": "read_committed" if settings.get("read_committed") else "read_uncommitted",
            "topic.metadata.refresh.interval.ms": 500,
        }
        if (instance := settings.get("instance_id")) is not None:
            options["group.instance.id"] = instance
        arguments = [part for name, value in options.items() for part in ("-X", f"{name}={value}")]
        names = [f"^{topic}" for topic in topics] if settings.get("pattern") else list(topics)
        number = next(self._numbers)
        self._members[number] = _Member([*self._command, *arguments, "-u", "-f", r"%p %o %s\n", "-G", group, *names])
        return number

    def poll(self, member: int) -> Polled:
        polling = self._members[member]
        return Polled(polling.poll(), polling.assignment)

    def commit(self, member: int, *, wait: bool) -> None:
        raise CannotDo("it commits by itself")

    def leave(self, member: int) -> None:
        self._members.pop(member).close()

    def list_groups(self) -> list[str]:
        _refuse()

    def describe_group(self, group: str) -> GroupDescription:
        _refuse()

    def committed(self, group: str) -> dict[Place, int]:
        _refuse()

    def set_offsets(self, group: str, offsets: Mapping[Place, int]) -> None:
        _refuse()

    def delete_offsets(self, group: str, place: Place) -> None:
        _refuse()

    def delete_group(self, group: str) -> None:
        _refuse()

    def close(self) -> None:
        """End all processes."""
        for member in list(self._members):
            self.leave(member)


class KcatTransactions:
    """kcat has no transactions."""

    def open(self, transactional_id: str, timeout_ms: int) -> int:
        raise CannotDo("it has no transactions")

    def begin(self, producer: int) -> None:
        _refuse()

    def send(self, producer: int, topic: str, records: Sequence[Record]) -> None:
        _refuse()

    def send_offsets(self, producer: int, member: int) -> None:
        _refuse()

    def end(self, producer: int, *, commit: bool) -> None:
        _refuse()

    def close(self, producer: int) -> None:
        _refuse()


def _refuse() -> NoReturn:
    raise CannotDo("it has no option for it")
