"""Crash a log and recover it.

First, a process is killed with SIGKILL while it appends. That alone loses nothing, because the appended bytes are in
the page cache. Then the demo damages the ends of files as a power cut would, since no demo can cut the power.
"""

from __future__ import annotations

import itertools
import logging
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

from octavo.cli.demo.keeping import order_batch
from octavo.cli.demo.stage import Stage, table
from octavo.errors import LogError
from octavo.log import DataDirectory
from octavo.log.names import TopicPartition
from octavo.log.recovery_report import RecoveryReport
from octavo.records import read_batches

APPENDS: Final = 100  # the number of appends that the process reports before it is killed


class Report(NamedTuple):
    """An append that the process reported: its partition and last offset."""

    partition: TopicPartition
    last_offset: int


class Damage(NamedTuple):
    """A way to damage the end of a partition's last segment: a description, and the function that does it."""

    what: str
    do: Callable[[Path], None]


def show(stage: Stage, folder: Path) -> None:
    """Kill a process that appends to the logs, damage the ends of their files, and show how they are recovered."""
    logging.getLogger("octavo.log").addHandler(logging.NullHandler())  # what it tells of is shown here
    stage.chapter("Crash: kill the writer, then do what a power cut does")
    with stage.waiting("Another process appends to the directory ..."):
        reported, code = kill_a_writer(folder)
    before = _end_offsets(folder)
    there = sum(last < before[partition] for partition, last in reported)
    stage.say(
        f"A process appended to all four partitions until [bold]{signal.Signals(-code).name}[/] ended it. Of the "
        f"{len(reported)} appends that had returned by then, {there} are there: they are in the page cache, which "
        "outlives a process. It does not outlive a power cut, and this is what one may leave of the last batches, done "
        "by hand:"
    )
    done = damage(folder)
    with DataDirectory.open(folder) as data:
        _tell(stage, data, done, before)
    with DataDirectory.open(folder) as data:
        stage.say(f"Closed and opened once more: [bold]{data.log('orders', 1).recovery}[/].")


def _tell(
    stage: Stage, data: DataDirectory, done: dict[TopicPartition, Damage], before: dict[TopicPartition, int]
) -> None:
    """Show what recovery found and did. Then append, to show that the logs can be written again."""
    drawn = table("partition", "its last file", "recovery", "records", right=("records",))
    for partition, (what, _) in done.items():
        log = data.log(*partition)
        left = sum(1 for _ in log.reader().records())
        drawn.add_row(str(partition), what, _said(log.recovery), f"{left} of {before[partition]}")
    stage.show(drawn)
    stage.code("for report in DataDirectory.open(folder).reports: ...")
    checked = sum(report.segments_checked for report in data.reports)
    segments = sum(report.segments for report in data.reports)
    appended = data.log("orders", 1).append(order_batch(0))
    stage.say(
        f"Checked was what lies after the recovery points, {checked} of {segments} segments, and their indexes were "
        "built anew. The logs end with their last sound batch, and go on from there: the next of orders-1 got offset "
        f"{appended.base_offset}."
    )


def kill_a_writer(folder: Path) -> tuple[list[Report], int]:
    """Start a process that appends, and kill it. Return the appends that it reported, and its exit code."""
    command = [sys.executable, "-m", "octavo.cli.demo.victim", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        assert writer.stderr is not None
        try:
            lines = list(itertools.islice(writer.stdout, APPENDS))
        finally:
            writer.kill()
        lines += writer.stdout
        problem = writer.stderr.read().strip().rpartition("\n")[2]
    if writer.returncode != -signal.SIGKILL:
        raise LogError(f"the process that was to be killed ended by itself: {problem}")
    return [_report(line) for line in lines if line.endswith("\n")], writer.returncode


def _report(line: str) -> Report:
    topic, partition, last_offset = line.split()
    return Report(TopicPartition(topic, int(partition)), int(last_offset))


def _end_offsets(folder: Path) -> dict[TopicPartition, int]:
    """Return the log end offset of each partition. The directory is opened read-only, so that nothing is recovered."""
    with DataDirectory.open(folder, read_only=True) as data:
        return {partition: data.log(*partition).end_offset for partition in data.partitions()}


def damage(folder: Path) -> dict[TopicPartition, Damage]:
    """Damage the last segment of three partitions, each in another way; return the damage of each partition."""
    damages = {
        TopicPartition("orders", 0): Damage("as the kill left it", lambda path: None),
        TopicPartition("orders", 1): Damage("a cut tail: 300 bytes never came to the disk", _cut),
        TopicPartition("returns", 0): Damage("zeros: the length came to the disk, the data did not", _zeros),
        TopicPartition("returns", 1): Damage("garbage, for the same reason", _garbage),
    }
    for partition, (_, do) in damages.items():
        do(max(path for path in (folder / partition.folder).glob("*.log") if path.stat().st_size))
    return damages


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-300])


def _zeros(path: Path) -> None:
    data = path.read_bytes()
    last = [batch.position for batch in read_batches(data)][-1]
    path.write_bytes(data[:last] + bytes(len(data) - last))


def _garbage(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:-300] + Random(1917).randbytes(300))


def _said(report: RecoveryReport) -> str:
    if not report.cuts:
        return "[green]all sound, nothing cut[/]"
    (cut,) = report.cuts
    return f"[yellow]{cut.size:,} bytes cut at {cut.position:,}:[/] {cut.reason}"
