"""`octavo salvage`: a new, valid partition from damaged ones."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from octavo.cli.exits import DAMAGE_FOUND, FINE
from octavo.cli.progress import progress
from octavo.cli.tell import let_go_of_output, tell

if TYPE_CHECKING:
    from octavo.inspect.salvage import PartitionReport, SalvageReport
    from octavo.inspect.salvage.report import DamagedBytes, LostOffsets

_DESCRIPTION: Final = """\
Makes a new partition of what is sound in a damaged one. Every batch whose checksum is right is kept, with its offset.
What is lost is listed, by offsets and bytes. Indexes, producer snapshots, leader epochs and partition.metadata are made
anew. The source is only read, and no lock is taken: stop the broker first, or salvage a copy.

SOURCE is the folder of a partition, or a data directory, whose partitions are salvaged one after the other. Several
sources are replicas. The one with the highest last leader epoch leads, and the others fill what is damaged in it. What
they have after the offset where their histories part is listed, and not mixed in.

TARGET becomes the folder of the partition, or the data directory. It has to be new, or an empty folder. It appears
when everything is done and on the disk; an interrupted salvage leaves nothing.
"""

_EPILOG: Final = """\
examples:
  octavo salvage /data/kafka/orders-0 /safe/orders-0
  octavo salvage broker1/orders-0 broker2/orders-0 broker3/orders-0 /safe/orders-0
  octavo salvage /data/kafka /safe/kafka --abort-open --json > report.json

Exit codes: 0 nothing was lost, 1 something was lost, 2 could not run, 130 interrupted.
"""

_SHOWN: Final = 20  # lines of one kind; the others are only counted


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `octavo salvage` and its options to the parser."""
    parser = commands.add_parser(
        "salvage",
        help="make a valid partition of a damaged one",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("sources", metavar="SOURCE", nargs="+", type=Path, help="a partition or a data directory")
    parser.add_argument("target", metavar="TARGET", type=Path, help="the new partition or data directory")
    parser.add_argument(
        "--abort-open",
        action="store_true",
        help="end transactions that have no marker, so that readers of committed data do not wait for them for ever",
    )
    parser.add_argument("--json", action="store_true", help="print the whole report as one JSON object")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Salvage, and print the report."""
    from octavo.inspect.salvage import salvage

    with ExitStack() as stack:
        stack.enter_context(_terminable())
        bar = None

        def advance(done: int, total: int) -> None:
            nonlocal bar
            if bar is None:
                bar = stack.enter_context(progress(total, at_terminal=True))
            bar(done)

        report = salvage(arguments.sources, arguments.target, abort_open=arguments.abort_open, on_progress=advance)
    try:
        if arguments.json:
            print(json.dumps(report.to_json()))
        else:
            _print(report)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:  # the target is there, so that this is not a salvage that could not run
        let_go_of_output()
        lost = "something" if report.has_lost else "nothing"
        problem = f"{arguments.target} is there, and {lost} is lost, but the report could not be written"
        tell(f"{problem}: {error.strerror}")
    return DAMAGE_FOUND if report.has_lost else FINE


@contextmanager
def _terminable() -> Iterator[None]:
    """Let SIGTERM and SIGHUP interrupt the work as Ctrl+C does, so that nothing is left of it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [each for each in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(each) != signal.SIG_IGN]  # nohup
    before = {number: signal.signal(number, signal.default_int_handler) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _print(report: SalvageReport) -> None:
    for partition in report.partitions:
        for line in _lines(partition):
            print(line)
    if len(report.partitions) > 1:
        damaged = sum(partition.has_lost for partition in report.partitions)
        print(f"{len(report.partitions)} partitions, {damaged} of them with losses")


def _lines(report: PartitionReport) -> Iterator[str]:
    yield f"{report.partition} -> {report.target}"
    offsets = f"offsets {report.start_offset:,} to {report.end_offset - 1:,}"
    kept = f"{report.batches:,} batches, {report.bytes:,} bytes, {report.segments} segment(s)"
    yield f"  kept      {kept}, {offsets if report.batches else 'no records'}"
    if len(report.sources) > 1:
        leading = next(source for source in report.sources if source.leads)
        yield f"  leads     {leading.path}, with leader epoch {leading.last_epoch}"
    lost = [f"offsets {_range(each)}{_count(each)}" for each in report.lost]
    yield from _several("lost", lost or ["nothing" if not report.has_lost else "no offsets of the log that leads"])
    yield from _several("damaged", [_damaged(each) for each in report.damage])
    yield from _several(
        "left out",
        [
            f"{each.file} at byte {each.position:,}: {each.batches:,} batch(es), offsets {each.first_offset:,} to "
            f"{each.last_offset:,}: {each.reason}"
            for each in report.left_out
        ],
    )
    yield from _several(
        "restored",
        [
            f"{each.file} at byte {each.position:,}: the {each.field} was {each.was}, now {each.now}"
            for each in report.restored
        ],
    )
    yield from _several("gaps", [f"offsets {_range(each)}: missing in a compacted log" for each in report.gaps])
    yield from _transactions(report)
    ignored = [
        f"{source.path / name}: not part of the log" for source in report.sources for name in source.ignored_files
    ]
    yield from _several("ignored", ignored)
    if report.log_start_offset is not None:
        yield f"  note      the log starts at {report.log_start_offset:,}, by log-start-offset-checkpoint"


def _transactions(report: PartitionReport) -> Iterator[str]:
    for each in report.open_transactions[:_SHOWN]:
        what = "aborted at the end of the log" if each.is_aborted else "has no marker"
        yield f"  open      transaction of producer {each.producer_id} from offset {each.first_offset:,}: {what}"
    if len(report.open_transactions) > _SHOWN:
        yield f"  open      and {len(report.open_transactions) - _SHOWN:,} more (--json lists all)"
    if report.read_committed_stops_at is not None:
        stop = f"read_committed stops for ever at offset {report.read_committed_stops_at:,}"
        yield f"  open      {stop}, unless the transaction's coordinator ends it (--abort-open ends it)"
    doubtful = [
        f"producer {each.producer_id}, offsets {each.first_offset:,} to {each.marker_offset:,}, "
        f"{'committed' if each.is_committed else 'aborted'}: offsets {_range(each.lost)} are lost in it"
        for each in report.doubtful_transactions
    ]
    yield from _several("doubtful", doubtful)


def _several(label: str, texts: Sequence[str]) -> Iterator[str]:
    for text in texts[:_SHOWN]:
        yield f"  {label:<9} {text}"
    if len(texts) > _SHOWN:
        yield f"  {label:<9} and {len(texts) - _SHOWN:,} more (--json lists all)"


def _range(lost: LostOffsets) -> str:
    if lost.last_offset is None:
        return f"from {lost.first_offset:,} on"
    if lost.last_offset == lost.first_offset:
        return f"{lost.first_offset:,}"
    return f"{lost.first_offset:,} to {lost.last_offset:,}"


def _count(lost: LostOffsets) -> str:
    return "" if lost.last_offset is None else f" ({lost.last_offset - lost.first_offset + 1:,})"


def _damaged(damage: DamagedBytes) -> str:
    what = "lost" if damage.is_lost else "nothing is lost with them"
    return f"{damage.file} at byte {damage.position:,}, {damage.size:,} bytes ({what}): {damage.rule}"
