"""One log in Kafka and one in Octavo, with producers, and with the cleaner.

    both = Producing(judge, folder)
    assert both.append(batch) == Appended(0, 9, -1, 0)         # and both know the same of who sent it
    both.read_committed((1, 1000))                             # the same parts, with the same aborted transactions
    both.close()                                               # the same snapshots

    both = Compacting(judge, folder, source=log)
    both.compact(map_memory=2400)                              # the same segments, with the same batches

As `SideBySide`, whose methods compare in addition what the logs know of producers and their transactions.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from octavo.log.producer_state.snapshot import read_snapshot
from octavo.log.storage import DISK
from octavo.records import read_batches
from tests.kafka.log.files import fields
from tests.kafka.log.ours import states_of
from tests.kafka.log.side_by_side import Refusal, SideBySide, outcome_of
from tests.kafka.log_answers import Cleanable, Cleaned, Part, Producers, ProducerState, ReadQuestion, Refused, State
from tests.kafka.unified_log import read_snapshot as read_kafka_snapshot


class Producing(SideBySide):
    """The two logs, whose producers are compared."""

    may_lack_snapshots = False  # we, of some that Kafka has

    def __init__(self, *given: Any, remembers_more: bool = False, **options: Any) -> None:
        """As `SideBySide`. `remembers_more`: of a producer's last batches one may know more than the other."""
        self._remembers_more = remembers_more
        super().__init__(*given, **options)

    def truncate_to(self, offset: int) -> Refusal | None:
        """As `SideBySide`. Of a producer's last batches Kafka then knows one alone, and we may know more."""
        self._remembers_more = True
        if self._follows_end:
            return super().truncate_to(offset)
        outcome: Refusal | None = self._do(lambda log: log.truncate_to(offset))
        # Kafka looks what is unstable in what is left only with the next change, such as this one of nothing.
        self.advance_high_watermark(self.kafka.high_watermark)
        return outcome

    def reopen(self) -> None:
        """Shut both down and open them again: both then know one batch of each producer."""
        self.close()
        self.check_sound()
        self._remembers_more = False
        self.open()

    def swap(self) -> None:
        """Let Kafka have what we left behind, and us what it left. For logs that are closed."""
        kafka, octavo = self.kafka_folder.parent, self.octavo_folder.parent
        aside = kafka.with_name("aside")
        kafka.rename(aside)
        octavo.rename(kafka)
        aside.rename(octavo)

    def crash(self) -> None:
        """Open both on what their files were when nobody had closed them. Of batches see `truncate_to`."""
        self._remembers_more = True
        folders = (self.kafka_folder.parent, self.octavo_folder.parent)
        for folder in folders:
            shutil.copytree(folder, folder.with_name(folder.name + "-crashed"))
        self.kafka.abandon()
        self.octavo.close()
        for folder in folders:
            shutil.rmtree(folder)
            folder.with_name(folder.name + "-crashed").rename(folder)
        self.check_sound()
        self.open()

    def expire_producers(self) -> None:
        self._change(lambda log: log.expire_producers())

    @property
    def producers(self) -> Producers:
        """What both know."""
        return self._do(lambda log: log.producers)

    def producer(self, producer_id: int) -> ProducerState | None:
        """What both know of one."""
        return next((state for state in self.producers.states if state.producer_id == producer_id), None)

    def check(self) -> State:
        ours, theirs = self.octavo.producers, self.kafka.producers
        if self._remembers_more:
            ours, theirs = (known._replace(states=tuple(map(_last_alone, known.states))) for known in (ours, theirs))
        for name, mine, told in zip(Producers._fields, ours, theirs, strict=True):
            assert mine == told, f"{name}\nOctavo {mine}\nKafka  {told}"
        return super().check()

    def read_committed(self, sizes: Iterable[int]) -> None:
        """Read at every offset with all these sizes: the same bytes, and the same to be left out of them.

        Where batches are compressed anew they are of other sizes: then only a size of 1 is meant to be the same.
        """
        state = self.kafka.state
        questions = [
            ReadQuestion(offset, size, "TXN_COMMITTED", at_least_one)
            for size in sizes
            for at_least_one in (True, False)
            for offset in range(state.start_offset, state.end_offset + 2)
        ]
        for question, told in zip(questions, self.kafka.read_parts(questions), strict=True):
            ours = outcome_of(lambda: self.octavo.read_part(*question))[0]  # noqa: B023 (called at once)
            if isinstance(told, Refused):
                assert not isinstance(ours, Part), question
                assert ours.code == told.code, question
                continue
            assert isinstance(ours, Part), f"{question}: Octavo {ours}"
            if self._exact:
                assert ours.records == told.records, question
            else:
                assert fields(ours.records) == fields(told.records), question
            _check_aborted(question, ours, told)

    def check_files(self, *, closed: bool = False) -> dict[str, bytes]:
        ours, theirs = self._snapshots(self.octavo_folder), self._snapshots(self.kafka_folder)
        if self.may_lack_snapshots:
            theirs = {name: states for name, states in theirs.items() if name in ours}
        assert ours.keys() == theirs.keys(), f"snapshots: Octavo {sorted(ours)}, Kafka {sorted(theirs)}"
        for name, told in theirs.items():
            assert ours[name] == told, f"{name}\nOctavo {ours[name]}\nKafka  {told}"
        return super().check_files(closed=closed)

    def _snapshots(self, folder: Path) -> dict[str, tuple[ProducerState, ...]]:
        """What is in each snapshot; Kafka and we read the same in it."""
        found = {}
        for path in sorted(folder.glob("*.snapshot")):
            told = read_kafka_snapshot(self._judge, path)
            assert states_of(read_snapshot(DISK, path)) == told
            found[path.name] = told
        return found


