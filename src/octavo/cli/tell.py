"""Say something to the user, on standard error."""

from __future__ import annotations

import sys

from octavo.cli.printable import printable


def tell(sentence: str) -> None:
    """Print a sentence to standard error, after everything that was printed before it."""
    sys.stdout.flush()
    print(f"octavo: {printable(sentence)}", file=sys.stderr)
