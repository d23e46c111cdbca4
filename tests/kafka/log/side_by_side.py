"""One log in Kafka and one in Octavo, to which the same is done.

    both = SideBySide(judge, folder, {"internal.segment.bytes": "4096"})
    assert both.append(batch) == Appended(0, 9, -1, 0)        # both said so
    assert both.append(bad) == Refusal(87, (3,))              # both refused, with this code, because of record 3
    both.close()                                              # and now all files are the same

Each method does one thing to both logs and fails where the outcomes, or the logs behind them, are not alike. It returns
the outcome, so that a test can also say which it should be. `now_ms` is the clock of both.

What is not compared: the texts of refusals, what is in files that wait to be deleted (.deleted), and index files while
they are written to, which each pads as it likes. What the logs know of producers: see `producing`.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from octavo.errors import AppendRefused, OctavoError
from octavo.inspect.verify import check_directory, check_partition
from tests.batches import TIME_MS
from tests.kafka.judge import Judge
from tests.kafka.log.files import INDEXES, brief, contents, deleted, fields
from tests.kafka.log.ours import Ours
from tests.kafka.unified_log import (
    Appended,
    Isolation,
    Origin,
    ReadQuestion,
    Refused,
    Segment,
    State,
    TimestampOffset,
    UnifiedLog,
)

T = TypeVar("T")

FOLDER: Final = "topic-0"


class Refusal(NamedTuple):
    """What both answered instead of doing it: Kafka's error code, and which records are to blame."""

    code: int
    records: tuple[int, ...] = ()


