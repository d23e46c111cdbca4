"""A member of a classic group, and what anybody may ask about groups and their offsets."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, Final

from octavo.broker.wire import api_keys as keys
from octavo.errors import ErrorCode
from tests.server.sequences.script import Client, Script

SESSION_MS: Final = 600_000  # runs wait for one another before the restart: nothing may end in that time
REBALANCE_MS: Final = SESSION_MS
SHORT_MS: Final = 2_500  # what is meant to end by itself


def subscription(*topics: str, user: str = "") -> bytes:
    """Return a subscription as consumers write it; Kafka answers no join whose bytes are none."""
    names = b"".join(struct.pack(">h", len(each)) + each.encode() for each in topics)
    return struct.pack(">hi", 0, len(topics)) + names + struct.pack(">i", len(user)) + user.encode()


class Admin:
    """Asks about groups."""

    def __init__(self, script: Script, name: str = "admin") -> None:
        self.script: Final = script
        self.client: Final = script.client(name)

    def describe(self, *groups: str, version: int = 6) -> Any:
        """Describe classic groups."""
        content = {"groups": list(groups or [self.script.group]), "include_authorized_operations": True}
        return self.client.ask(keys.DESCRIBE_GROUPS, version, content)

    def describe_until(self, state: str, group: str | None = None, members: int | None = None) -> Any:
        """Describe a classic group when it has reached a state."""
        content = {"groups": [group or self.script.group], "include_authorized_operations": False}
        return self.client.until(
            lambda each: each.groups[0].group_state == state and members in (None, len(each.groups[0].members)),
            keys.DESCRIBE_GROUPS,
            5,
            content,
        )

    def describe_consumers(self, *groups: str, version: int = 1) -> Any:
        """Describe groups of the consumer protocol."""
        content = {"group_ids": list(groups or [self.script.group]), "include_authorized_operations": True}
        return self.client.ask(keys.CONSUMER_GROUP_DESCRIBE, version, content)

    def describe_consumers_until(self, state: str, members: int | None = None) -> Any:
        """Describe a group of the consumer protocol when it has reached a state."""
        return self.client.until(
            lambda each: each.groups[0].group_state == state and members in (None, len(each.groups[0].members)),
            keys.CONSUMER_GROUP_DESCRIBE,
            1,
            {"group_ids": [self.script.group], "include_authorized_operations": False},
        )

    def list(self, states: Sequence[str] = (), types: Sequence[str] = (), version: int = 5) -> Any:
        """List the groups of this run."""
        content = {"states_filter": list(states), "types_filter": list(types)}
        return self.client.ask(keys.LIST_GROUPS, version, content)

    def delete(self, *groups: str, version: int = 2) -> Any:
        """Delete groups."""
        return self.client.ask(keys.DELETE_GROUPS, version, {"groups_names": list(groups or [self.script.group])})

    def delete_offsets(self, topics: Mapping[str, Sequence[int]], group: str | None = None) -> Any:
        """Delete committed offsets."""
        wanted = [
            {"name": name, "partitions": [{"partition_index": each} for each in numbers]}
            for name, numbers in topics.items()
        ]
        return self.client.ask(keys.OFFSET_DELETE, 0, {"group_id": group or self.script.group, "topics": wanted})

    def fetch_offsets(
        self,
        topics: Mapping[str, Sequence[int]] | None = None,
        *,
        version: int = 9,
        stable: bool = False,
        member: str | None = None,
        epoch: int = -1,
        group: str | None = None,
    ) -> Any:
        """Fetch committed offsets: of some partitions, or all."""
        content = self._fetch(topics, version, stable, member, epoch, group)
        return self.client.ask(keys.OFFSET_FETCH, version, content)

    def _fetch(
        self,
        topics: Mapping[str, Sequence[int]] | None,
        version: int,
        stable: bool,
        member: str | None,
        epoch: int,
        group: str | None,
    ) -> dict[str, Any]:
        wanted: Any = None
        if topics is None:
            pass
        elif version >= 10:
            wanted = [
                {
                    "topic_id": self.script.topic_id(name.removeprefix(self.script.prefix)),
                    "partition_indexes": list(each),
                }
                for name, each in topics.items()
            ]
        else:
            wanted = [{"name": name, "partition_indexes": list(each)} for name, each in topics.items()]
        group = group or self.script.group
        if version < 8:
            return {"group_id": group, "topics": wanted, "require_stable": stable}
        one: dict[str, Any] = {"group_id": group, "member_id": member, "member_epoch": epoch, "topics": wanted}
        return {"groups": [one], "require_stable": stable}

    def commit(self, offsets: Mapping[int, int], *, version: int = 9, **changes: Any) -> Any:
        """Commit offsets as somebody who is no member, or says to be one."""
        partitions = [
            {
                "partition_index": number,
                "committed_offset": offset,
                "committed_leader_epoch": -1,
                "committed_metadata": "note",
            }
            for number, offset in offsets.items()
        ]
        topic = {"name": self.script.topic, "topic_id": self.script.topic_id(), "partitions": partitions}
        content = {
            "group_id": self.script.group,
            "generation_id_or_member_epoch": -1,
            "member_id": "",
            "group_instance_id": None,
            "retention_time_ms": -1,
            "topics": [topic],
        }
        return self.client.ask(keys.OFFSET_COMMIT, version, content | changes)


class Member:
    """A member of a classic group. It remembers its id and its generation."""

    def __init__(self, script: Script, name: str, instance: str | None = None) -> None:
        self.script: Final = script
        self.client: Final = script.client(name)
        self.instance = instance
        self.id = ""
        self.generation = -1
        self.protocol: str | None = None

    def send_join(self, *, version: int = 9, **changes: Any) -> None:
        """Ask to be a member; `joined` tells the answer."""
        content = {
            "group_id": self.script.group,
            "session_timeout_ms": SESSION_MS,
            "rebalance_timeout_ms": REBALANCE_MS,
            "member_id": self.id,
            "group_instance_id": self.instance,
            "protocol_type": "consumer",
            "protocols": [{"name": "range", "metadata": subscription(self.script.topic, user=self.client.name)}],
            "reason": None,
        }
        self.client.send(keys.JOIN_GROUP, version, content | changes)

    def joined(self) -> Any:
        """Return the answer to a join, and remember what it says."""
        answer = self.client.receive()
        if isinstance(answer, SimpleNamespace):
            if answer.error_code in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
                self.id = answer.member_id
            if answer.error_code == ErrorCode.NONE:
                self.generation, self.protocol = answer.generation_id, answer.protocol_name
        return answer

    def join(self, *, version: int = 9, **changes: Any) -> Any:
        """Ask to be a member, and wait."""
        self.send_join(version=version, **changes)
        return self.joined()

    def enter(self, **changes: Any) -> Any:
        """Join with an id that was asked for first."""
        self.join(**changes)
        return self.join(**changes)

    def send_sync(self, assignments: Mapping[Member, bytes] | None = None, *, version: int = 5, **changes: Any) -> None:
        """Ask for the assignment; `client.receive` tells the answer."""
        content = {
            "group_id": self.script.group,
            "generation_id": self.generation,
            "member_id": self.id,
            "group_instance_id": self.instance,
            "protocol_type": "consumer",
            "protocol_name": "range",
            "assignments": [{"member_id": each.id, "assignment": what} for each, what in (assignments or {}).items()],
        }
        self.client.send(keys.SYNC_GROUP, version, content | changes)

    def sync(self, assignments: Mapping[Member, bytes] | None = None, *, version: int = 5, **changes: Any) -> Any:
        """Ask for the assignment, and wait."""
        self.send_sync(assignments, version=version, **changes)
        return self.client.receive()

    def alone(self, **changes: Any) -> None:
        """Be the only member of a stable group."""
        self.enter(**changes)
        self.sync({self: b"all"})

    def meet(self, other: Member) -> None:
        """Be the only member, and then join again, because another member joins."""
        self.alone()
        other.join()
        other.send_join()
        self.heartbeat_until(ErrorCode.REBALANCE_IN_PROGRESS)
        self.join()
        other.joined()

    def heartbeat(self, *, version: int = 4, **changes: Any) -> Any:
        """Be alive."""
        return self.client.ask(keys.HEARTBEAT, version, self._beat() | changes)

    def heartbeat_until(self, code: ErrorCode) -> Any:
        """Be alive until a code is the answer."""
        return self.client.until(lambda each: each.error_code == code, keys.HEARTBEAT, 4, self._beat())

    def _beat(self) -> dict[str, Any]:
        return {
            "group_id": self.script.group,
            "generation_id": self.generation,
            "member_id": self.id,
            "group_instance_id": self.instance,
        }

    def leave(self, *, version: int = 5) -> Any:
        """Leave the group."""
        return leave(self.client, self.script.group, (self.id, self.instance), version=version)

    def commit(self, offset: int, *, version: int = 9, **changes: Any) -> Any:
        """Commit an offset as this member."""
        known = {
            "generation_id_or_member_epoch": self.generation,
            "member_id": self.id,
            "group_instance_id": self.instance,
        }
        partition = {"partition_index": 0, "committed_offset": offset, "committed_leader_epoch": 3}
        topic = {"name": self.script.topic, "topic_id": self.script.topic_id()}
        topics = [{**topic, "partitions": [{**partition, "committed_metadata": None}]}]
        content = {"group_id": self.script.group, **known, "retention_time_ms": -1, "topics": topics}
        return self.client.ask(keys.OFFSET_COMMIT, version, content | changes)


def leave(client: Client, group: str, *members: tuple[str, str | None], version: int = 5) -> Any:
    """Have members leave a group, by their ids and instance ids."""
    several = [{"member_id": each, "group_instance_id": instance, "reason": "done"} for each, instance in members]
    content = {"group_id": group, "members": several, "member_id": members[0][0]}
    return client.ask(keys.LEAVE_GROUP, version, content)
