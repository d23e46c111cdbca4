"""What must be true of a directory that is opened after a crash."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from random import Random

from octavo.log import DataDirectory, Isolation, Log
from octavo.log.storage import Storage
from octavo.records import Batch, BatchBuilder, read_batches
from tests.clock import Clock
from tests.crash.model import Expectations, Key, Partition, Stored
from tests.crash.opening import open_directory
from tests.crash.storage import FastStorage
from tests.crash.workload import paths, stored


def judge(folder: Path, expected: Expectations, clock: Clock, *, power_cut: bool, seed: int = 0) -> None:
    """Open the directory, look at everything in it, use it, close it, open it again. Raises `AssertionError`."""
    random = Random(seed)
    storage = FastStorage()
    after: dict[Key, list[Stored]] = {}
    with open_directory(paths(folder), storage=storage, clock=clock) as data:
        keys = check_topics(data, expected)
        folders = [data.log(*key).folder for key in keys]
        for key in keys:
            log = data.log(*key)
            found = stored(log)
            known = expected.partitions.get(key, Partition())
            try:
                known.check(found, log.start_offset, log.end_offset, power_cut=power_cut)
                check_lookups(log, found, random)
                if known.start_from == known.start_to:  # a cut below the start shows what was deleted, until it is done
                    check_epochs(log, found)
            except AssertionError as error:
                error.add_note(f"{key}: {log.recovery}")
                raise
            after[key] = [*found, append_one(log, clock)]
    for path in folders:
        check_indexes(path)
    check_again(folder, storage, clock, after, random)


def check_topics(data: DataDirectory, expected: Expectations) -> list[Key]:
    """The topics are those that were created and not deleted, with their configurations; their partitions."""
    for name, topic in expected.topics.items():
        if topic.exists is not None:
            assert (name in data.topics) == topic.exists, f"{name}: {topic}"
    keys = []
    for name in data.topics:
        topic = expected.topics[name]
        assert len(data.topics[name].partitions) == topic.partitions
        assert data.topics[name].config in (topic.config, topic.new_config)
        keys += [(name, number) for number in range(topic.partitions)]
    return keys


def append_one(log: Log, clock: Clock) -> Stored:
    """A log that was recovered can be appended to."""
    builder = BatchBuilder()
    builder.append(b"after the crash", b"v" * 30, timestamp_ms=clock.now_ms)
    end = log.end_offset
    done = log.append(builder.build())
    assert (done.base_offset, log.end_offset) == (end, end + 1)
    batch = stored(log)[-1]
    assert batch[:2] == (end, end + 1)
    return batch


def check_again(folder: Path, storage: Storage, clock: Clock, content: dict[Key, list[Stored]], random: Random) -> None:
    """Closed and opened once more it is clean, and holds the same."""
    with DataDirectory.open(paths(folder), storage=storage, clock=clock) as data:
        for key, batches in content.items():
            log = data.log(*key)
            assert log.recovery.was_clean, str(log.recovery)
            assert log.recovery.is_unremarkable, str(log.recovery)
            assert stored(log) == batches
            check_lookups(log, batches, random)


# --------------------------------------------------------------------------------------------------------- look-ups


def check_lookups(log: Log, found: Sequence[Stored], random: Random) -> None:
    """By offset and by time, what is found through the indexes is what is in the data."""
    for batch in random.sample(found, min(len(found), 4)):
        offset = random.randrange(max(batch.base_offset, log.start_offset), batch.next_offset)
        read = log.read(offset, 1, isolation=Isolation.LOG_END)
        assert bytes(read.records) == batch.data, f"offset {offset} is not found"
    segments = [read_segment(log.folder, segment.base_offset, segment.size) for segment in log.segments]
    times = sorted({record.timestamp_ms for batches in segments for batch in batches for record in batch})
    for timestamp_ms in random.sample(times, min(len(times), 3)) + times[-1:]:
        for asked_ms in (timestamp_ms, timestamp_ms + 1):
            answer = log.offset_for_timestamp(asked_ms)
            told = None if answer is None else (answer.offset, answer.timestamp_ms)
            assert told == first_at(segments, asked_ms, log.start_offset), f"at {asked_ms}"


def first_at(segments: Sequence[Sequence[Batch]], timestamp_ms: int, start: int) -> tuple[int, int] | None:
    """As Kafka finds it: only in the first segment that is so late. One without timestamps is as late as its file."""
    for batches in segments:
        if all(batch.max_timestamp_ms < 0 for batch in batches):
            return None
        if any(batch.max_timestamp_ms >= timestamp_ms for batch in batches):
            records = (record for batch in batches for record in batch)
            late = (one for one in records if one.timestamp_ms >= timestamp_ms and one.offset >= start)
            return next(((record.offset, record.timestamp_ms) for record in late), None)
    return None


def check_epochs(log: Log, found: Sequence[Stored]) -> None:
    """Each batch lies where the leader epochs say that its epoch is; and none begins where there is no log."""
    assert all(entry.start_offset <= log.end_offset for entry in log.epochs)
    for batch in found:
        epoch = int.from_bytes(batch.data[12:16], "big", signed=True)
        if epoch >= 0:
            answer = log.end_offset_for_epoch(epoch)
            assert answer is not None
            known, end = answer
            assert known == epoch, f"epoch {epoch} of {batch.base_offset} is not known"
            assert end >= batch.next_offset, f"epoch {epoch} ends at {end}, before {batch.next_offset}"


# --------------------------------------------------------------------------------------------------- files of a log


def read_segment(folder: Path, base_offset: int, size: int | None = None) -> list[Batch]:
    """All batches of a segment file, which holds nothing else."""
    data = (folder / f"{base_offset:020d}.log").read_bytes()[:size]
    batches = read_batches(data)
    found = list(batches)
    assert batches.torn_tail is None, f"{base_offset:020d}.log ends inside a batch"
    return found


def check_indexes(folder: Path) -> None:
    """Of a closed log: each entry points to a batch, as the format says."""
    logs = sorted(folder.glob("*.log"))
    for path in logs:
        base = int(path.stem)
        batches = read_segment(folder, base)
        assert not batches or batches[0].base_offset >= base
        _check_offset_index(path.with_suffix(".index").read_bytes(), base, batches)
        _check_time_index(path.with_suffix(".timeindex").read_bytes(), base, batches)
    for suffix in (".index", ".timeindex"):
        assert {path.stem for path in folder.glob("*" + suffix)} == {path.stem for path in logs}


def _check_offset_index(data: bytes, base: int, batches: Sequence[Batch]) -> None:
    entries = [(base + offset, position) for offset, position in struct.iter_unpack(">ii", data)]
    assert entries == sorted(set(entries))
    assert set(entries) <= {(batch.last_offset, batch.position) for batch in batches}, f"{base}: {entries}"


def _check_time_index(data: bytes, base: int, batches: Sequence[Batch]) -> None:
    entries = [(timestamp_ms, base + offset) for timestamp_ms, offset in struct.iter_unpack(">qi", data)]
    largest: list[tuple[int, int]] = []  # the batches that were later than all before them
    for batch in batches:
        if batch.max_timestamp_ms > (largest[-1][0] if largest else -1):
            largest.append((batch.max_timestamp_ms, batch.last_offset))
    assert entries == sorted(set(entries))
    assert set(entries) <= set(largest), f"{base}: {entries} among {largest}"
    assert entries[-1:] == largest[-1:], f"{base}: the last is {entries[-1:]}, not {largest[-1:]}"
