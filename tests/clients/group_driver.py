"""What members of groups and transactional producers are asked to do: `Groups`, `Transactions`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal, NamedTuple, Protocol, TypedDict

from tests.clients.driver import Record

POLL_S: Final = 0.05  # how long a poll waits for records
HEARTBEAT_MS: Final = 100
SESSION_MS: Final = 6_000  # unless a test waits for its end

Place = tuple[str, int]  # a topic and a partition


class MemberSettings(TypedDict, total=False):
    """How to be a member. Members begin at the earliest record where nothing is committed, and commit when told to."""

    protocol: Literal["classic", "consumer"]  # classic is the default
    assignor: Literal["range", "cooperative-sticky"]  # of classic groups, range by default
    pattern: Literal["client", "server"]  # the topic is a regular expression, and who looks for topics
    instance_id: str
    tells_if_fenced: bool  # whether a poll has to tell when another member takes the instance id
    session_ms: int  # of classic groups
    auto_commit: bool
    read_committed: bool


class Polled(NamedTuple):
    """What a poll has returned, and which partitions the member has after it."""

    records: list[Record]
    assignment: frozenset[Place]


class GroupDescription(NamedTuple):
    """What an admin client tells of a group."""

    state: str  # in lower case, without `_`
    assignments: list[frozenset[Place]]  # of each member


class Groups(Protocol):
    """Members of groups, which are numbers from `join` on, and the admin client's calls for groups.

    Calls raise `ClientError` and `CannotDo` as those of `Driver`.
    """

    def join(self, group: str, topics: Sequence[str], settings: MemberSettings) -> int:
        """Subscribe as a new member. It joins when it is polled."""

    def poll(self, member: int) -> Polled:
        """Poll once, for about `POLL_S`; members stay in their group only if they are polled again and again."""

    def commit(self, member: int, *, wait: bool) -> None:
        """Commit the positions of all records that were polled.

        wait: until it is done; else the client does it on the side
        """

    def leave(self, member: int) -> None:
        """Close the member, which leaves the group unless it has an instance id."""

    def list_groups(self) -> list[str]:
        """Return the names of all groups."""

    def describe_group(self, group: str) -> GroupDescription:
        """Describe a group."""

    def committed(self, group: str) -> dict[Place, int]:
        """Return all positions that a group has committed."""

    def set_offsets(self, group: str, offsets: Mapping[Place, int]) -> None:
        """Change committed positions of a group that has no members."""

    def delete_offsets(self, group: str, place: Place) -> None:
        """Delete one committed position."""

    def delete_group(self, group: str) -> None:
        """Delete a group."""


class Transactions(Protocol):
    """Transactional producers, which are numbers from `open` on.

    Calls raise `ClientError` and `CannotDo` as those of `Driver`.
    """

    def open(self, transactional_id: str, timeout_ms: int) -> int:
        """Open a producer, which fences others of its transactional id, and wait until it is ready."""

    def begin(self, producer: int) -> None:
        """Begin a transaction."""

    def send(self, producer: int, topic: str, records: Sequence[Record]) -> None:
        """Produce records in the transaction, and wait until they are acknowledged."""

    def send_offsets(self, producer: int, member: int) -> None:
        """Commit the positions of a member in the transaction."""

    def end(self, producer: int, *, commit: bool) -> None:
        """Commit or abort the transaction."""

    def close(self, producer: int) -> None:
        """Close the producer."""
