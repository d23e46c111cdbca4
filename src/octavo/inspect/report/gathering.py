"""Summarise all partitions of a data directory, with several processes if there is much to read."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from pathlib import Path
from typing import Final

from octavo.errors import BadDirectory, LogError, OctavoError, Unreadable
from octavo.inspect.kinds import reason_of
from octavo.inspect.report.summary import DirectorySummary, PartitionSummary
from octavo.inspect.report.survey import found_problem, survey_partition
from octavo.inspect.verify import check_directory
from octavo.inspect.verify.tasks import Task, What, find_tasks, sentence_of
from octavo.log.watched.remote_parts import remote_parts
from octavo.records.processors import usable_processors

_WORTH_PROCESSES: Final = 256 << 20  # bytes; a process takes half a second to start
_MOST_PROBLEMS: Final = 1_000  # of the directory's own files

OnBytes = Callable[[int], None]


def find_partitions(path: Path) -> list[Task]:
    """Return the partitions of a data directory; for the folder of one partition, that one.

    Raises `BadDirectory` if `path` is neither, and `Unreadable` if it cannot be listed.
    """
    if not path.is_dir():
        raise BadDirectory(path, "this is no directory" if path.exists() else "there is no such directory")
    try:
        return [task for task in find_tasks(path) if task.what is What.PARTITION]
    except OctavoError:
        raise
    except OSError as error:
        raise Unreadable(path, reason_of(error)) from None


def gather(
    path: Path,
    partitions: list[Task],
    *,
    verify: bool,
    jobs: int | None = None,
    on_bytes: OnBytes | None = None,
) -> DirectorySummary:
    """Summarise the partitions that `find_partitions` has found. One that was deleted meanwhile is left out.

    verify: also look for problems, as `octavo verify` does, which reads every byte
    jobs: how many processes to use; by default one for each core if there is much to read
    on_bytes: called with the number of bytes that were looked at since the last call
    """
    count = jobs if jobs is not None else _jobs_for(sum(task.size for task in partitions))
    if count > 1:
        summaries = list(_by_processes(partitions, count, verify=verify, on_bytes=on_bytes))
    else:
        summaries = [survey_partition(task.path, task.beside, verify=verify, on_bytes=on_bytes) for task in partitions]
    order = {task.path.name: number for number, task in enumerate(partitions)}
    there = sorted((each for each in summaries if not each.is_gone), key=lambda each: order[each.folder])
    is_partition = [task.path for task in partitions] == [path]
    summary = DirectorySummary(path, there, verify)
    folders = {each.folder for each in there}
    parts = remote_parts(path.absolute().parent if is_partition else path)
    summary.remote = [part for part in parts if part.partition.folder in folders]
    if verify and not is_partition:
        _add_own_problems(summary)
    return summary


def _add_own_problems(summary: DirectorySummary) -> None:
    """Find the problems of the directory's own files."""
    try:
        for problem in islice(check_directory(summary.path), _MOST_PROBLEMS):
            summary.other_problems.append(found_problem(problem, problem.file))
    except (OctavoError, OSError) as error:
        summary.failure = sentence_of(error)


def _by_processes(
    partitions: list[Task], count: int, *, verify: bool, on_bytes: OnBytes | None
) -> Iterator[PartitionSummary]:
    """Yield the summaries as they are finished. The largest partitions come first, so that none is waited for alone."""
    tell = on_bytes or (lambda size: None)
    # Not by a fork: a progress bar has a thread, and a fork may copy a lock that it holds.
    pool = ProcessPoolExecutor(count, multiprocessing.get_context("spawn"), _begin_worker)
    tasks = iter(sorted(partitions, key=lambda task: -task.size))
    running: dict[Future[PartitionSummary], Task] = {}
    try:
        while True:
            for task in islice(tasks, 2 * count - len(running)):
                running[pool.submit(survey_partition, task.path, task.beside, verify=verify)] = task
            if not running:
                return
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                tell(running.pop(future).size)
                yield future.result()
    except BrokenProcessPool:
        raise LogError("a process that was reading ended before it was done; it may have been killed") from None
    except BaseException:
        for child in multiprocessing.active_children():
            child.terminate()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _begin_worker() -> None:
    """End without a word at an interrupt: the parent has one to say."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _jobs_for(size: int) -> int:
    return usable_processors() if size >= _WORTH_PROCESSES else 1
