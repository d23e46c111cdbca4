"""What goes in a compaction and what stays, rule by rule, in Kafka's log and in ours."""

from __future__ import annotations

from typing import Any, Final

from octavo.records import read_batches
from tests.batches import TIME_MS, build
from tests.kafka.answers import BatchSpec, RecordSpec
from tests.kafka.log.conftest import OpenCompacting
from tests.kafka.log.producing import Compacting
from tests.kafka.log.samples import marker, replicated

RETENTION_MS: Final = 1000
DAY_MS: Final = 86_400_000
SLOT: Final = 24  # bytes that a key takes in the map


def _batch(values: dict[str, bytes | None], timestamp_ms: int = TIME_MS, **fields: Any) -> bytes:
    records = [RecordSpec(timestamp_ms=timestamp_ms, key=key.encode(), value=value) for key, value in values.items()]
    return build(BatchSpec(records=records, **fields))


def _sent(producer_id: int, sequence: int, values: dict[str, bytes | None], **fields: Any) -> bytes:
    return _batch(values, producer_id=producer_id, producer_epoch=0, base_sequence=sequence, **fields)


def _written(log: Any) -> list[tuple[int, int, dict[str, bytes | None]]]:
    """First and last offset of all batches, and their records by key."""
    state = log.state
    found = []
    offset = state.start_offset
    while offset < state.end_offset:
        batches = list(read_batches(log.read(offset, 1 << 20, isolation="LOG_END")))
        if not batches:
            break
        found += [(each.base_offset, each.last_offset, {_text(r.key): r.value for r in each}) for each in batches]
        offset = batches[-1].next_offset
    return found


def _text(key: bytes | None) -> str:
    return "" if key is None else {b"\0\0\0\0": "ABORT", b"\0\0\0\1": "COMMIT"}.get(key, key.decode())


def _both(both: Compacting) -> list[tuple[int, int, dict[str, bytes | None]]]:
    ours, theirs = _written(both.octavo), _written(both.kafka)
    assert ours == theirs
    return theirs


def _clean(both: Compacting, more: str) -> None:
    """Have something new to clean, and clean."""
    both.append(_batch({more: b"new"}))
    both.roll()
    assert both.compact() is not None


def test_the_last_of_each_key_stays(open_compacting: OpenCompacting) -> None:
    both = open_compacting(internal_segment_bytes=1000)
    both.append(_batch({"a": b"1", "b": b"1", "c": b"1"}))
    both.append(_batch({"a": b"2", "d": b""}))
    both.roll()
    both.append(_batch({"c": b"2"}))
    both.append(_batch({"a": b"3"}))
    both.roll()
    assert both.compact() is not None
    assert _both(both) == [(0, 2, {"b": b"1"}), (3, 4, {"d": b""}), (5, 5, {"c": b"2"}), (6, 6, {"a": b"3"})]
    assert both.segments == [0, 7]
    assert both.compact() is None
    both.close()


def test_tombstones_go_in_two_passes(open_compacting: OpenCompacting) -> None:
    both = open_compacting(delete_retention_ms=RETENTION_MS)
    both.append(_batch({"a": b"1"}))
    both.append(_batch({"a": None, "b": b"1"}))
    both.append(_batch({"last": b"1"}))
    both.roll()
    assert both.compact() is not None
    both.now_ms += RETENTION_MS - 1
    _clean(both, "x")
    assert _both(both)[0] == (1, 2, {"a": None, "b": b"1"})
    both.now_ms += 1
    _clean(both, "y")
    assert _both(both)[0] == (1, 2, {"b": b"1"})
    both.close()


def test_a_marker_goes_after_all_that_it_decided(open_compacting: OpenCompacting) -> None:
    both = open_compacting(delete_retention_ms=RETENTION_MS)
    both.append(_sent(5, 0, {"a": b"1"}, transactional=True))
    both.append(_sent(6, 0, {"b": b"1"}, transactional=True))
    both.append(marker(False, 5, 0), origin="COORDINATOR")
    both.append(marker(True, 6, 0), origin="COORDINATOR")
    both.append(_batch({"last": b"1"}))
    both.roll()
    assert both.compact() is not None
    # What was aborted has gone, and left what tells of its producer. The marker is still there: it was needed.
    commit, abort = {"COMMIT": bytes(6)}, {"ABORT": bytes(6)}
    assert _both(both)[:4] == [(0, 0, {}), (1, 1, {"b": b"1"}), (2, 2, abort), (3, 3, commit)]
    both.append(_sent(5, 1, {"b": b"2"}))
    both.append(_sent(6, 1, {"c": b"1"}))
    _clean(both, "x")
    assert [batch[2] for batch in _both(both)[:2]] == [abort, commit]  # what they decided was there until now
    _clean(both, "y")  # from now on they have a time by which they go
    both.now_ms += RETENTION_MS
    _clean(both, "z")
    assert _both(both)[0] == (4, 4, {"last": b"1"})
    assert both.producers.aborted == ()
    both.close()


