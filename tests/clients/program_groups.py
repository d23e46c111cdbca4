"""Groups and transactions of a driver in another process: `ProgramGroups`, `ProgramTransactions`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from tests.clients.driver import Record
from tests.clients.group_driver import GroupDescription, MemberSettings, Place, Polled
from tests.clients.json_records import from_json, to_json


class Call(Protocol):
    """Calls a method of the program, and returns its result."""

    def __call__(self, call: str, **arguments: Any) -> Any: ...


class ProgramGroups:
    """`Groups` of a program."""

    def __init__(self, call: Call) -> None:
        self._call: Final = call

    def join(self, group: str, topics: Sequence[str], settings: MemberSettings) -> int:
        return int(self._call("groups.join", group=group, topics=list(topics), settings=settings))

    def poll(self, member: int) -> Polled:
        polled = self._call("groups.poll", member=member)
        return Polled([from_json(record) for record in polled["records"]], _places(polled["assignment"]))

    def commit(self, member: int, *, wait: bool) -> None:
        self._call("groups.commit", member=member, wait=wait)

    def leave(self, member: int) -> None:
        self._call("groups.leave", member=member)

    def list_groups(self) -> list[str]:
        return list(self._call("groups.list_groups"))

    def describe_group(self, group: str) -> GroupDescription:
        found = self._call("groups.describe_group", group=group)
        return GroupDescription(found["state"], [_places(places) for places in found["assignments"]])

    def committed(self, group: str) -> dict[Place, int]:
        found = self._call("groups.committed", group=group)
        return {(topic, partition): offset for (topic, partition), offset in found}

    def set_offsets(self, group: str, offsets: Mapping[Place, int]) -> None:
        self._call("groups.set_offsets", group=group, offsets=list(offsets.items()))

    def delete_offsets(self, group: str, place: Place) -> None:
        self._call("groups.delete_offsets", group=group, place=place)

    def delete_group(self, group: str) -> None:
        self._call("groups.delete_group", group=group)


class ProgramTransactions:
    """`Transactions` of a program."""

    def __init__(self, call: Call) -> None:
        self._call: Final = call

    def open(self, transactional_id: str, timeout_ms: int) -> int:
        return int(self._call("transactions.open", transactional_id=transactional_id, timeout_ms=timeout_ms))

    def begin(self, producer: int) -> None:
        self._call("transactions.begin", producer=producer)

    def send(self, producer: int, topic: str, records: Sequence[Record]) -> None:
        given = [to_json(record) for record in records]
        self._call("transactions.send", producer=producer, topic=topic, records=given)

    def send_offsets(self, producer: int, member: int) -> None:
        self._call("transactions.send_offsets", producer=producer, member=member)

    def end(self, producer: int, *, commit: bool) -> None:
        self._call("transactions.end", producer=producer, commit=commit)

    def close(self, producer: int) -> None:
        self._call("transactions.close", producer=producer)


def _places(places: Sequence[Sequence[Any]]) -> frozenset[Place]:
    return frozenset((topic, partition) for topic, partition in places)
