"""A client that asks about groups, and can go on while an answer has to wait: `GroupClient`."""

from __future__ import annotations

from types import SimpleNamespace, TracebackType
from typing import Any, Self

from octavo.broker.wire import api_keys
from octavo.broker.wire.api_keys import APIS
from octavo.broker.wire.messages import read_response, write_request
from tests.server.raw import RawClient, header

SESSION_TIMEOUT_MS = 10_000
REBALANCE_TIMEOUT_MS = 60_000


class GroupClient:
    """One connection. `send` and `receive` are for answers that come later."""

    def __init__(self, address: str, group_id: str = "g") -> None:
        self.group_id = group_id
        self._client = RawClient(address)

    def send(self, api_key: int, version: int, **content: Any) -> None:
        """Send a request."""
        flexible = version >= APIS[api_key].flexible
        body = write_request(api_key, version, content)
        self._client.send(header(api_key, version, client_id="raw", flexible=flexible) + body)

    def receive(self, api_key: int, version: int) -> SimpleNamespace:
        """Return the next answer."""
        answer = self._client.receive()
        assert answer is not None, "the connection was closed"
        begin = 5 if version >= APIS[api_key].flexible else 4
        return read_response(api_key, version, memoryview(answer)[begin:])

    def ask(self, api_key: int, version: int, **content: Any) -> SimpleNamespace:
        """Send a request, and return its answer."""
        self.send(api_key, version, **content)
        return self.receive(api_key, version)

    def send_join(self, member_id: str = "", *, version: int = 9, **changes: Any) -> None:
        """Ask to be a member."""
        content: dict[str, Any] = {
            "group_id": self.group_id,
            "session_timeout_ms": SESSION_TIMEOUT_MS,
            "rebalance_timeout_ms": REBALANCE_TIMEOUT_MS,
            "member_id": member_id,
            "group_instance_id": None,
            "protocol_type": "consumer",
            "protocols": [{"name": "range", "metadata": b"from " + member_id.encode()}],
            "reason": None,
        }
        self.send(api_keys.JOIN_GROUP, version, **(content | changes))

    def join(self, member_id: str = "", *, version: int = 9, **changes: Any) -> SimpleNamespace:
        """Ask to be a member, and return the answer."""
        self.send_join(member_id, version=version, **changes)
        return self.joined(version)

    def joined(self, version: int = 9) -> SimpleNamespace:
        """Return the answer to a join."""
        return self.receive(api_keys.JOIN_GROUP, version)

    def send_sync(self, member_id: str, generation: int, assignments: dict[str, bytes] | None = None) -> None:
        """Ask for the assignment."""
        self.send(
            api_keys.SYNC_GROUP,
            5,
            group_id=self.group_id,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=None,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[{"member_id": each, "assignment": what} for each, what in (assignments or {}).items()],
        )

    def synced(self) -> SimpleNamespace:
        """Return the answer to a sync."""
        return self.receive(api_keys.SYNC_GROUP, 5)

    def heartbeat(self, member_id: str, generation: int, instance_id: str | None = None) -> int:
        """Return the code of the answer to a heartbeat."""
        answer = self.ask(
            api_keys.HEARTBEAT,
            4,
            group_id=self.group_id,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=instance_id,
        )
        return int(answer.error_code)

    def commit(self, topic: str, offset: int, member_id: str = "", generation: int = -1, partition: int = 0) -> int:
        """Return the code of the answer to a commit."""
        offsets = {"partition_index": partition, "committed_offset": offset, "committed_metadata": "note"}
        answer = self.ask(
            api_keys.OFFSET_COMMIT,
            9,
            group_id=self.group_id,
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            group_instance_id=None,
            topics=[{"name": topic, "partitions": [{**offsets, "committed_leader_epoch": -1}]}],
        )
        return int(answer.topics[0].partitions[0].error_code)

    def committed(self, topic: str, partition: int = 0) -> int:
        """Return what the group has committed."""
        asked = {"name": topic, "partition_indexes": [partition]}
        answer = self.ask(api_keys.OFFSET_FETCH, 7, group_id=self.group_id, topics=[asked], require_stable=True)
        return int(answer.topics[0].partitions[0].committed_offset)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.socket.close()
