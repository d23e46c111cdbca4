"""A closed pipe is an error of whoever prints, also if rich notices it."""

from __future__ import annotations

import io

import pytest

from octavo.cli.console import OutputConsole


class Closed(io.StringIO):
    """Output that nobody reads any more, which is noticed when it is flushed."""

    def flush(self) -> None:
        raise BrokenPipeError


def test_what_cannot_be_printed_is_told() -> None:
    with pytest.raises(BrokenPipeError):
        OutputConsole(file=Closed()).print("something")


def test_what_others_printed_before_is_told_when_something_is_drawn() -> None:
    with pytest.raises(BrokenPipeError), OutputConsole(file=Closed()).capture():
        pass
