"""Say something to the user, on standard error."""

from __future__ import annotations

import sys


def tell(sentence: str) -> None:
    """Print a sentence to standard error, after everything that was printed before it."""
    sys.stdout.flush()
    print(f"octavo: {sentence}", file=sys.stderr)