def test_the_last_batch_of_a_producer_stays_until_it_is_forgotten(open_compacting: OpenCompacting) -> None:
    both = open_compacting()
    both.append(_sent(5, 0, {"a": b"1", "b": b"1"}))
    both.append(_sent(5, 2, {"a": b"2", "b": b"2"}))
    both.append(_batch({"a": b"3", "b": b"3"}))
    both.roll()
    assert both.compact() is not None
    assert _both(both) == [(2, 3, {}), (4, 5, {"a": b"3", "b": b"3"})]
    both.close()
    both.open()
    assert both.producer(5) is not None
    both.now_ms += DAY_MS
    both.expire_producers()
    _clean(both, "x")
    assert _both(both)[0] == (4, 5, {"a": b"3", "b": b"3"})
    both.close()


def test_the_last_batch_of_a_producer_that_recovery_has_forgotten_goes(open_compacting: OpenCompacting) -> None:
    both = open_compacting()
    both.append(_sent(5, 0, {"a": b"1"}))
    both.append(_batch({"a": b"2"}))
    both.roll()
    both.now_ms += 2 * DAY_MS
    both.crash()
    assert both.compact() is not None
    assert _both(both) == [(1, 1, {"a": b"2"})]
    both.close()


def test_the_last_batch_of_a_round_keeps_its_place(open_compacting: OpenCompacting) -> None:
    both = open_compacting(delete_retention_ms=0)
    both.append(_batch({"a": b"1"}))
    both.append(_batch({"a": None}))
    both.roll()
    assert both.compact() is not None
    both.now_ms += 1
    _clean(both, "a")
    assert _both(both) == [(2, 2, {"a": b"new"})]
    both.append(_batch({"a": None}))
    both.roll()
    assert both.compact() is not None
    both.now_ms += 1
    both.append(_batch({"b": None}))
    both.roll()
    assert both.compact() is not None
    assert _both(both)[-1][:2] == (4, 4)
    both.close()


def test_segments_become_one_as_far_as_their_sizes_allow(open_compacting: OpenCompacting) -> None:
    one = len(_batch({"a": b"x" * 50}))
    for size, expected in ((2 * one, [0, 2, 4, 6]), (3 * one, [0, 3, 6]), (4 * one, [0, 4, 6]), (one, list(range(7)))):
        both = open_compacting(internal_segment_bytes=size)
        for key in "abcdef":
            both.append(_batch({key: b"x" * 50}))
            both.roll()
        both.compact()
        assert both.segments == expected
        both.close()


def test_segments_become_one_as_far_as_their_indexes_allow(open_compacting: OpenCompacting) -> None:
    """Enough goes that there is room for entries of what was first in its segment, or Kafka's cleaner fails."""
    for size in (48, 96, 150, 1000):
        both = open_compacting(segment_index_bytes=size, index_interval_bytes=1)
        for number in range(24):
            both.append(_batch({str(number % 4): b"x" * 50}, TIME_MS + number))
            if number % 3 == 1:
                both.roll()
        both.roll()
        both.compact()
        assert (len(both.segments) == 2) == (size == 1000)
        both.close()


def test_segments_become_one_as_far_as_their_offsets_allow(open_compacting: OpenCompacting) -> None:
    both = open_compacting()
    for offset in (0, 7, 2**31 - 2, 2**31 + 5, 2**31 + 6, 2**33, 2**33 + 1):
        both.append_as_follower(replicated(_batch({str(offset): b"1"}), offset))
        both.roll()
    both.compact()
    assert both.segments == [0, 2**31 - 1, 2**33, 2**33 + 2]
    both.close()


def test_batches_larger_than_any_buffer(open_compacting: OpenCompacting) -> None:
    both = open_compacting(max_message_bytes=5_000_000)
    large: dict[str, bytes | None] = {f"{number}": bytes(100) * 50 for number in range(300)}
    for _ in range(2):
        both.append(_batch(large))
        both.append(_batch(large | {"0": b"other", "tombstone": None}, codec="lz4"))
    both.append(_batch({"last": b"1"}))
    both.roll()
    done = both.compact()
    assert done is not None
    assert done.messages_written == 302
    both.close()


def test_a_deleted_key_stays_deleted(open_compacting: OpenCompacting) -> None:
    """Here we differ: where a round begins behind the marker of an aborted transaction, Kafka takes what its producer
    commits next for aborted as well. The tombstone in it deletes nothing, and when it goes the key is back."""
    both = open_compacting(delete_retention_ms=RETENTION_MS, index_interval_bytes=1)
    both.append(_batch({"gone": b"1"}))
    both.append(_sent(5, 0, {"aborted": b"1"}, transactional=True))
    both.append(marker(False, 5, 0), origin="COORDINATOR")
    both.append(_batch({"b": b"1"}))
    both.append(_batch({"c": b"1"}))
    both.append(_sent(5, 1, {"gone": None}, transactional=True))
    both.append(marker(True, 5, 0), origin="COORDINATOR")
    both.append(_sent(5, 2, {"d": b"1"}))
    both.roll()
    first = both.compact(map_memory=3 * SLOT)  # two keys fit
    assert first is not None
    assert first.first_dirty_offset == 4
    for log in (both.kafka, both.octavo):
        log.compact(1 << 20)
    for number in range(2):
        both.now_ms += RETENTION_MS
        for log in (both.kafka, both.octavo):
            log.append(_batch({"e": b"%d" % number}))
            log.roll()
            log.compact(1 << 20)
    theirs, ours = (
        {key: value for batch in _written(log) for key, value in batch[2].items() if key not in ("ABORT", "COMMIT")}
        for log in (both.kafka, both.octavo)
    )
    assert theirs == {"gone": b"1", **ours}
    assert "gone" not in ours
