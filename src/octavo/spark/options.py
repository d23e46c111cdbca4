"""The options of `format("octavo")`: those of Spark's Kafka connector, with the same meanings and errors, and our own.

`read_options` checks everything that can be checked without reading a file. If the connector has an error message for a
mistake, the same message is used here, so that users recognise it and can search for it.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Final, NamedTuple

from octavo.errors import InvalidConfig, InvalidInput
from octavo.log.config.nearest_name import nearest_name
from octavo.log.names import TopicPartition
from octavo.spark.key_filter import KeyFilter, read_key_filter
from octavo.spark.offsets import (
    EARLIEST,
    LATEST,
    Offsets,
    partition_list,
    read_offsets,
    read_partitions,
    read_timestamp,
    read_timestamps,
)
from octavo.spark.sink.options import SINK_NAMES
from octavo.spark.typed_columns import TypedValues, read_typed_values
from octavo.spark.values import Values

_log = logging.getLogger("octavo.spark")

_OURS: Final = (
    "path",
    "paths",
    "columns",
    "includeBatchInfo",
    "includeControlRecords",
    "onCorruption",
    "quarantinePath",
    "end",
    "maxBytesPerTrigger",
    "maxBytesPerPartition",
    "keyEquals",
    "keyPrefix",
    "valueFormat",
    "valueSchema",
    "valueSchemaFile",
    "valueSchemaFolder",
    "valueMessage",
    "valuePrefix",
)
_CONNECTORS: Final = (
    "assign",
    "subscribe",
    "subscribePattern",
    "startingOffsets",
    "endingOffsets",
    "startingTimestamp",
    "endingTimestamp",
    "startingOffsetsByTimestamp",
    "endingOffsetsByTimestamp",
    "startingOffsetsByTimestampStrategy",
    "failOnDataLoss",
    "minPartitions",
    "maxRecordsPerPartition",
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "includeHeaders",
    "isolation.level",
    "kafka.isolation.level",
)
_MEANINGLESS: Final = (
    "groupIdPrefix",
    "kafkaConsumer.pollTimeoutMs",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    "partition.metadata.cache.ttl.ms",
)
_NAMES: Final = {name.lower(): name for name in (*_OURS, *_CONNECTORS, *_MEANINGLESS)}

# Consumer settings that the connector does not let its users change, and what its error message says about each.
_REFUSED: Final = {
    "kafka.auto.offset.reset": ". Instead set the source option 'startingoffsets' to 'earliest' or 'latest' to specify "
    "where to start.",
    "kafka.key.deserializer": " as keys are deserialized as byte arrays with ByteArrayDeserializer. Use DataFrame "
    "operations to explicitly deserialize the keys.",
    "kafka.value.deserializer": " as values are deserialized as byte arrays with ByteArrayDeserializer. Use DataFrame "
    "operations to explicitly deserialize the values.",
    "kafka.enable.auto.commit": "",
    "kafka.interceptor.classes": "",
}

_NO_TABLES: Final = (
    "Spark does not tell a Python data source the options of a table when that is read. Make a view: "
    "CREATE TEMPORARY VIEW name USING octavo OPTIONS (path '...', subscribe '...')"
)
_MAX_TRIGGER_DELAY_MS: Final = 15 * 60_000


class End(Enum):
    """Where reading a partition ends: at the high watermark or at the log end offset."""

    HIGH_WATERMARK = "highWatermark"  # the one last recorded in the data directory
    LOG_END = "logEnd"  # the end of the last complete batch


class OnCorruption(Enum):
    """What to do with damaged batches (see `octavo.spark.corruption`)."""

    FAIL = "fail"
    SKIP = "skip"
    QUARANTINE = "quarantine"


class Limit(NamedTuple):
    """Where a query begins or ends: an offset or a timestamp, either one for all partitions or one for each."""

    option: str  # the option that sets this limit
    offset: int | None = None
    offsets: Offsets | None = None
    timestamp_ms: int | None = None
    timestamps: Offsets | None = None

    def is_offset_of(self, partition: TopicPartition) -> bool:
        """Whether the limit gives an explicit offset for this partition: not earliest, latest or a timestamp."""
        return self.offsets is not None and self.offsets.get(partition, LATEST) >= 0

    @property
    def of_each(self) -> Offsets | None:
        """The offset or timestamp of each partition; None if one value applies to all partitions."""
        return self.offsets if self.offsets is not None else self.timestamps


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """All options, parsed and checked. An option that was not given and has no default is `None`."""

    paths: tuple[str, ...] = field(repr=False)  # may contain secrets
    assign: tuple[TopicPartition, ...] | None
    subscribe: tuple[str, ...] | None
    subscribe_pattern: str | None
    starting: Limit | None
    ending: Limit | None
    latest_if_no_match: bool  # start at the end of the log if no record has the starting timestamp or a later one
    fail_on_data_loss: bool
    min_partitions: int | None
    max_records_per_partition: int | None
    max_bytes_per_partition: int | None
    max_offsets_per_trigger: int | None
    min_offsets_per_trigger: int | None
    max_bytes_per_trigger: int | None
    trigger_delay_ms: int | None
    include_headers: bool
    include_batch_info: bool
    include_control_records: bool
    read_committed: bool
    columns: tuple[str, ...] | None
    on_corruption: OnCorruption
    quarantine_path: str | None = field(repr=False)
    end: End
    key_filter: KeyFilter | None = None
    typed_values: TypedValues | None = None

    @property
    def max_trigger_delay_ms(self) -> int:
        """The longest time that a stream waits for `minOffsetsPerTrigger`."""
        return _MAX_TRIGGER_DELAY_MS if self.trigger_delay_ms is None else self.trigger_delay_ms


def read_options(given: Mapping[str, str]) -> Options:
    """Parse and check the options. Their names are not case-sensitive. Raises `InvalidInput`."""
    options = {name.lower(): value for name, value in given.items()}
    _check_names(options, given)
    values = Values(options)
    assign, subscribe, pattern = _read_topics(options)
    smallest, largest = values.positive("minOffsetsPerTrigger"), values.positive("maxOffsetsPerTrigger")
    if smallest is not None and largest is not None and smallest > largest:
        raise InvalidInput(
            f"The value of minOffsetPerTrigger({smallest}) is higher than the maxOffsetsPerTrigger({largest})."
        )
    on_corruption = OnCorruption(values.one_of("onCorruption", [mode.value for mode in OnCorruption], "fail"))
    starting, ending = _read_limit(options, "starting"), _read_limit(options, "ending")
    if starting is not None and ending is not None:
        _check_order(starting, ending)
    quarantine_path = _absolute(options.get("quarantinepath"))
    if on_corruption is OnCorruption.QUARANTINE and not quarantine_path:
        raise InvalidInput("onCorruption = quarantine needs the option quarantinePath: a folder for what is put aside")
    return Options(
        paths=_read_paths(options),
        assign=assign,
        subscribe=subscribe,
        subscribe_pattern=pattern,
        starting=starting,
        ending=ending,
        latest_if_no_match=values.one_of("startingOffsetsByTimestampStrategy", ["error", "latest"], "error")
        == "latest",
        fail_on_data_loss=values.truth("failOnDataLoss", default=True),
        min_partitions=values.positive("minPartitions"),
        max_records_per_partition=values.positive("maxRecordsPerPartition"),
        max_bytes_per_partition=values.positive("maxBytesPerPartition"),
        max_offsets_per_trigger=largest,
        min_offsets_per_trigger=smallest,
        max_bytes_per_trigger=values.positive("maxBytesPerTrigger"),
        trigger_delay_ms=values.duration_ms("maxTriggerDelay"),
        include_headers=values.truth("includeHeaders", default=False),
        include_batch_info=values.truth("includeBatchInfo", default=False),
        include_control_records=values.truth("includeControlRecords", default=False),
        read_committed=_read_isolation(values),
        columns=values.words("columns"),
        on_corruption=on_corruption,
        quarantine_path=quarantine_path,
        end=End(values.one_of("end", [end.value for end in End], End.HIGH_WATERMARK.value)),
        key_filter=read_key_filter(values),
        typed_values=read_typed_values(values),
    )


def _check_names(options: Mapping[str, str], given: Mapping[str, str]) -> None:
    """Refuse unknown options and those that the connector refuses. Warn once about options without effect here."""
    if options.get("provider", "").lower() == "octavo":  # Spark passes this property only for a table
        raise InvalidInput(f"CREATE TABLE ... USING octavo makes nothing that can be read: {_NO_TABLES}")
    meaningless = [_NAMES[name] for name in options if _NAMES.get(name) in _MEANINGLESS]
    for name in given:
        lower = name.lower()
        if lower in _REFUSED:
            raise InvalidInput(f"Kafka option '{lower.removeprefix('kafka.')}' is not supported{_REFUSED[lower]}")
        if lower in _NAMES:
            continue
        if not lower.startswith("kafka."):
            near = nearest_name(name, [*_NAMES.values(), *SINK_NAMES])  # which of both it is for, nobody knows yet
            hint = "" if near is None else f"; is {near} meant?"
            raise InvalidInput(f"there is no option {name!r}{hint}")
        meaningless.append(name)
    if meaningless:
        _log.warning("without a broker these options mean nothing, and are ignored: %s", ", ".join(meaningless))


def _read_paths(options: Mapping[str, str]) -> tuple[str, ...]:
    text = options.get("paths") or options.get("path", "")
    if text.lstrip().startswith("["):
        try:
            paths = json.loads(text)
        except ValueError:
            paths = [text]  # a pattern
    else:
        paths = text.split(",")
    paths = [path.strip() for path in paths if isinstance(path, str) and path.strip()]
    if not paths:
        told = "the option path is missing: where the log is, as in load('/var/lib/kafka/data')"
        raise InvalidInput(told if options else f"{told}. If this is a table: {_NO_TABLES}")
    return tuple(paths)


def _absolute(path: str | None) -> str | None:
    """Make a local path absolute, so that it means the same in every process."""
    if not path or "://" in path:
        return path
    return str(Path(path.removeprefix("file:")).absolute())


def _read_topics(
    options: Mapping[str, str],
) -> tuple[tuple[TopicPartition, ...] | None, tuple[str, ...] | None, str | None]:
    names = ("subscribe", "subscribepattern", "assign")
    told = [name for name in names if name in options]
    if len(told) > 1:
        raise InvalidInput(
            f"Only one of the following options can be specified for Kafka source: {', '.join(names)}. "
            "See the docs for more details."
        )
    if not told:
        return None, None, None
    value = options[told[0]]
    match told[0]:
        case "assign":
            if not value.strip().startswith("{"):
                raise InvalidInput(f"No topicpartitions to assign as specified value for option 'assign' is '{value}'")
            return tuple(read_partitions(value)), None, None
        case "subscribe":
            topics = tuple(topic.strip() for topic in value.split(",") if topic.strip())
            if not topics:
                raise InvalidInput(f"No topics to subscribe to as specified value for option 'subscribe' is '{value}'")
            return None, topics, None
        case _:
            if not value.strip():
                raise InvalidInput(
                    f"Pattern to subscribe is empty as specified value for option 'subscribePattern' is '{value}'"
                )
            try:
                re.compile(value.strip())
            except re.error as error:
                raise InvalidConfig("subscribePattern", value, f"it is no regular expression: {error}") from None
            return None, None, value.strip()


def _read_limit(options: Mapping[str, str], which: str) -> Limit | None:
    """Read the starting or ending limit.

    One timestamp for all partitions takes precedence over timestamps by partition, and those over offsets.
    """
    value = options.get(f"{which}timestamp")
    if value is not None:
        return Limit(f"{which}Timestamp", timestamp_ms=read_timestamp(value.strip()))
    value = options.get(f"{which}offsetsbytimestamp")
    if value is not None:
        return Limit(f"{which}OffsetsByTimestamp", timestamps=read_timestamps(value.strip()))
    value = options.get(f"{which}offsets")
    if value is None:
        return None
    option, value = f"{which}Offsets", value.strip()
    match value.lower():
        case "earliest":
            return Limit(option, offset=EARLIEST)
        case "latest":
            return Limit(option, offset=LATEST)
        case _:
            return Limit(option, offsets=read_offsets(value))


def _check_order(starting: Limit, ending: Limit) -> None:
    """Check that starting and ending limits can form a range, whatever the logs contain. Raises `InvalidInput`."""
    for kind, starts, ends in (
        ("offset", starting.offsets, ending.offsets),
        ("timestamp", starting.timestamps, ending.timestamps),
    ):
        if starts is None or ends is None:
            continue
        if starts.keys() != ends.keys():
            raise InvalidInput(
                "The specified start offset and end offset should have the same topic-partitions. "
                f"Topic-partitions for start offset: {partition_list(starts)}, "
                f"topic-partitions for end offset: {partition_list(ends)}."
            )
        for partition, start in starts.items():
            if start > ends[partition] >= 0:
                raise InvalidInput(
                    f"The specified start {kind} {start} is greater than the end {kind} {ends[partition]} for topic "
                    f"{partition.topic} partition {partition.partition}."
                )


def _read_isolation(values: Values) -> bool:
    levels = ["read_uncommitted", "read_committed"]
    name = "isolation.level" if "isolation.level" in values.options else "kafka.isolation.level"
    return values.one_of(name, levels, levels[0]) == "read_committed"


def check_batch(options: Options) -> None:
    """Check the limits of a batch query. Raises `InvalidInput` for those that only a stream can have.

    Spark does not say before a query runs whether it is a batch or a stream.
    """
    starting, ending = options.starting, options.ending
    if starting is not None:
        if starting.offset == LATEST:
            raise InvalidInput("starting offset can't be latest for batch queries on Kafka")
        for partition, offset in (starting.offsets or {}).items():
            if offset == LATEST:
                raise InvalidInput(f"startingOffsets for {partition} can't be latest for batch queries on Kafka")
    if ending is not None:
        if ending.offset == EARLIEST:
            raise InvalidInput("ending offset can't be earliest for batch queries on Kafka")
        for partition, offset in (ending.offsets or {}).items():
            if offset == EARLIEST:
                raise InvalidInput(f"ending offset for {partition} can't be earliest for batch queries on Kafka")
    for name in limits_per_trigger(options):
        _log.warning("%s option ignored in batch queries", name)


def limits_per_trigger(options: Options) -> Iterator[str]:
    """Return the names of the given options that limit the micro-batches of a stream."""
    for name, value in (
        ("maxOffsetsPerTrigger", options.max_offsets_per_trigger),
        ("minOffsetsPerTrigger", options.min_offsets_per_trigger),
        ("maxBytesPerTrigger", options.max_bytes_per_trigger),
        ("maxTriggerDelay", options.trigger_delay_ms),
    ):
        if value is not None:
            yield name


def check_stream(options: Options) -> None:
    """Check the limits of a streaming query. Raises `InvalidInput` for those that only a batch query can have."""
    if options.ending is None:
        return
    if options.ending.timestamp_ms is not None:
        _log.warning("endingTimestamp option ignored in streaming queries")
        return
    kind = "offset" if options.ending.timestamps is None else "timestamp"
    raise InvalidInput(f"ending {kind} not valid in streaming queries")
