"""Append batches to a log: `Appender`. An append that fails is undone, also in the middle of several batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from octavo.errors import AppendRefused, ErrorCode
from octavo.log.append.readiness import ALLOWANCE, MustWait, prepare
from octavo.log.append.validated import Validated
from octavo.log.config.log_config import LogConfig
from octavo.log.origin import Origin
from octavo.log.segment.batch_span import BatchSpan
from octavo.log.writing.log_state import LogState
from octavo.log.writing.rolling import base_for, roll
from octavo.log.writing.truncation import truncate
from octavo.log.writing.unfinished import SETTLED
from octavo.records.layout import MAX_INT32, NO_OFFSET, Buffer

if TYPE_CHECKING:
    from octavo.log.append.validator import Validator

_NEW: Final = tuple.__new__  # what a named tuple's own constructor does, without a Python call


class Appended(NamedTuple):
    """The offsets of appended batches, or of the duplicate that was found; -1 and -1 if there were no batches."""

    base_offset: int
    last_offset: int
    append_time_ms: int  # -1 unless the topic uses the time of appending; for a duplicate, its largest timestamp
    log_start_offset: int
    is_duplicate: bool = False  # it was appended before, and not again now


class Appender:
    """Appends to one log. The caller holds the log's lock and has called `LogState.check_ready`."""

    def __init__(self, log: LogState) -> None:
        self._log: Final = log
        self._validator: Validator | None = None  # made late: it imports NumPy, which a reader does not need
        self._validates_for: LogConfig | None = None  # the configuration of the validator

    def append(self, batches: Buffer, origin: Origin, now_ms: int) -> Appended:
        """Append as the leader; see `Log.append`."""
        log = self._log
        validator = self._validator
        if validator is None or self._validates_for is not log.config:
            validator = self._make_validator()
        checked = validator.assign(batches, log.view.end_offset, log.leader_epoch, now_ms, origin)
        producers = checked.producers
        if producers:
            duplicate = log.producers.admit(producers, origin)
            if duplicate is not None:
                first, last, timestamp_ms = duplicate.first_offset, duplicate.last_offset, duplicate.timestamp_ms
                return Appended(first, last, timestamp_ms, log.view.start_offset, is_duplicate=True)
        return self._append(checked, now_ms)

    def append_as_follower(self, batches: Buffer, *, leader_epoch: int, covers_gaps: bool = False) -> Appended:
        """Append as a follower; see `Log.append_as_follower`."""
        validator = self._make_validator() if self._validator is None else self._validator
        checked = validator.check(batches, end_offset=self._log.view.end_offset, leader_epoch=leader_epoch)
        return self._append(checked, self._log.clock(), covers_gaps=covers_gaps)

    def _make_validator(self) -> Validator:
        prepare()
        from octavo.log.append.validator import Validator

        config = self._log.config
        self._validator = Validator(config)
        self._validates_for = config  # last: after an exception in between, the next append makes another validator
        return self._validator

    def _append(self, checked: Validated, now_ms: int, *, covers_gaps: bool = False) -> Appended:
        log = self._log
        parts, size, spans, append_time_ms, producers = checked
        view = log.view
        if not spans:
            return Appended(NO_OFFSET, NO_OFFSET, append_time_ms, view.start_offset)
        config, change = log.config, log.change
        if size > config.segment_bytes:
            _check_sizes(spans, config.segment_bytes)
        base_offset, last_offset = spans[0].base_offset, spans[-1].last_offset
        entries = log.epochs.entries
        if not entries or not spans[0].leader_epoch == entries[-1].epoch == spans[-1].leader_epoch:
            self._note_epochs(spans)  # otherwise those in between are the same, because epochs never decrease
        must_roll = log.limits.must_roll(view.segments[-1], size, spans, now_ms)
        if must_roll and ALLOWANCE.left is not None and log.flushing.would_wait(base_offset):
            raise MustWait
        change.unfinished = view.end_offset
        try:
            if not must_roll:
                log.write(parts, size, spans, producers)
            elif (
                size <= config.segment_bytes
                and last_offset - (new_base := base_for(log, spans[0], covers_gaps=covers_gaps)) <= MAX_INT32
            ):
                roll(log, new_base, now_ms)
                log.write(parts, size, spans, producers)
            else:
                self._write_one_by_one(checked, now_ms, covers_gaps=covers_gaps)
        except OSError:
            if change.failure is None:
                if log.view.end_offset != view.end_offset or self._is_ahead():
                    truncate(log, view.end_offset, now_ms)
                change.unfinished = SETTLED
            raise
        except BaseException:
            log.settle()
            raise
        change.unfinished = SETTLED
        if last_offset + 1 - log.segments.recovery_point >= config.flush_messages:
            log.flushing.flush(now_ms)
        return _NEW(Appended, (base_offset, last_offset, append_time_ms, view.start_offset, False))

    def _is_ahead(self) -> bool:
        """Return whether the active segment has bytes that the view lacks. Producer states may include them already."""
        view = self._log.view
        return view.segments[-1].size != view.size

    def _write_one_by_one(self, checked: Validated, now_ms: int, *, covers_gaps: bool) -> None:
        """Write batches that do not fit into one segment together."""
        log = self._log
        data = memoryview(b"".join(checked.parts))
        at = 0
        for span in checked.spans:
            if log.limits.must_roll(log.view.segments[-1], span.size, (span,), now_ms):
                roll(log, base_for(log, span, covers_gaps=covers_gaps), now_ms)
            producers = [batch for batch in checked.producers if batch.base_offset == span.base_offset]
            log.write((data[at : at + span.size],), span.size, (span,), producers)
            at += span.size

    def _note_epochs(self, spans: Sequence[BatchSpan]) -> None:
        """Record the leader epochs of batches before they are written. Messages of magic 0 or 1 clear all epochs.

        A thread with an `ALLOWANCE` does not wait for the disk: `MustWait` is raised.
        """
        if ALLOWANCE.left is not None:
            raise MustWait
        log = self._log
        latest = log.epochs.latest
        known = None if latest is None else latest.epoch
        for span in spans:
            if span.magic < 2:
                log.epochs.clear()
                known = None
            elif span.leader_epoch != known and span.leader_epoch >= 0:
                log.epochs.assign(span.leader_epoch, span.base_offset)
                known = span.leader_epoch
                log.leader_epoch = max(log.leader_epoch, known)


def _check_sizes(spans: Sequence[BatchSpan], limit: int) -> None:
    for span in spans:
        if span.size > limit:
            raise AppendRefused(
                ErrorCode.RECORD_LIST_TOO_LARGE,
                f"a batch of {span.size:,} bytes does not fit into a segment of {limit:,}",
            )
