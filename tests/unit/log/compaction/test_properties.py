"""Any log, compacted again and again with maps of any size, is what the model says."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from octavo.log.compaction.offset_map import LOAD_FACTOR, SLOT_SIZE
from octavo.records import Codec
from tests.clock import Clock
from tests.crash.storage import FastStorage
from tests.unit.log.compaction.logs import RETENTION_MS, TIME_MS, Pair, batch_of, held, open_log
from tests.unit.log.compaction.model import ModelBatch, ModelLog

KEYS = st.sampled_from([b"a", b"b", b"c", b"", b"long" * 5, b"12345678", b"x" * 300])
VALUES = st.one_of(st.none(), st.binary(max_size=20), st.just(b"v" * 200))
BATCHES = st.tuples(st.lists(st.tuples(KEYS, VALUES), min_size=1, max_size=6), st.sampled_from(list(Codec)))
SEGMENTS = st.lists(st.lists(BATCHES, min_size=1, max_size=4), min_size=1, max_size=3)
ROUNDS = st.lists(
    st.tuples(SEGMENTS, st.integers(2, 10), st.sampled_from([0, RETENTION_MS - 1, RETENTION_MS, 5 * RETENTION_MS])),
    min_size=1,
    max_size=4,
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rounds=ROUNDS)
def test_a_log_is_compacted_as_the_model_says(
    rounds: list[tuple[list[list[tuple[list[Pair], Codec]]], int, int]], each_kind_of_kernel: str
) -> None:
    clock = Clock()
    model = ModelLog()
    with tempfile.TemporaryDirectory() as folder, open_log(Path(folder), clock=clock, storage=FastStorage()) as log:
        for segments, slots, passed_ms in rounds:
            clock.now_ms += passed_ms
            for segment in segments:
                for pairs, codec in segment:
                    base_offset, last_offset, *_ = log.append(batch_of(pairs, codec=codec, time_ms=TIME_MS))
                    rows = [(base_offset + number, *pair) for number, pair in enumerate(pairs)]
                    model.batches.append(ModelBatch(base_offset, last_offset, rows, log.segments[-1].base_offset))
                log.roll()
            for _ in range(2):
                if log.compact(map_memory=slots * SLOT_SIZE) is not None:
                    model.compact(log.segments[-1].base_offset, clock.now_ms, RETENTION_MS, int(slots * LOAD_FACTOR))
                assert [tuple(record) for record in held(log)] == model.rows
                assert log.compaction_plan().first_dirty_offset == model.first_dirty_offset


@pytest.mark.parametrize("slots", [1, 0])
def test_a_map_needs_room_for_a_key(tmp_path: Path, slots: int) -> None:
    with open_log(tmp_path) as log:
        log.append(batch_of([(b"a", b"1")]))
        log.roll()
        with pytest.raises(ValueError, match="too few"):
            log.compact(map_memory=slots * SLOT_SIZE)
