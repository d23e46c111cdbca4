"""Kafka's log on disk: a partition (`Log`), and a directory of them (`DataDirectory`).

    DataDirectory    open a directory as a broker does: its lock, its metadata, its partitions
    Log              append, read, roll, flush, truncate, delete
    LogConfig        how a topic's logs are kept, by Kafka's names
    Background       flush and retention, step by step or in a thread

Importing this imports neither NumPy nor Numba; what needs them imports them when there is much to do.
"""

from __future__ import annotations

from octavo.log.background import Background
from octavo.log.config import LogConfig
from octavo.log.directory import DataDirectory
from octavo.log.log import Appended, Log
from octavo.log.readable import TimestampOffset
from octavo.log.reading import FileSlice, Isolation, LogReader, ReadResult
from octavo.log.report import Cut, Progress, RecoveryReport
from octavo.log.span import Origin

__all__ = [
    "Appended",
    "Background",
    "Cut",
    "DataDirectory",
    "FileSlice",
    "Isolation",
    "Log",
    "LogConfig",
    "LogReader",
    "Origin",
    "Progress",
    "ReadResult",
    "RecoveryReport",
    "TimestampOffset",
]
