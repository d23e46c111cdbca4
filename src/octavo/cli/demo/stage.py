"""Print the demo's titles, sentences, code and tables, in colour on a terminal and plain in a pipe."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from rich import box
from rich.console import RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from octavo import __version__
from octavo.cli.console import OutputConsole

WIDEST: Final = 120  # the most columns that are used; longer lines are hard to read
WIDE: Final = 110  # the number of columns from which a terminal counts as wide


class Stage:
    """Prints to standard output, whether it is a terminal or not."""

    def __init__(self) -> None:
        self._console: Final = OutputConsole(highlight=False, soft_wrap=False)
        self._console.width = min(self._console.width, WIDEST)
        self._chapter = 0

    @property
    def is_wide(self) -> bool:
        return self._console.width >= WIDE

    def welcome(self) -> None:
        self._console.print()
        self.say(f"[bold]Octavo {__version__}[/]: Kafka's log, in Python.")
        self.say("All that follows is computed as you look, on bytes as Apache Kafka stores them.")

    def chapter(self, title: str) -> None:
        """Print the title of a new chapter."""
        self._chapter += 1
        self._console.print()
        self._print(Rule(Text(f"{self._chapter}. {title}", style="bold"), align="left", style="cyan"))

    def say(self, text: str) -> None:
        """Print a sentence or two, in rich's markup."""
        self._print(text)

    def code(self, text: str) -> None:
        """Print Python code as a user would type it."""
        syntax = Syntax(text, "python", theme="ansi_dark", background_color="default", word_wrap=True)
        self.show(syntax)

    def command(self, text: str, what: str) -> None:
        """Print a command and what it does. Only the terminal wraps long lines, so that a command can be copied."""
        self._console.print(Text(f"  # {what}", style="dim"))
        self._console.print(Text(f"  {text}", style="green"), soft_wrap=True)

    def show(self, what: RenderableType) -> None:
        """Print anything that rich can draw, slightly indented."""
        self._print(Padding(what, (0, 0, 0, 2)))

    def show_wide(self, what: RenderableType) -> None:
        """Print anything that rich can draw, using the full width."""
        self._print(what)

    @contextmanager
    def waiting(self, text: str) -> Iterator[None]:
        """Show what the demo is waiting for: with a spinner on a terminal, else with a line of text."""
        if self._console.is_terminal:
            with self._console.status(text):
                yield
        else:
            self.say(text)
            yield

    def _print(self, what: RenderableType) -> None:
        if self._console.is_terminal:
            self._console.print(what)
            return
        # Remove the blanks with which tables are padded: they are not wanted in a file.
        with self._console.capture() as drawn:
            self._console.print(what)
        for line in drawn.get().splitlines():
            self._console.out(line.rstrip(), highlight=False)


def table(*columns: str, right: tuple[str, ...] = ()) -> Table:
    """Make an empty table; the columns named in `right` are aligned to the right."""
    drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for column in columns:
        drawn.add_column(column, justify="right" if column in right else "left", overflow="fold")
    return drawn
