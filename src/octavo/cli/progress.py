"""A progress bar on the terminal, shown where the output goes elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

WORTH_A_BAR: Final = 8 << 20  # bytes, about a second of work


@contextmanager
def progress(size: int) -> Iterator[Callable[[int], object]]:
    """Yield a function to call with the position reached in `size` bytes; it does nothing where no bar is shown."""
    if size < WORTH_A_BAR or sys.stdout.isatty() or not sys.stderr.isatty():
        yield lambda position: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

    columns = (BarColumn(), DownloadColumn(binary_units=True), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=size)
        yield lambda position: bar.update(task, completed=position)
