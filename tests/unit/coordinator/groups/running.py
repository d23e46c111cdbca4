"""A shard of groups that runs on a log in memory."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any
from uuid import UUID

from octavo.coordinator.groups.config import GroupConfig
from octavo.coordinator.groups.group_shard import GroupShard
from octavo.coordinator.groups.requests import CommitRequest, CommittedOffset, FetchRequest
from octavo.coordinator.shard import Now, Origin, Outcome, Producer
from octavo.schemas.consumer_offsets.serde import read_group_key
from octavo.schemas.primitives import NO_UUID
from octavo.schemas.versioned import UnknownKey, UnknownValue, read_value_of


class Running:
    """A shard with a log in memory."""

    def __init__(self, **config: Any) -> None:
        self.config = GroupConfig(**config)
        self._ids = count(1)
        self.shard = self._new()
        self.log: list[tuple[tuple[bytes, bytes | None] | bool, Producer | None]] = []  # records; markers are bool
        self.now_ms = 1_000_000

    def _new(self) -> GroupShard:
        return GroupShard(lambda: self.config, lambda: str(next(self._ids)))

    def do(self, action: Callable[[GroupShard], Any], *, fails: bool = False) -> Any:
        answers: list[Any] = []
        self.shard.end_offset = len(self.log)
        outcome = self.shard.run(lambda: answers.append(action(self.shard)), Now(self.now_ms, self.now_ms))
        self._end(outcome, fails=fails)
        return answers[0]

    def _end(self, outcome: Outcome, *, fails: bool = False) -> None:
        if fails:
            self.shard.undo(outcome.mark)
            return
        self.log += [(record, outcome.producer) for record in outcome.records]
        self.shard.keep(outcome)
        for ticket, answer in outcome.answers:
            ticket(answer)

    def marker(self, producer: Producer, *, commit: bool) -> None:
        self.log.append((commit, producer))
        self.do(lambda shard: shard.apply_marker(producer, commit=commit))

    def pass_time(self, ms: int) -> None:
        until_ms = self.now_ms + ms
        while (next_ms := self.shard.timers.next_ms) is not None and next_ms <= until_ms:
            self.now_ms = max(self.now_ms, next_ms)
            self.shard.end_offset = len(self.log)
            outcome = self.shard.tick(Now(self.now_ms, self.now_ms))
            assert outcome is not None
            self._end(outcome)
        self.now_ms = until_ms

    def reload(self) -> None:
        """Lose the state, and read it from the log."""
        self.shard = self._new()
        for offset, (entry, producer) in enumerate(self.log):
            if isinstance(entry, bool):
                assert producer is not None
                self.shard.apply_marker(producer, commit=entry)
                continue
            key = read_group_key(entry[0])
            assert not isinstance(key, UnknownKey)
            value = read_value_of(key, entry[1])
            assert not isinstance(value, UnknownValue)
            self.shard.apply(key, value, Origin(offset, producer))
        self.do(lambda shard: shard.loaded())

    def commit(self, offset: int, *, topic: str = "t", group: str = "g", **more: Any) -> Any:
        fails = more.pop("fails", False)
        wanted = CommittedOffset(topic, 0, offset, 3, more.pop("metadata", "note"), more.pop("topic_id", NO_UUID))
        return self.do(lambda shard: shard.offsets.commit(CommitRequest(group, [wanted], **more)), fails=fails)

    def committed(self, *, topic: str = "t", group: str = "g", topic_id: UUID = NO_UUID, stable: bool = False) -> Any:
        request = FetchRequest(group, [(topic, 0, topic_id)], require_stable=stable)
        answer = self.do(lambda shard: shard.offsets.fetch(request))
        return answer.error_code or answer.offsets[0].error_code or answer.offsets[0].offset
