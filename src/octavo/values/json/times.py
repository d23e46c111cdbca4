"""Read dates and timestamps as Spark's `CAST` and `from_json` do, without a format.

    2026            2026-11         2026-11-5        2026-11-05 (also followed by a time, for a date)
    2026-11-05 7:30:1.5             2026-11-05T07:30:01.123456Z       … +01:00, UTC+1, Europe/Berlin

Text without a zone is UTC. Years are those of Java: beyond 9999, and negative.
"""

from __future__ import annotations

import re
import time
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

US_PER_SECOND: Final = 1_000_000
_MAX: Final = (1 << 63) - 1
_OF_DAY: Final = r"(\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d*))?(.*))?)?"
_TIMESTAMP: Final = re.compile(
    rf"([+-]?)(\d{{4,6}})(?:-(\d{{1,2}})(?:-(\d{{1,2}})(?:[ T]{_OF_DAY})?)?)?", re.ASCII | re.DOTALL
)
_TIME: Final = re.compile(rf"(?:T|(?=\d+:)){_OF_DAY}", re.ASCII | re.DOTALL)
_DATE: Final = re.compile(r"([+-]?)(\d{4,7})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T].*)?)?)?", re.ASCII | re.DOTALL)
_OFFSET: Final = re.compile(r"([+-])(?:(\d{1,2})|(\d\d):(\d\d)(?::(\d\d))?|(\d\d)(\d\d)(\d\d)?)", re.ASCII)
_SHORT: Final = {
    "EST": "-05:00", "MST": "-07:00", "HST": "-10:00", "ACT": "Australia/Darwin", "AET": "Australia/Sydney",
    "AGT": "America/Argentina/Buenos_Aires", "ART": "Africa/Cairo", "AST": "America/Anchorage",
    "BET": "America/Sao_Paulo", "BST": "Asia/Dhaka", "CAT": "Africa/Harare", "CNT": "America/St_Johns",
    "CST": "America/Chicago", "CTT": "Asia/Shanghai", "EAT": "Africa/Addis_Ababa", "ECT": "Europe/Paris",
    "IET": "America/Indiana/Indianapolis", "IST": "Asia/Kolkata", "JST": "Asia/Tokyo", "MIT": "Pacific/Apia",
    "NET": "Asia/Yerevan", "NST": "Pacific/Auckland", "PLT": "Asia/Karachi", "PNT": "America/Phoenix",
    "PRT": "America/Puerto_Rico", "PST": "America/Los_Angeles", "SST": "Pacific/Guadalcanal", "VST": "Asia/Ho_Chi_Minh",
}  # fmt: skip


def read_date(text: str) -> int | None:
    """Return a date as days since 1970; None if the text is none."""
    days = _date(text)
    if days is None:
        days = _date(text.replace("GMT", ""))
    if days is None and re.fullmatch(r"[+-]?\d{1,10}", text, re.ASCII):  # days, as Spark 1.5 wrote them
        number = int(text)
        days = _from_julian(number) if -(1 << 31) <= number < 1 << 31 else None
    return days


def read_timestamp(text: str) -> int | None:
    """Return a timestamp in microseconds since 1970; None if the text is none."""
    us = _timestamp(text)
    return _timestamp(text.replace("GMT", "")) if us is None and "GMT" in text else us


def read_local_timestamp(text: str) -> int | None:
    """Return a timestamp without a zone in microseconds since 1970; None if the text is none, or has a zone."""
    parsed = _TIMESTAMP.fullmatch(_trimmed(text))
    if parsed is None or parsed[9]:
        return None
    return _local_us(parsed)


def _trimmed(text: str) -> str:
    return text.strip("".join(map(chr, range(0x21))) + "\x7f")


def _date(text: str) -> int | None:
    parsed = _DATE.fullmatch(_trimmed(text))
    if parsed is None:
        return None
    year = int(parsed[2]) * (-1 if parsed[1] == "-" else 1)
    days = days_of(year, int(parsed[3] or 1), int(parsed[4] or 1))
    return days if days is not None and -(1 << 31) <= days < 1 << 31 else None


def _timestamp(text: str) -> int | None:
    trimmed = _trimmed(text)
    parsed = _TIMESTAMP.fullmatch(trimmed)
    if parsed is not None:
        us = _local_us(parsed)
        zone = parsed[9]
    else:
        parsed = _TIME.fullmatch(trimmed)
        if parsed is None or (trimmed[0] == "T" and text[0] != "T"):
            return None
        of_day = _us_of_day(parsed[1], parsed[2], parsed[3], parsed[4])
        today = int(time.time()) // 86_400
        us = None if of_day is None else today * 86_400 * US_PER_SECOND + of_day
        zone = parsed[5]
    if us is None or not zone:
        return us
    offset = _offset_us(zone.strip(), us)
    us = None if offset is None else us - offset
    return us if us is not None and -_MAX - 1 <= us <= _MAX else None