def _check_aborted(question: ReadQuestion, ours: Part, told: Part) -> None:
    """Both name the aborted transactions in the records. Kafka may go on to where its index has the next batch but one,
    by how it searches there, and so name some that only begin behind them."""
    assert ours.aborted is not None
    assert told.aborted is not None
    assert set(ours.aborted) <= set(told.aborted), f"{question}: Octavo {ours.aborted}, Kafka {told.aborted}"
    end = max((batch.next_offset for batch in read_batches(ours.records)), default=question.offset)
    missing = set(told.aborted) - set(ours.aborted)
    assert all(first >= end for _, first in missing), f"{question}: Octavo {ours.aborted}, Kafka {told.aborted}"


def _last_alone(state: ProducerState) -> ProducerState:
    """A producer without its earlier batches, and without the time of the last, which a snapshot does not tell."""
    return state._replace(batches=tuple(batch._replace(timestamp_ms=0) for batch in state.batches[-1:]))


class Compacting(Producing):
    """The two logs, which are compacted."""

    def compact(self, map_memory: int = 1 << 20) -> Cleaned | None:
        """One pass of the cleaner; what it did, or None where it had nothing to do."""
        for folder in (self.kafka_folder, self.octavo_folder):
            self._age(folder)
        theirs, ours = map(self._comparable, (self.kafka.compact(map_memory), self.octavo.compact(map_memory)))
        assert ours == theirs, f"\nOctavo {ours}\nKafka  {theirs}"
        self.delete_files()
        self.check()
        self.check_files()
        return theirs

    def _comparable(self, done: Cleaned | None) -> Cleaned | None:
        """Without what each counts in its own way: of the batch in which the map got full, and the one it begins in."""
        if done is None:
            return None
        done = done._replace(map_messages_read=0)
        return done if self._exact else done._replace(bytes_read=0, bytes_written=0)

    def compact_all(self, map_memory: int = 1 << 20) -> int:
        """As many passes as it takes; their number."""
        passes = 0
        while self.compact(map_memory) is not None:
            passes += 1
        return passes

    def check_cleanable(self) -> Cleanable:
        """Both see the same to be cleaned; what Kafka sees."""
        for folder in (self.kafka_folder, self.octavo_folder):
            self._age(folder)
        checkpoint = _cleaner_offset(self.kafka_folder.parent)
        theirs, ours = self.kafka.cleanable(checkpoint), self.octavo.cleanable
        assert ours == theirs, f"\nOctavo {ours}\nKafka  {theirs}"
        return theirs

    def check_files(self, *, closed: bool = False) -> dict[str, bytes]:
        ours, theirs = (_cleaner_offset(folder.parent) for folder in (self.octavo_folder, self.kafka_folder))
        assert ours == theirs, f"cleaner-offset-checkpoint: Octavo {ours}, Kafka {theirs}"
        return super().check_files(closed=closed)

    def _age(self, folder: Path) -> None:
        """Have files that were written in this very test be as old as its clock says."""
        for path in folder.glob("*.log"):
            if path.stat().st_mtime_ns > self.now_ms * 1_000_000:
                os.utime(path, (self.now_ms / 1000, self.now_ms / 1000))


def _cleaner_offset(folder: Path) -> int | None:
    path = folder / "cleaner-offset-checkpoint"
    lines = path.read_text().split("\n")[2:-1] if path.exists() else []
    return int(lines[0].split()[2]) if lines else None
