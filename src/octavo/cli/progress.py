"""A progress bar on the terminal, with rate and time left. By default it is shown only if output goes elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

WORTH_A_BAR: Final = 8 << 20  # the least number of bytes for which a bar is shown, about a second of work


@contextmanager
def progress(size: int, *, at_terminal: bool = False) -> Iterator[Callable[[int], object]]:
    """Show a bar for work on `size` bytes. Yield a function to call with the position that the work has reached.

    For little work no bar is shown, and the function does nothing. `at_terminal`: show the bar even if standard output
    is the terminal, because nothing is printed meanwhile.
    """
    if size < WORTH_A_BAR or (sys.stdout.isatty() and not at_terminal) or not sys.stderr.isatty():
        yield lambda position: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

    columns = (BarColumn(), DownloadColumn(binary_units=True), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=size)
        yield lambda position: bar.update(task, completed=position)
