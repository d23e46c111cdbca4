"""Commits and reads of committed offsets: `Commits`, and `SimpleCommitter`, who is no member of any group."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, Final

from octavo.broker.wire.api_keys import OFFSET_COMMIT, OFFSET_FETCH
from octavo.broker.wire.messages import Struct
from tests.simulation.wire import Ask
from tests.simulation.world import Client, Doing, World

Asking = Generator[Ask | int, Struct | None, Struct | None]


class Commits:
    """The committed offsets of a group. Every commit has another number."""

    def __init__(self, world: World, group: str) -> None:
        self._world: Final = world
        self._group: Final = group

    def commit(
        self,
        member_id: str = "",
        generation: int = -1,
        instance: str | None = None,
        *,
        version: int = 9,
        partitions: Sequence[int] = (0, 1),
    ) -> Asking:
        """Commit in some partitions."""
        wanted = [each for each in partitions if self._world.happens(0.7)] or list(partitions[:1])
        offsets: list[dict[str, Any]] = [
            {
                "partition_index": each,
                "committed_offset": self._world.new_number(),
                "committed_leader_epoch": -1,
                "committed_metadata": "",
            }
            for each in wanted
        ]
        return (
            yield Ask(
                OFFSET_COMMIT,
                version,
                {
                    "group_id": self._group,
                    "generation_id_or_member_epoch": generation,
                    "member_id": member_id,
                    "group_instance_id": instance,
                    "topics": [{"name": "a", "partitions": offsets}],
                },
            )
        )

    def fetch(self, *, is_stable: bool = False) -> Asking:
        """Read what is committed."""
        return (yield fetch_ask(self._group, is_stable=is_stable))


def fetch_ask(*groups: str, is_stable: bool = False) -> Ask:
    """Return the request for what groups have committed."""
    topics = [{"name": "a", "partition_indexes": [0, 1]}]
    return Ask(
        OFFSET_FETCH,
        8,
        {
            "groups": [{"group_id": each, "topics": topics} for each in groups],
            "require_stable": is_stable,
        },
    )


class SimpleCommitter(Client):
    """Commits and reads offsets, without being a member of the group."""

    def __init__(self, world: World, name: str, group: str) -> None:
        self.name = name
        self._world: Final = world
        self._commits: Final = Commits(world, group)

    def run(self) -> Doing:
        while not self.is_settling:
            if self._world.happens(0.5):
                yield from self._commits.commit()
            else:
                yield from self._commits.fetch(is_stable=self._world.happens(0.5))
            yield self._world.random.randrange(6_000)