def _local_us(parsed: re.Match[str]) -> int | None:
    year = int(parsed[2]) * (-1 if parsed[1] == "-" else 1)
    days = days_of(year, int(parsed[3] or 1), int(parsed[4] or 1))
    of_day = 0 if parsed[5] is None else _us_of_day(parsed[5], parsed[6], parsed[7], parsed[8])
    if days is None or of_day is None:
        return None
    us = days * 86_400 * US_PER_SECOND + of_day
    return us if -_MAX - 1 <= us <= _MAX else None


def _us_of_day(hour: str, minute: str | None, second: str | None, fraction: str | None) -> int | None:
    hours, minutes, seconds = int(hour), int(minute or 0), int(second or 0)
    if hours > 23 or minutes > 59 or seconds > 59:
        return None
    us = int(((fraction or "") + "000000")[:6])
    return (hours * 3600 + minutes * 60 + seconds) * US_PER_SECOND + us


def days_of(year: int, month: int, day: int) -> int | None:
    """Return the days from 1970-01-01 to a date of the Gregorian calendar; None if there is no such date."""
    if not 1 <= month <= 12 or not 1 <= day <= 31:
        return None
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if day > ((29 if leap else 28) if month == 2 else 30 if month in (4, 6, 9, 11) else 31):
        return None
    shifted = year - (month <= 2)  # a year that begins in March
    era, of_era = divmod(shifted, 400)
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468


def _from_julian(days: int) -> int:
    """Return the days since 1970 of the date that the Julian calendar, until 1582, gives to these days."""
    if days >= -141_427:  # 1582-10-15
        return days
    shifted = days + 719_470  # days since the Julian 0000-03-01
    cycle, of_cycle = divmod(shifted, 1461)
    of_cycle_year = min(of_cycle // 365, 3)
    of_year = of_cycle - of_cycle_year * 365
    month = (5 * of_year + 2) // 153
    day = of_year - (153 * month + 2) // 5 + 1
    year = cycle * 4 + of_cycle_year + (month >= 10)
    found = days_of(year, (month + 2) % 12 + 1, day)
    if found is None:  # 29 February of a year that is a leap year only there
        next_day = days_of(year, 3, 1)
        assert next_day is not None
        return next_day
    return found


@lru_cache(maxsize=256)
def _zone(name: str) -> timedelta | ZoneInfo | None:
    name = re.sub(r"([+-])(\d):", r"\g<1>0\2:", name, count=1)
    name = re.sub(r"([+-])(\d\d):(\d)$", r"\g<1>\2:0\3", name, count=1)
    name = _SHORT.get(name, name)
    for prefix in ("UTC", "GMT", "UT"):
        if name == prefix:
            return timedelta()
        if name.startswith((f"{prefix}+", f"{prefix}-")):
            name = name.removeprefix(prefix)
            break
    if name == "Z":
        return timedelta()
    found = _OFFSET.fullmatch(name)
    if found is not None:
        hours = int(found[2] or found[3] or found[6])
        minutes, seconds = int(found[4] or found[7] or 0), int(found[5] or found[8] or 0)
        if minutes > 59 or seconds > 59 or hours * 3600 + minutes * 60 + seconds > 18 * 3600:
            return None
        offset = timedelta(hours=hours, minutes=minutes, seconds=seconds)
        return -offset if found[1] == "-" else offset
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9~/._+-]+", name):
        return None
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):
        return None


def _offset_us(name: str, us: int) -> int | None:
    """Return the offset of a zone from UTC at a local time, in microseconds; None if there is no such zone."""
    zone = _zone(name)
    if zone is None or isinstance(zone, timedelta):
        return None if zone is None else zone // timedelta(microseconds=1)
    # Beyond the years of `datetime`, the rules of a year with the same calendar apply: these repeat after 400 years.
    cycle = 146_097 * 86_400 * US_PER_SECOND
    shift = 0
    if not -60_000_000_000 * US_PER_SECOND < us < 250_000_000_000 * US_PER_SECOND:
        shift = us // cycle + (4 if us < 0 else -10)
    local = datetime(1970, 1, 1) + timedelta(microseconds=us - shift * cycle)
    offset = local.replace(tzinfo=zone).utcoffset()
    return None if offset is None else offset // timedelta(microseconds=1)
