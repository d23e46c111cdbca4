"""The options of the sink: ours, those of Spark's Kafka connector, and Kafka's names for the same.

An option of Kafka may be written with or without `kafka.`. A setting of topics, such as `retention.ms`, applies to the
topics that the sink creates.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from octavo.errors import InvalidConfig, InvalidInput
from octavo.log.config.log_config import CONFIG_NAMES, LogConfig
from octavo.log.config.nearest_name import nearest_name
from octavo.log.names import check_topic_name
from octavo.log.producer.config import ProducerConfig
from octavo.records.layout import MAX_INT64, Codec
from octavo.spark.values import Values

_log = logging.getLogger("octavo.spark")

_OURS: Final = (
    "path",
    "topic",
    "partitions",
    "compression",
    "compressionLevel",
    "batchSize",
    "stagingPath",
    "sync",
    "lockTimeout",
    "txnAppId",
    "txnVersion",
    "restore",
)
_NAMES: Final = {name.lower(): name for name in _OURS}
_LEVELS: Final = {codec: f"compression.{codec.name.lower()}.level" for codec in (Codec.GZIP, Codec.LZ4, Codec.ZSTD)}
_SYNONYMS: Final = {
    "num.partitions": "partitions",
    "compression.type": "compression",
    "batch.size": "batchSize",
    **dict.fromkeys(_LEVELS.values(), "compressionLevel"),
}
_TOPIC_SETTINGS: Final = CONFIG_NAMES - _SYNONYMS.keys()
SINK_NAMES: Final = (*_OURS, *_SYNONYMS, *sorted(_TOPIC_SETTINGS))
_REFUSED: Final = {  # in the words of Spark's connector
    "key.serializer": "keys are serialized with ByteArraySerializer.",
    "value.serializer": "value are serialized with ByteArraySerializer.",
}
_SPARKS: Final = ("checkpointlocation", "queryname")  # options of a stream that Spark passes on
_BATCH_SIZE: Final = 256 << 10  # larger batches compress hardly better, and cost readers of single records more
_LOCK_TIMEOUT_MS: Final = 30_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkOptions:
    """All options of the sink, parsed and checked."""

    path: Path
    topic: str | None
    partitions: int  # of topics that the sink creates
    topic_config: Mapping[str, str] = field(default_factory=dict)  # of topics that the sink creates
    codec: Codec
    level: int | None
    batch_size: int
    staging_path: Path | None
    sync: bool
    lock_timeout_ms: int
    application: str | None  # with `version`, the identity of a batch write
    version: int
    restore: bool


def is_of_the_sink(name: str) -> bool:
    """Return whether an option, in lower case, means something to the sink alone."""
    plain = name.removeprefix("kafka.")
    known = (*_NAMES, *_SPARKS)
    return name != "path" and (name in known or plain in _SYNONYMS or plain in _TOPIC_SETTINGS)


def read_sink_options(given: Mapping[str, str]) -> SinkOptions:
    """Parse and check the options. Their names are not case-sensitive. Raises `InvalidInput`."""
    options, topic_config = _sorted(given)
    values = Values(options)
    topic = options.get("topic")
    if topic is not None:
        check_topic_name(topic)
    producer = _producer_config(options)
    application, version = _identity(options)
    return SinkOptions(
        path=_path(options),
        topic=topic,
        partitions=values.positive("partitions") or 1,
        topic_config=topic_config,
        codec=producer.compression_type,
        level=producer.level,
        batch_size=values.positive("batchSize") or _BATCH_SIZE,
        staging_path=_local_path("stagingPath", options["stagingpath"]) if options.get("stagingpath") else None,
        sync=values.truth("sync", default=True),
        lock_timeout_ms=_LOCK_TIMEOUT_MS if (wait := values.duration_ms("lockTimeout")) is None else wait,
        application=application,
        version=version,
        restore=values.truth("restore", default=False),
    )


def _sorted(given: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Separate the options of the sink, by our names in lower case, from the settings of topics.

    Raises `InvalidInput` for names that mean nothing. Warns once about those that mean nothing without a broker.
    """
    options: dict[str, str] = {}
    topic_config: dict[str, str] = {}
    meaningless = []
    for name, value in given.items():
        lower = name.lower()
        plain = lower.removeprefix("kafka.")
        ours = lower if lower in _NAMES else _SYNONYMS.get(plain, "").lower()
        if ours:
            if options.get(ours, value) != value:
                raise InvalidInput(f"{_NAMES[ours]} is given twice, as {options[ours]} and as {value}")
            options[ours] = value
        elif plain in _TOPIC_SETTINGS:
            topic_config[plain] = value
        elif lower.startswith("kafka.") and plain in _REFUSED:
            raise InvalidInput(f"Kafka option '{plain}' is not supported as {_REFUSED[plain]}")
        elif lower.startswith("kafka."):
            meaningless.append(name)
        elif lower not in _SPARKS:
            near = nearest_name(name, SINK_NAMES)
            raise InvalidInput(f"there is no option {name!r}" + ("" if near is None else f"; is {near} meant?"))
    LogConfig.from_properties(topic_config)
    if meaningless:
        _log.warning("without a broker these options mean nothing, and are ignored: %s", ", ".join(meaningless))
    return options, topic_config


def _path(options: Mapping[str, str]) -> Path:
    path = options.get("path", "").strip()
    if not path:
        raise InvalidInput("the option path is missing: where the log is, as in save('/var/lib/kafka/data')")
    return _local_path("path", path)


def _local_path(option: str, text: str) -> Path:
    """Return an absolute path, which means the same in every process. Raises `InvalidInput` for a remote one."""
    if "://" in text and not text.startswith("file://"):
        raise InvalidInput(f"{option} = {text}: a log is written in a folder of a file system, not in a bucket")
    return Path(text.removeprefix("file://").removeprefix("file:")).absolute()


def _producer_config(options: Mapping[str, str]) -> ProducerConfig:
    """Return the settings that Kafka's producer has too, so that they are checked by the same rules."""
    given = {"compression.type": options.get("compression", "none").lower()}
    codec = ProducerConfig.of(given).compression_type
    level = options.get("compressionlevel")
    if level is not None:
        if codec not in _LEVELS:
            raise InvalidConfig("compressionLevel", level, f"the codec {codec.name.lower()} has no levels")
        given[_LEVELS[codec]] = level
    return ProducerConfig.of(given)


def _identity(options: Mapping[str, str]) -> tuple[str | None, int]:
    application, text = options.get("txnappid"), options.get("txnversion")
    if (application is None) != (text is None):
        raise InvalidInput("txnAppId and txnVersion go together: they say which write this is, if it is repeated")
    if application is None or text is None:
        return None, 0
    if not text.strip().isdecimal() or int(text) > MAX_INT64:
        raise InvalidConfig("txnVersion", text, "it is a number that grows from write to write")
    return application, int(text)
