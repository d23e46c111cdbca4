"""Kafka's log on disk: a partition (`Log`), a directory of them (`DataDirectory`), and clients in this process.

    DataDirectory    open a directory as a broker does: its lock, its metadata, its partitions
    Log              append, read, roll, flush, truncate, compact, delete
    LogConfig        the configuration of a topic's logs, by Kafka's names
    Producer         send records, one by one, as Kafka's producer does
    Consumer         read records of topics, one by one or as Arrow, as Kafka's consumer does
    Background       flush, retention and compaction, step by step or in a thread
    handover         prepare a directory for a stock Apache Kafka

All types in the signatures of these can be imported from here. Errors are in `octavo.errors`, Kafka's own records in
`octavo.schemas`. Importing this package imports almost nothing: the module of a name is imported when the name is first
used. NumPy and Numba are imported when there is much to do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from octavo.on_demand import on_demand

if TYPE_CHECKING:
    from octavo.log.background import Background, BackgroundWork
    from octavo.log.clock import Clock
    from octavo.log.compaction.plan import CompactionPlan
    from octavo.log.compaction.stats import CompactionProgress, CompactionStats, OnCompaction
    from octavo.log.compaction.throttle import Throttle
    from octavo.log.config.log_config import LogConfig
    from octavo.log.consumer import Consumer, ConsumerConfig, ConsumerRecord, OffsetReset
    from octavo.log.consumer.fetched_records import Deserializer
    from octavo.log.consumer.membership import OnRebalance
    from octavo.log.coordinator import Coordinator, ProducerIdentity
    from octavo.log.coordinator.consumer_group_metadata import ConsumerGroupMetadata
    from octavo.log.coordinator.offset_and_metadata import OffsetAndMetadata
    from octavo.log.directory.data_directory import DataDirectory
    from octavo.log.directory.handing_over import handover
    from octavo.log.files.leader_epochs import EpochEnd, EpochEntry
    from octavo.log.log import Appended, Log
    from octavo.log.metadata import ChangedSetting, Handover, PartitionState, Topic
    from octavo.log.names import TopicPartition
    from octavo.log.origin import Origin
    from octavo.log.producer import Partitioner, Producer, ProducerConfig, RecordMetadata, SendFuture
    from octavo.log.producer.future import OnDelivery
    from octavo.log.producer.producer import Serializer
    from octavo.log.producer_state.aborted import AbortedRanges, AbortedTransaction
    from octavo.log.reading.log_reader import LogReader
    from octavo.log.reading.read_view import FileSlice, ReadResult
    from octavo.log.reading.readable_log import ReadableLog, TimestampOffset
    from octavo.log.recovery.recover import Recover
    from octavo.log.recovery_report import Cut, IgnoredFile, OnProgress, Progress, RecoveryReport
    from octavo.log.retention import (
        BySize,
        ByStartOffset,
        ByTime,
        Expired,
        Expiry,
        LogView,
        RetentionPolicy,
        SegmentView,
    )
    from octavo.log.staging.area import CommitIdentity, StagingArea
    from octavo.log.staging.clearing import discard_staged, give_up_commit
    from octavo.log.staging.outcome import ExpectedTopic, StagedCommit
    from octavo.log.staging.writer import StagedChunk, StagedFile, StagedWriter
    from octavo.log.storage import File, FileStatus, Storage
    from octavo.log.tiers import RemotePart
    from octavo.log.view import Isolation, SegmentInfo
    from octavo.log.watched.watched_directory import WatchedDirectory
    from octavo.log.watched.watched_log import WatchedLog

__all__ = [
    "DataDirectory",
    "WatchedDirectory",
    "Topic",
    "PartitionState",
    "TopicPartition",
    "LogConfig",
    "Log",
    "WatchedLog",
    "ReadableLog",
    "Appended",
    "Origin",
    "EpochEnd",
    "EpochEntry",
    "LogReader",
    "ReadResult",
    "FileSlice",
    "Isolation",
    "SegmentInfo",
    "TimestampOffset",
    "AbortedTransaction",
    "AbortedRanges",
    "Recover",
    "RecoveryReport",
    "Cut",
    "IgnoredFile",
    "Progress",
    "OnProgress",
    "RemotePart",
    "Clock",
    "Producer",
    "ProducerConfig",
    "SendFuture",
    "RecordMetadata",
    "OnDelivery",
    "OnRebalance",
    "Serializer",
    "Partitioner",
    "Consumer",
    "ConsumerConfig",
    "OffsetReset",
    "ConsumerRecord",
    "Deserializer",
    "OffsetAndMetadata",
    "ConsumerGroupMetadata",
    "Coordinator",
    "ProducerIdentity",
    "Background",
    "BackgroundWork",
    "RetentionPolicy",
    "LogView",
    "SegmentView",
    "Expiry",
    "Expired",
    "ByStartOffset",
    "BySize",
    "ByTime",
    "CompactionPlan",
    "CompactionProgress",
    "CompactionStats",
    "OnCompaction",
    "Throttle",
    "StagingArea",
    "CommitIdentity",
    "StagedWriter",
    "StagedFile",
    "StagedChunk",
    "ExpectedTopic",
    "StagedCommit",
    "discard_staged",
    "give_up_commit",
    "Storage",
    "File",
    "FileStatus",
    "handover",
    "Handover",
    "ChangedSetting",
]

if not TYPE_CHECKING:  # otherwise type checkers would accept any name as exported
    __getattr__, __dir__ = on_demand(
        globals(),
        {
            "background": ("Background", "BackgroundWork"),
            "clock": ("Clock",),
            "compaction.plan": ("CompactionPlan",),
            "compaction.stats": ("CompactionProgress", "CompactionStats", "OnCompaction"),
            "compaction.throttle": ("Throttle",),
            "config.log_config": ("LogConfig",),
            "consumer": ("Consumer", "ConsumerConfig", "ConsumerRecord", "OffsetReset"),
            "consumer.fetched_records": ("Deserializer",),
            "coordinator": ("Coordinator", "ProducerIdentity"),
            "directory.data_directory": ("DataDirectory",),
            "directory.handing_over": ("handover",),
            "files.leader_epochs": ("EpochEnd", "EpochEntry"),
            "log": ("Appended", "Log"),
            "reading.log_reader": ("LogReader",),
            "metadata": ("ChangedSetting", "Handover", "PartitionState", "Topic"),
            "names": ("TopicPartition",),
            "coordinator.offset_and_metadata": ("OffsetAndMetadata",),
            "coordinator.consumer_group_metadata": ("ConsumerGroupMetadata",),
            "origin": ("Origin",),
            "producer": ("Partitioner", "Producer", "ProducerConfig", "RecordMetadata", "SendFuture"),
            "producer.future": ("OnDelivery",),
            "consumer.membership": ("OnRebalance",),
            "producer.producer": ("Serializer",),
            "producer_state.aborted": ("AbortedRanges", "AbortedTransaction"),
            "reading.readable_log": ("ReadableLog", "TimestampOffset"),
            "reading.read_view": ("FileSlice", "ReadResult"),
            "recovery.recover": ("Recover",),
            "recovery_report": ("Cut", "IgnoredFile", "OnProgress", "Progress", "RecoveryReport"),
            "retention": (
                "BySize",
                "ByStartOffset",
                "ByTime",
                "Expired",
                "Expiry",
                "LogView",
                "RetentionPolicy",
                "SegmentView",
            ),
            "staging.area": ("CommitIdentity", "StagingArea"),
            "staging.clearing": ("discard_staged", "give_up_commit"),
            "staging.outcome": ("ExpectedTopic", "StagedCommit"),
            "staging.writer": ("StagedChunk", "StagedFile", "StagedWriter"),
            "storage": ("File", "FileStatus", "Storage"),
            "tiers": ("RemotePart",),
            "view": ("Isolation", "SegmentInfo"),
            "watched.watched_directory": ("WatchedDirectory",),
            "watched.watched_log": ("WatchedLog",),
        },
    )
