"""Kafka's log on disk: a partition (`Log`), and a directory of them (`DataDirectory`).

    DataDirectory    open a directory as a broker does: its lock, its metadata, its partitions
    Log              append, read, roll, flush, truncate, delete
    LogConfig        how a topic's logs are kept, by Kafka's names
    Producer         send records, one by one, as Kafka's producer does
    Consumer         read records of topics, one by one or as Arrow, as Kafka's consumer does
    Background       flush and retention, step by step or in a thread

Importing this imports neither NumPy nor Numba; what needs them imports them when there is much to do.
"""

from __future__ import annotations

from octavo.log.background import Background
from octavo.log.config import LogConfig
from octavo.log.consumer import Consumer, ConsumerRecord
from octavo.log.directory.data_directory import DataDirectory
from octavo.log.log import Appended, Log
from octavo.log.log_reader import LogReader
from octavo.log.offset_and_metadata import OffsetAndMetadata
from octavo.log.origin import Origin
from octavo.log.producer import Producer, RecordMetadata
from octavo.log.readable_log import TimestampOffset
from octavo.log.reading import FileSlice, ReadResult
from octavo.log.recovery_report import Cut, Progress, RecoveryReport
from octavo.log.view import Isolation

__all__ = [
    "Appended",
    "Background",
    "Consumer",
    "ConsumerRecord",
    "Cut",
    "DataDirectory",
    "FileSlice",
    "Isolation",
    "Log",
    "LogConfig",
    "LogReader",
    "OffsetAndMetadata",
    "Origin",
    "Producer",
    "Progress",
    "ReadResult",
    "RecordMetadata",
    "RecoveryReport",
    "TimestampOffset",
]
