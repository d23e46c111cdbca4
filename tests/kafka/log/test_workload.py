"""A long life of a log, made up from a seed: everything that can be done to it, in any order."""

from __future__ import annotations

from random import Random
from typing import Any, Final

import pytest

from octavo.records import read_batches
from tests.kafka.log.conftest import OpenBoth
from tests.kafka.log.samples import batch, replicated
from tests.kafka.log.side_by_side import SideBySide
from tests.kafka.unified_log import ReadQuestion

STEPS: Final = 150


class Life:
    """The steps, drawn one after the other."""

    def __init__(self, random: Random, both: SideBySide, segment_size: int) -> None:
        self._random = random
        self._segment_size = segment_size
        self._both = both
        self._epoch = 0

    def step(self) -> None:
        self._both.now_ms += self._random.choice((0, 1, 20, 100))
        steps = {
            self._append: 40,
            self._append_as_follower: 12,
            self._roll: 3,
            self._truncate: 4,
            self._delete_records: 3,
            self._retain: 5,
            self._lead: 3,
            self._reopen: 3,
            self._read: 10,
            self._look_up: 8,
            self._both.flush: 3,
            self._both.delete_files: 3,
        }
        (action,) = self._random.choices(list(steps), list(steps.values()))
        action()

    def _batch(self) -> bytes:
        random = self._random
        return batch(
            random.choice((1, 1, 2, 9)),
            size=random.choice((0, 10, 80)),
            timestamp_ms=self._both.now_ms + random.choice((0, 0, -50, 70)),
            step_ms=random.choice((0, 1, -1)),
            codec=random.choice(("none", "none", "gzip", "lz4")),
        )

    def _append(self) -> None:
        self._both.append(self._batch())

    def _append_as_follower(self) -> None:
        offset = self._both.state.end_offset + self._random.choice((0, 0, 0, 4))
        batches = replicated(self._batch(), offset, self._epoch)
        for _ in range(self._random.choice((0, 1, 3))):
            offset = max(found.next_offset for found in read_batches(batches))
            another = replicated(self._batch(), offset, self._epoch)
            if len(batches) + len(another) <= self._segment_size:  # more at once Kafka does not take
                batches += another
        self._both.append_as_follower(batches)

    def _roll(self) -> None:
        self._both.roll()

    def _offset(self) -> int:
        state = self._both.state
        return self._random.randrange(state.start_offset, state.end_offset + 1)

    def _truncate(self) -> None:
        self._both.max_timestamp_offset()  # Kafka forgets times in a truncation unless it has looked at them
        offset = max(self._offset(), self._both.state.end_offset - 20)
        # To where a batch ends: what else is cut leaves an empty batch here when the log rolls, and a hole in Kafka's.
        before = read_batches(self._both.octavo.read(max(offset - 1, self._both.state.start_offset), 1))
        if any(held.base_offset < offset <= held.last_offset or held.base_offset >= offset for held in before):
            return
        self._both.truncate_to(offset)

    def _delete_records(self) -> None:
        self._both.delete_records_before(self._offset())

    def _retain(self) -> None:
        self._both.apply_retention()
        assert self._both.deleted is not None

    def _lead(self) -> None:
        self._epoch += self._random.choice((1, 3))
        self._both.become_leader(self._epoch)
        assert self._both.epochs[-1][0] == self._epoch

    def _reopen(self) -> None:
        self._both.close()
        self._both.open()
        self._epoch = max([epoch for epoch, _ in self._both.epochs], default=0)

    def _read(self) -> None:
        offsets = (self._offset() + self._random.choice((-1, 0, 1)) for _ in range(8))
        self._both.read_many([ReadQuestion(offset, self._random.choice((0, 1, 100, 5000))) for offset in offsets])

    def _look_up(self) -> None:
        now_ms = self._both.now_ms
        self._both.offsets_for_timestamps([now_ms + step for step in (-5000, -500, -100, -3, 0, 50, 100)])
        self._both.max_timestamp_offset()
        self._both.end_offset_for_epoch(self._random.randrange(-1, self._epoch + 2))


@pytest.mark.parametrize("seed", range(12))
def test_a_long_life(seed: int, open_both: OpenBoth) -> None:
    random = Random(seed)
    config: dict[str, Any] = {
        "internal_segment_bytes": random.choice((700, 2000, 5000)),
        "index_interval_bytes": random.choice((0, 100, 500)),
        # Not so small that several batches at once fill an index: Kafka then fails in their midst.
        "segment_index_bytes": random.choice((500, 4000)),
        "segment_ms": random.choice((500, 10**9)),
        "retention_ms": random.choice((-1, 2000)),
        "retention_bytes": random.choice((-1, 4000)),
        "message_timestamp_type": random.choice(("CreateTime", "LogAppendTime")),
        "preallocate": random.choice(("true", "false")),
        "flush_messages": random.choice((5, 2**62)),
    }
    both = open_both(**config)
    life = Life(random, both, config["internal_segment_bytes"])
    for _ in range(STEPS):
        life.step()
    both.close()
