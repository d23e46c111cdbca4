"""A process is killed under load: everything that `append` returned is there."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import IO, Final

import pytest

from octavo.log import DataDirectory
from octavo.records import Record, read_batches
from tests.crash.child import PARTITIONS, TOPIC, value_of
from tests.crash.workload import stored
from tests.soak.plugin import Soak
from tests.unit.log.waiting import until

KILLS: Final = 10
LONGEST_S: Final = 0.5
FEW: Final = 100


class Reports:
    """What the processes said of one directory, before each of them was killed."""

    def __init__(self) -> None:
        self.appended: list[dict[int, str]] = [{} for _ in range(PARTITIONS)]  # offset to key
        self.may_start_at = [0] * PARTITIONS

    def take(self, line: bytes) -> None:
        match line.decode().split():
            case ["append", partition, offset, key]:
                self.appended[int(partition)][int(offset)] = key
            case ["delete", partition, offset]:
                self.may_start_at[int(partition)] = max(self.may_start_at[int(partition)], int(offset))
            case words:
                raise AssertionError(words)

    def check(self, partition: int, records: list[Record], start: int) -> None:
        """All that was reported is among what the partition holds, and what it holds is sound."""
        assert start <= self.may_start_at[partition]
        offsets = [record.offset for record in records]  # none, if the process was killed before it wrote any
        begin = offsets[0] if offsets else start
        assert offsets == list(range(begin, begin + len(offsets)))
        keys = {}
        for record in records:
            assert record.key is not None
            keys[record.offset] = record.key.decode()
            assert record.value == value_of(keys[record.offset])
        assert len(set(keys.values())) == len(keys), "something is there twice"
        first = self.may_start_at[partition]
        missing = {at: key for at, key in self.appended[partition].items() if at >= first and keys.get(at) != key}
        assert not missing


def load_and_kill(folder: Path, run: int, reports: Reports, random: Random) -> int:
    """Start the load, kill it at some moment; how much it had reported."""
    command = [sys.executable, "-m", "tests.crash.child", str(folder), str(run)]
    lines: list[bytes] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        reader = threading.Thread(target=_read, args=(child.stdout, lines))
        started = child.stdout.readline()
        lines.append(started)
        reader.start()
        reader.join(random.uniform(0, LONGEST_S))
        enough = random.randrange(FEW)  # which a slow machine may not have done by now
        until(lambda: len(lines) >= enough or not reader.is_alive())
        child.kill()
        reader.join()
        errors = child.stderr.read().decode()
    assert child.returncode == -9, errors
    assert not errors
    for line in lines:
        if line.endswith(b"\n"):
            reports.take(line)
    return len(lines)


def _read(pipe: IO[bytes], lines: list[bytes]) -> None:
    for line in pipe:
        lines.append(line)  # noqa: PERF402 (another thread looks at how many there are)


def check(folder: Path, reports: Reports, run: int) -> None:
    """Look at the directory; every other time without recovering it, so that the next process has to."""
    look = DataDirectory.open(folder, read_only=True) if run % 2 else DataDirectory.open(folder)
    with look:
        for partition in range(PARTITIONS):
            log = look.log(TOPIC, partition)
            records = [record for batch in stored(log) for record in next(iter(read_batches(batch.data)))]
            try:
                reports.check(partition, records, log.start_offset)
            except AssertionError as error:
                error.add_note(f"run {run}, partition {partition}")
                raise


def kill_often(folder: Path, runs: Iterable[int], seed: int) -> None:
    reports = Reports()
    random = Random(seed)
    folder.mkdir()
    kills = 0
    for run in runs:
        load_and_kill(folder, run, reports, random)
        check(folder, reports, run)
        kills += 1
    assert sum(map(len, reports.appended)) > 20 * kills


def test_what_append_returned_survives_a_kill(tmp_path: Path) -> None:
    kill_often(tmp_path / "data", range(KILLS), 1)


@pytest.mark.soak
def test_what_append_returned_survives_many_kills(tmp_path: Path, soak: Soak) -> None:
    kill_often(tmp_path / "data", soak.rounds(), soak.seed)
