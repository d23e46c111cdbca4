"""Divide what is to be checked into tasks, and run these in several processes."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any, Final, NamedTuple

from octavo.errors import BadDirectory, LogError, OctavoError
from octavo.inspect.kinds import is_partition_folder, reason_of
from octavo.inspect.open_transactions import notes
from octavo.inspect.verify.directory import check_directory, partition_folders
from octavo.inspect.verify.folder import Folder
from octavo.inspect.verify.partition import OnBytes, check_partition
from octavo.inspect.verify.problem import Problem
from octavo.inspect.verify.single_file import check_file
from octavo.inspect.verify.surroundings import CHECKPOINTS, DirectoryNotes, Surroundings
from octavo.log.names import LOG, META_PROPERTIES, TopicPartition

_LOOK_S: Final = 0.1  # between two reports of progress
_METHOD: Final = "fork" if sys.platform == "linux" else "spawn"  # macOS has libraries that do not survive a fork


class What(Enum):
    """What a task checks."""

    FILE = "file"
    PARTITION = "partition"
    DIRECTORY = "directory"  # its own files, without the partitions


@dataclass(frozen=True)
class Task:
    """Something to be checked by one process."""

    what: What
    path: Path
    size: int = 0  # of the segments in it
    beside: Surroundings | None = None  # of a partition whose directory was read already


class Checked(NamedTuple):
    """The outcome of a task."""

    task: Task
    problems: list[Problem]
    error: str | None  # why it could not be checked, as a sentence
    notes: Sequence[str] = ()  # what is no problem, and still keeps readers from records


def find_tasks(path: Path) -> list[Task]:
    """Return what is to be checked at a path: a file, a partition folder, or a data directory with its partitions.

    Raises `BadDirectory` for a folder that is neither, and `OSError` if there is nothing.
    """
    if not path.is_dir():
        return [Task(What.FILE, path, path.stat().st_size)]
    listing, partitions = Folder(path), partition_folders(path)
    if listing.segments:
        return [_partition(path, None)]
    if not partitions and not any(name in listing.entries for name in (META_PROPERTIES, *CHECKPOINTS)):
        if is_partition_folder(path):  # a data directory may have such a name, too, like kafka-logs-1
            return [_partition(path, None)]
        raise BadDirectory(path, "there is no partition in it, and no file of a data directory")
    notes = DirectoryNotes(path)
    return [
        Task(What.DIRECTORY, path),
        *(_partition(folder, notes.of(TopicPartition.parse(folder.name))) for folder in partitions),
    ]


def _partition(path: Path, beside: Surroundings | None) -> Task:
    try:
        size = sum(entry.size for name, entry in Folder(path).files.items() if name.endswith(LOG))
    except OSError:  # the folder was deleted meanwhile, or cannot be read, which the task will find
        size = 0
    return Task(What.PARTITION, path, size, beside)


def check(task: Task, ignore: Collection[str] = (), on_bytes: OnBytes | None = None) -> Checked:
    """Run one task here. The files of the problems are paths that begin like that of the task."""
    folder = task.path.parent if task.what is What.FILE else task.path
    try:
        if task.what is What.FILE:
            found = check_file(task.path, ignore=ignore, on_bytes=on_bytes)
        elif task.what is What.PARTITION:
            found = check_partition(task.path, beside=task.beside, ignore=ignore, on_bytes=on_bytes)
        else:
            found = check_directory(task.path, ignore=ignore)
        problems = [_with_folder(problem, folder) for problem in found]
    except FileNotFoundError as error:
        if task.what is What.PARTITION and task.beside is not None and not task.path.exists():
            return Checked(task, [], None)  # the topic was deleted meanwhile
        return Checked(task, [], sentence_of(error))
    except (OctavoError, OSError) as error:
        return Checked(task, [], sentence_of(error))
    return Checked(task, problems, None, list(notes(task.path)) if task.what is What.PARTITION else ())


def _with_folder(problem: Problem, folder: Path) -> Problem:
    # A problem of a partition may be in a file of its data directory.
    above = problem.file.removeprefix("../")
    path = folder / problem.file if above == problem.file else Path(os.path.normpath(folder / "..")) / above
    return replace(problem, file=str(path))


def sentence_of(error: OctavoError | OSError) -> str:
    """Return why something could not be read, without the number of the error."""
    if isinstance(error, OSError) and error.filename is not None:
        return f"{os.fsdecode(error.filename)}: {reason_of(error)}"
    return str(error)


def check_all(
    tasks: list[Task], *, jobs: int, ignore: Collection[str] = (), on_progress: Callable[[int], object] | None = None
) -> Iterator[Checked]:
    """Run tasks in `jobs` processes, and yield their outcomes in order.

    on_progress: called now and then with the number of bytes that are checked
    """
    advance = on_progress or (lambda position: None)
    if min(jobs, len(tasks)) < 2:
        done = 0

        def on_bytes(size: int) -> None:
            nonlocal done
            done += size
            advance(done)

        for task in tasks:
            yield check(task, ignore, on_bytes)
        return
    context = multiprocessing.get_context(_METHOD)
    counter = context.Value("q", 0)
    workers = min(jobs, len(tasks))
    executor = ProcessPoolExecutor(workers, context, _begin_worker, (counter, frozenset(ignore)))
    try:
        yield from _in_order(executor, tasks, lambda: advance(counter.value))
    except BrokenProcessPool:
        raise LogError("a process that was checking ended before it was done; it may have been killed") from None
    except BaseException:
        for child in multiprocessing.active_children():
            child.terminate()
        raise
    finally:
        executor.shutdown(wait=True, cancel_futures=True)


def _in_order(executor: ProcessPoolExecutor, tasks: list[Task], look: Callable[[], object]) -> Iterator[Checked]:
    """Start the largest tasks first, since the last one to end decides how long all take."""
    order = sorted(range(len(tasks)), key=lambda number: -tasks[number].size)
    futures: dict[int, Future[Checked]] = {number: executor.submit(_work, tasks[number]) for number in order}
    for number in range(len(tasks)):
        future = futures.pop(number)
        while wait([future], timeout=_LOOK_S, return_when=FIRST_COMPLETED).not_done:
            look()
        look()
        yield future.result()


_counter: Any = None  # of a worker: the bytes that all workers have checked
_ignored: frozenset[str] = frozenset()


def _begin_worker(counter: Any, ignored: frozenset[str]) -> None:
    """Keep what all tasks of this process need. An interrupt ends it without a word: its parent has one to say."""
    global _counter, _ignored
    _counter, _ignored = counter, ignored
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _work(task: Task) -> Checked:
    return check(task, _ignored, _count)


def _count(size: int) -> None:
    with _counter.get_lock():
        _counter.value += size
