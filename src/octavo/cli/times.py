"""Times on the command line."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime, timedelta


def milliseconds(text: str) -> int:
    """Parse a time: milliseconds since 1970, or ISO 8601, in UTC if it has no zone. Returns milliseconds."""
    if text.removeprefix("-").isdecimal():
        return int(text)
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        example = "2026-11-16, 2026-11-16T03:00, 2026-11-16T03:00:00.123+01:00 or 1794798000000"
        raise argparse.ArgumentTypeError(f"{text!r} is no time, like {example}") from None
    if time.tzinfo is None:
        time = time.replace(tzinfo=UTC)
    return -((datetime(1970, 1, 1, tzinfo=UTC) - time) // timedelta(milliseconds=1))
