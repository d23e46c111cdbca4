"""Long lives of logs with producers, made up from a seed: also cut, crashed and opened again."""

from __future__ import annotations

from random import Random
from typing import Final

import pytest

from octavo.records import read_batches
from tests.kafka.log.conftest import OpenProducing
from tests.kafka.log.producing import Producing
from tests.selection import some
from tests.workload.generator import CODECS, Shape, Step, Workload

STEPS: Final = 130


class Life:
    """The steps, drawn one after the other."""

    def __init__(self, seed: int, both: Producing, *, follows_end: bool) -> None:
        self._random = Random(seed)
        self._follows_end = follows_end
        self._both = both
        self._workload = Workload(seed, Shape(codecs=CODECS, rolls=0.04, producers=2, transactions=3))
        self._sent: list[Step] = []

    def step(self) -> None:
        steps = {
            self._append: 60,
            self._append_again: 12,
            self._truncate: 2,
            self._both.reopen: 3,
            self._crash: 2,
            self._delete_records: 1,
            self._see: 10,
        }
        (action,) = self._random.choices(list(steps), list(steps.values()))
        action()

    def _append(self) -> None:
        for step in self._workload.take(1):
            self._both.now_ms = max(self._both.now_ms, step.time_ms)
            if step.rolls:
                self._both.roll()
            else:
                self._both.append(step.batches, origin=step.origin)
                self._sent.append(step)

    def _append_again(self) -> None:
        if self._sent:
            step = self._random.choice(self._sent[-12:])
            self._both.append(step.batches, origin=step.origin)

    def _truncate(self) -> None:
        self._both.kafka.max_timestamp_offset()  # Kafka forgets times in a truncation unless it has looked at them
        state = self._both.state
        offset = self._random.randrange(max(state.start_offset, state.end_offset - 30), state.end_offset + 1)
        # What else is cut leaves an empty batch here when the log rolls, and a hole in Kafka's.
        if self._is_boundary(offset):
            self._both.truncate_to(offset)
            self._both.reopen()

    def _is_boundary(self, offset: int) -> bool:
        """Whether a batch ends right before it."""
        before = max(offset - 1, self._both.state.start_offset)
        held = next(iter(read_batches(self._both.octavo.read(before, 1, isolation="LOG_END"))), None)
        return held is None or held.next_offset == offset

    def _crash(self) -> None:
        self._both.crash()
        self._both.reopen()

    def _delete_records(self) -> None:
        state = self._both.state
        offset = self._random.randrange(state.start_offset, state.high_watermark + 1)
        # In the midst of a batch all is unstable from there on here; in Kafka from where the batch begins.
        if self._is_boundary(offset):
            self._both.delete_records_before(offset)
            self._both.apply_retention()
            self._both.reopen()  # a crash makes Kafka forget a start that has not been written down

    def _see(self) -> None:
        if self._follows_end:
            return
        state = self._both.state
        self._both.advance_high_watermark(self._random.randrange(state.high_watermark, state.end_offset + 1))


@pytest.mark.parametrize("seed", some(range(12), 4))
def test_a_long_life_with_producers(seed: int, open_producing: OpenProducing) -> None:
    # Segments are begun by the steps: a batch that is refused may begin one in Kafka, and does not here.
    follows_end = seed % 2 == 0
    both = open_producing(index_interval_bytes=200, follows_end=follows_end, retention_ms=-1)
    life = Life(seed, both, follows_end=follows_end)
    for _ in range(STEPS):
        life.step()
    both.read_committed((1, 900))
    both.close()
    both.open()
    both.read_committed((300,))
    both.close()
