"""What must be true of one log with producers, compacted or not, that is opened after a crash."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Final

from octavo.log import Isolation, Log
from octavo.log.directory.data_folder import DataFolder
from octavo.log.origin import Origin
from octavo.records import BatchBuilder
from tests.clock import Clock
from tests.crash.compacted import check_compacted
from tests.crash.crashes import Cut
from tests.crash.knowledge import Line, check_knowledge, check_snapshots, lines_of
from tests.crash.model import Partition, Stored
from tests.crash.producing import DELETE_RETENTION_MS, KEY, PARTITION, open_log
from tests.crash.storage import FastStorage
from tests.crash.truth import read
from tests.crash.verdict import check_epochs, check_indexes, check_lookups
from tests.crash.workload import stored, unassigned

RESENT: Final = 10  # batches, at the most


def judge(folder: Path, cut: Cut) -> None:
    """Open the log, look at everything in it, send again what was lost, close it, open it again."""
    random = Random(0)
    storage = FastStorage()
    known = cut.expected.partitions.get(KEY, Partition())
    config = cut.expected.topics["t"].config
    clock = Clock(cut.clock.now_ms)
    data = open_log(folder, storage, clock, config)
    log = data.logs[PARTITION]
    try:
        line = _look(log, known, random, power_cut=cut.power_cut)
        _send_last_again(log, line)
        line = _send_lost(log, known, line, clock)
        if log.config.is_compacted:
            line = _clean(log, line, clock, random)
            known = replace(known, cleaned_to=log.segments[-1].base_offset)
    except AssertionError as error:
        error.add_note(str(log.recovery))
        raise
    finally:
        data.close()
    check_indexes(log.folder)
    check_snapshots(log, line, is_cleaned=known.cleaned_to > 0)
    _look_again(open_log(folder, storage, clock, config), log, line, known, random)


def _look(log: Log, known: Partition, random: Random, *, power_cut: bool) -> Line:
    found = stored(log)
    known.check(found, log.start_offset, log.end_offset, power_cut=power_cut)
    check_lookups(log, found, random)
    if known.start_from == known.start_to:  # a cut below the start shows what was deleted, until it is done
        check_epochs(log, found)
    return _check_line(log, lines_of(known, found, log.end_offset), known, random)


def _check_line(log: Log, lines: Sequence[Line], known: Partition, random: Random) -> Line:
    """Which of them the log is; it must be one."""
    is_cleaned = known.cleaned_to > 0
    for number, line in enumerate(lines):
        try:
            check_knowledge(log, line, random, is_cleaned=is_cleaned)
            if is_cleaned:
                check_compacted(line, known.cleaned_to, log.start_offset, log.last_stable_offset)
        except AssertionError:
            if number == len(lines) - 1:
                raise
        else:
            return line
    raise AssertionError("nothing is known of this log")


def _look_again(data: DataFolder, before: Log, line: Line, known: Partition, random: Random) -> None:
    """Closed and opened once more it is clean, and holds and knows the same."""
    log = data.logs[PARTITION]
    try:
        assert log.recovery.was_clean, str(log.recovery)
        assert log.recovery.is_unremarkable, str(log.recovery)
        assert (log.start_offset, log.end_offset) == (before.start_offset, before.end_offset)
        found = [batch for batch in stored(log) if not known.fills_gap(batch)]
        assert [read(batch.data) for batch in found] == line.found
        _check_line(log, [line], known, random)
        knew = {one: (entry.epoch, entry.last_sequence) for one, entry in before.producers.entries.items()}
        if log.end_offset > log.start_offset:  # Kafka, too, removes a snapshot where the log starts
            assert {one: (entry.epoch, entry.last_sequence) for one, entry in log.producers.entries.items()} == knew
    finally:
        data.close()


# ---------------------------------------------------------------------------------------------------------- producers


def _send_last_again(log: Log, line: Line) -> None:
    """Each producer sends its last batch once more, and is told where it is."""
    end = log.end_offset
    by_end = {batch.next_offset: batch for batch in line.lineage}
    for producer_id, entry in log.producers.entries.items():
        if entry.last_sequence >= 0:
            batch = by_end[entry.last_offset + 1]
            done = log.append(unassigned(batch.data), now_ms=entry.last_timestamp_ms)
            assert done.is_duplicate, f"producer {producer_id}: {batch} was appended again"
            assert (done.base_offset, done.last_offset) == (batch.base_offset, batch.next_offset - 1)
    assert log.end_offset == end


def _send_lost(log: Log, known: Partition, line: Line, clock: Clock) -> Line:
    """What was lost is sent again, and taken in its order; sent twice, it is there once."""
    lineage = list(line.lineage)
    found = [batch for batch in stored(log) if not known.fills_gap(batch)]
    lost = [batch for batch in known.lost(lineage) if read(batch.data).producer_id >= 0]
    for batch in lost[:RESENT]:
        is_marker = read(batch.data).is_control
        data = unassigned(batch.data)
        end = log.end_offset
        if _has_forgotten(log, line, batch):
            break
        done = log.append(data, origin=Origin.COORDINATOR if is_marker else Origin.CLIENT, now_ms=clock.now_ms)
        assert (done.base_offset, done.is_duplicate) == (end, False), f"{read(batch.data)}: {done}"
        if not is_marker:
            again = log.append(data, now_ms=clock.now_ms)
            assert (again.base_offset, again.last_offset, again.is_duplicate) == (end, done.last_offset, True)
        last = stored_at(log, end)
        lineage.append(last)
        found.append(last)
    if len(found) == len(line.found):
        return line
    return Line.of(lineage, found)


def _has_forgotten(log: Log, line: Line, batch: Stored) -> bool:
    """Whether nothing but a marker is left of its producer: then Kafka, too, does not know how it goes on."""
    producer_id = read(batch.data).producer_id
    entry = log.producers.entries.get(producer_id)
    full = line.full.producers.get(producer_id)
    return entry is not None and full is not None and entry.last_sequence < 0 <= full.last_sequence


def stored_at(log: Log, offset: int) -> Stored:
    """The batch that begins there."""
    return Stored.of(bytes(log.read(offset, 1, isolation=Isolation.LOG_END).records))


# --------------------------------------------------------------------------------------------------------- compaction


def _clean(log: Log, line: Line, clock: Clock, random: Random) -> Line:
    """It can be compacted, twice, so that tombstones go: nothing comes back, and no last value goes."""
    lineage = list(line.lineage)
    opened_with = line.left
    for number in range(2):
        clock.now_ms += DELETE_RETENTION_MS + 100
        builder = BatchBuilder()
        builder.append(b"after the crash", b"%d" % number, timestamp_ms=clock.now_ms)
        lineage.append(stored_at(log, log.append(builder.build(), now_ms=clock.now_ms).base_offset))
        log.roll()
        log.compact(clock.now_ms + 100)
        line = Line.of(lineage, stored(log), opened_with)
        check_knowledge(log, line, random, is_cleaned=True)
        check_compacted(line, log.segments[-1].base_offset, log.start_offset, log.last_stable_offset)
    return line
