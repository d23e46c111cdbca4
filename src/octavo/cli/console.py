"""A console of rich's for standard output, which leaves a closed pipe to the command."""

from __future__ import annotations

from rich.console import Console


class OutputConsole(Console):
    """Prints to standard output; raises `BrokenPipeError` if nobody reads it any more.

    A console of rich's ends the process instead, with exit code 1, by which Octavo says that damage was found. It does
    so also for what others have printed before, since it flushes the output even when it draws without printing.
    """

    def on_broken_pipe(self) -> None:
        """Go on with the error that rich has caught."""
        raise  # the error, in whose handler this is called