class SideBySide:
    """The two logs. `exact` is False where batches are compressed anew, so that sizes may differ."""

    def __init__(
        self,
        judge: Judge,
        folder: Path,
        config: Mapping[str, str] | None = None,
        *,
        now_ms: int = TIME_MS,
        follows_end: bool = True,
        exact: bool = True,
        source: Path | None = None,
        damage: Callable[[Path], object] | None = None,
    ) -> None:
        """Open two logs: new ones, or copies of the partition at `source`, each of them damaged first."""
        self.now_ms = now_ms
        self.kafka_folder: Final = folder / "kafka" / FOLDER
        self.octavo_folder: Final = folder / "octavo" / FOLDER
        self._judge = judge
        self._config = dict(config or {})
        self._follows_end = follows_end
        self._exact = exact
        for target in (self.kafka_folder, self.octavo_folder):
            if source is None:
                target.parent.mkdir(parents=True)
            else:
                shutil.copytree(source.parent, target.parent)
            if damage is not None:
                damage(target)
        self.open()

    def open(self, config: Mapping[str, str] | None = None) -> None:
        """Open both as they were left."""
        self._config.update(config or {})
        self.kafka = UnifiedLog.open(
            self._judge, self.kafka_folder, self._config, clock=self._clock, follows_end=self._follows_end
        )
        self.octavo = Ours.open(self.octavo_folder, self._config, clock=self._clock, follows_end=self._follows_end)
        self.check()

    def close(self) -> dict[str, bytes]:
        """Shut both down; all files must be the same, and are returned."""
        self._do(lambda log: log.close())
        return self.check_files(closed=True)

    def _clock(self) -> int:
        return self.now_ms

    # Writing

    def append(self, batches: bytes, *, origin: Origin = "CLIENT", code: int | None = None) -> Appended | Refusal:
        """Append as the leader. A `code` is put in place of that of any refusal, where it is not to be compared."""
        return self._change(lambda log: log.append(batches, origin=origin), code)

    def append_as_follower(self, batches: bytes) -> Appended | Refusal:
        return self._change(lambda log: log.append_as_follower(batches))

    def roll(self) -> None:
        self._change(lambda log: log.roll())

    def flush(self) -> None:
        self._change(lambda log: log.flush())
        self._do(lambda log: log.recovery_point)

    def truncate_to(self, offset: int) -> Refusal | None:
        return self._change(lambda log: log.truncate_to(offset))

    def delete_records_before(self, offset: int) -> Refusal | None:
        return self._change(lambda log: log.delete_records_before(offset))

    def apply_retention(self) -> list[int] | Refusal:
        return self._change(lambda log: log.apply_retention())

    def delete_files(self) -> None:
        self._change(lambda log: log.delete_files())

    def advance_high_watermark(self, offset: int) -> None:
        self._change(lambda log: log.advance_high_watermark(offset))

    def become_leader(self, epoch: int) -> None:
        self._change(lambda log: log.become_leader(epoch))

    # Reading

    def read(
        self, offset: int, max_bytes: int, isolation: Isolation = "HIGH_WATERMARK", *, at_least_one: bool = True
    ) -> bytes | Refusal:
        (answer,) = self.read_many([ReadQuestion(offset, max_bytes, isolation, at_least_one)])
        return answer

    def read_many(self, questions: Sequence[ReadQuestion]) -> list[bytes | Refusal]:
        answers: list[bytes | Refusal] = []
        for question, told in zip(questions, self.kafka.read_many(questions), strict=True):
            theirs = _refusal(told) if isinstance(told, Refused) else told
            ours = _read(self.octavo, question)
            assert ours == theirs, f"{question}: Octavo {brief(ours)}, Kafka {brief(theirs)}"
            answers.append(theirs)
        return answers

    def read_everything(self, sizes: Iterable[int], isolations: Iterable[Isolation] = ("LOG_END",)) -> None:
        """Read at every offset, and at those around the log, with all these sizes."""
        state = self.kafka.state
        offsets = range(state.start_offset - 2, state.end_offset + 3)
        self.read_many(
            [
                ReadQuestion(offset, size, isolation, at_least_one)
                for isolation in isolations
                for size in sizes
                for at_least_one in (True, False)
                for offset in offsets
            ]
        )

    def offset_for_timestamp(self, timestamp_ms: int) -> TimestampOffset | None:
        return self.offsets_for_timestamps([timestamp_ms])[0]

    def offsets_for_timestamps(self, timestamps_ms: Sequence[int]) -> list[TimestampOffset | None]:
        theirs = self.kafka.offsets_for_timestamps(timestamps_ms)
        for timestamp_ms, told in zip(timestamps_ms, theirs, strict=True):
            ours = self.octavo.offset_for_timestamp(timestamp_ms)
            assert ours == told, f"timestamp {timestamp_ms}: Octavo {ours}, Kafka {told}"
        return theirs

    def max_timestamp_offset(self) -> TimestampOffset | None:
        return self._do(lambda log: log.max_timestamp_offset())

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int] | None:
        return self._do(lambda log: log.end_offset_for_epoch(epoch))

    # Comparing

    @property
    def state(self) -> State:
        """What both say of themselves."""
        return self.check()

    @property
    def segments(self) -> list[int]:
        """The base offsets."""
        return [segment.base_offset for segment in self.state.segments]

    @property
    def epochs(self) -> list[tuple[int, int]]:
        """Each leader epoch and where it starts."""
        return self._do(lambda log: log.epochs)

    def check(self) -> State:
        """Both say the same of themselves; what Kafka says."""
        ours, theirs = self.octavo.state, self.kafka.state
        if not self._exact:
            ours, theirs = (
                state._replace(segments=tuple(Segment(base, 0) for base, _ in state.segments))
                for state in (ours, theirs)
            )
        assert ours == theirs, f"\nOctavo {ours}\nKafka  {theirs}"
        return theirs

    @property
    def deleted(self) -> list[str]:
        """Names of the segments that wait for their end. Kafka lets also empty ones wait, which we use or remove."""
        ours, theirs = deleted(self.octavo_folder), deleted(self.kafka_folder)
        assert set(ours) <= set(theirs), f"Octavo {ours}, Kafka {theirs}"
        return theirs

    def check_files(self, *, closed: bool = False) -> dict[str, bytes]:
        """Both have the same files; Kafka's. Indexes are looked at only in logs that are closed."""
        ours, theirs = (contents(folder, closed) for folder in (self.octavo_folder, self.kafka_folder))
        assert sorted(ours) == sorted(theirs), f"Octavo {sorted(ours)}, Kafka {sorted(theirs)}"
        for name, data in theirs.items():
            if self._exact or not name.endswith((".log", *INDEXES)):
                assert ours[name] == data, f"{name}: Octavo {brief(ours[name])}, Kafka {brief(data)}"
            elif name.endswith(".log"):
                assert fields(ours[name]) == fields(data), name
        return theirs

    def check_sound(self) -> None:
        """`octavo verify` finds nothing wrong in either directory, however it was left."""
        for folder in (self.kafka_folder, self.octavo_folder):
            assert [*check_directory(folder.parent), *check_partition(folder)] == []

    def _change(self, action: Callable[[Any], T], code: int | None = None) -> T | Any:
        outcome = self._do(action, code)
        self.check()
        return outcome

    def _do(self, action: Callable[[Any], T], code: int | None = None) -> T | Any:
        theirs, their_reason = outcome_of(lambda: action(self.kafka))
        ours, our_reason = outcome_of(lambda: action(self.octavo))
        if code is not None:
            theirs, ours = (Refusal(code) if isinstance(outcome, Refusal) else outcome for outcome in (theirs, ours))
        assert ours == theirs, f"Octavo {ours} {our_reason}, Kafka {theirs} {their_reason}"
        return theirs


def outcome_of(action: Callable[[], T]) -> tuple[T | Refusal, str]:
    """What came of it, and the text of a refusal."""
    try:
        return action(), ""
    except Refused as refused:
        return _refusal(refused), str(refused)
    except OctavoError as error:
        records = error.record_errors if isinstance(error, AppendRefused) else ()
        return Refusal(int(getattr(error, "code", -1)), tuple(index for index, _ in records)), str(error)


def _read(log: Ours, question: ReadQuestion) -> bytes | Refusal:
    offset, max_bytes, isolation, at_least_one = question
    return outcome_of(lambda: log.read(offset, max_bytes, isolation=isolation, at_least_one=at_least_one))[0]


def _refusal(refused: Refused) -> Refusal:
    return Refusal(refused.code, tuple(index for index, _ in refused.records))
