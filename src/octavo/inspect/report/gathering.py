"""Summarise all partitions of a data directory, with several processes if there is much to read."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final

from octavo.errors import BadDirectory
from octavo.inspect.report.summary import DirectorySummary, FoundProblem, PartitionSummary
from octavo.inspect.report.survey import survey_partition
from octavo.log.names import LOG, base_offset_of

_WORTH_PROCESSES: Final = 256 << 20  # bytes; a process takes half a second to start
_MOST_PROBLEMS: Final = 1_000  # of the directory's own files

OnBytes = Callable[[int], None]


def find_folders(path: Path) -> list[Path]:
    """Return the folders of partitions in a data directory; for the folder of one partition, that one.

    Raises `BadDirectory` if there is none, and `OSError` if `path` cannot be listed.
    """
    from octavo.inspect.verify import partition_folders

    if not path.is_dir():
        raise BadDirectory(path, "this is no directory" if path.exists() else "there is no such directory")
    folders = partition_folders(path)
    if folders:
        return folders
    with os.scandir(path) as entries:
        if any(entry.name.endswith(LOG) and base_offset_of(entry.name) is not None for entry in entries):
            return [path]
    raise BadDirectory(path, "there is no folder of a partition in it, such as events-0")


def sizes_of(folders: list[Path]) -> dict[Path, int]:
    """Return how many bytes the segments of each partition have."""
    return {folder: sum(_log_sizes(folder)) for folder in folders}


def gather(
    path: Path, sizes: dict[Path, int], *, verify: bool, processes: int | None = None, on_bytes: OnBytes | None = None
) -> DirectorySummary:
    """Summarise the partitions whose sizes are given.

    verify: also look for problems, as `octavo verify` does, which reads every byte
    processes: how many to use; by default one for each core if there is much to read
    on_bytes: called with the number of bytes that were looked at since the last call
    """
    count = processes if processes is not None else _processes_for(sum(sizes.values()))
    if count > 1:
        partitions = list(_by_processes(sizes, count, verify=verify, on_bytes=on_bytes))
    else:
        partitions = [survey_partition(folder, verify=verify, on_bytes=on_bytes) for folder in sizes]
    order = {folder.name: number for number, folder in enumerate(sizes)}
    partitions.sort(key=lambda each: order[each.folder])
    own = list(_own_problems(path)) if verify and path not in sizes else []
    return DirectorySummary(path, partitions, verify, own)


def _own_problems(path: Path) -> Iterator[FoundProblem]:
    from octavo.inspect.verify import check_directory

    for problem in islice(check_directory(path), _MOST_PROBLEMS):
        rule = problem.rule
        yield FoundProblem(
            problem.file, problem.position, problem.offset, rule.name, problem.found, rule.means, rule.repair
        )


def _by_processes(
    sizes: dict[Path, int], count: int, *, verify: bool, on_bytes: OnBytes | None
) -> Iterator[PartitionSummary]:
    """Yield the summaries as they are finished. The largest partitions come first, so that none is waited for alone."""
    tell = on_bytes or (lambda size: None)
    # Not by a fork: the caller may have threads, and a progress bar has one.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(count, mp_context=context) as pool:
        folders = iter(sorted(sizes, key=lambda folder: -sizes[folder]))
        work = partial(survey_partition, verify=verify)
        running: dict[Future[PartitionSummary], Path] = {}
        try:
            while True:
                for folder in islice(folders, 2 * count - len(running)):
                    running[pool.submit(work, folder)] = folder
                if not running:
                    return
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    tell(sizes[running.pop(future)])
                    yield future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _processes_for(size: int) -> int:
    return len(os.sched_getaffinity(0)) if size >= _WORTH_PROCESSES else 1


def _log_sizes(folder: Path) -> Iterator[int]:
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.endswith(LOG) and entry.is_file(follow_symlinks=False):
                    yield entry.stat(follow_symlinks=False).st_size
    except OSError:
        return  # the survey says why
