"""Times on the command line."""

from __future__ import annotations

import argparse
import re
from datetime import UTC, datetime, timedelta
from typing import Final

# As Java reads durations: days, and hours, minutes and seconds behind a T.
_DURATION: Final = re.compile(
    r"([-+]?)P(?=[-+T0-9])(?:([-+]?[0-9]{1,15})D)?"
    r"(?:T(?=[-+0-9])(?:([-+]?[0-9]{1,15})H)?(?:([-+]?[0-9]{1,15})M)?(?:([-+]?[0-9]{1,15}(?:[.,][0-9]{0,9})?)S)?)?",
    re.IGNORECASE,
)
_UNITS_MS: Final = (86_400_000, 3_600_000, 60_000, 1000)


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


def duration_ms(text: str) -> int:
    """Parse a duration of ISO 8601 in days, hours, minutes and seconds, like `P1DT12H`. Returns milliseconds."""
    found = _DURATION.fullmatch(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no duration, like P7D, PT36H, PT15M or P1DT2H3M4.5S")
    sign, *numbers = found.groups()
    total = sum(
        round(float(number.replace(",", ".")) * unit_ms)
        for number, unit_ms in zip(numbers, _UNITS_MS, strict=True)
        if number
    )
    return -total if sign == "-" else total
