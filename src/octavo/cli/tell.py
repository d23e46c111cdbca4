"""Say something to the user on standard error, and give up standard output."""

from __future__ import annotations

import os
import sys

from octavo.cli.printable import printable


def tell(sentence: str) -> None:
    """Print a sentence to standard error, after everything that was printed before it."""
    sys.stdout.flush()
    print(f"octavo: {printable(sentence)}", file=sys.stderr)


def let_go_of_output() -> None:
    """Discard output that cannot be written. Otherwise Python would try again at exit, and print an error."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
