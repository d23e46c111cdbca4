"""A topic's configuration. Names, defaults and limits are compared with Kafka's in `tests/kafka/test_log_config.py`."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import FrozenInstanceError, fields

import pytest

from octavo.errors import ErrorCode, InvalidConfig
from octavo.log.config.log_config import CONFIG_NAMES, LogConfig
from octavo.records import TimestampType


def test_properties_are_kafkas_names_and_fields_are_pythons() -> None:
    config = LogConfig.from_properties({"segment.ms": "5", "cleanup.policy": "compact, delete", "preallocate": "TRUE"})
    assert (config.segment_ms, config.cleanup_policy, config.preallocate) == (5, frozenset({"compact", "delete"}), True)
    assert config == LogConfig(segment_ms=5, cleanup_policy=frozenset({"delete", "compact"}), preallocate=True)
    assert config.to_properties() == {"segment.ms": "5", "cleanup.policy": "compact,delete", "preallocate": "true"}
    assert {field.name.replace("_", ".") for field in fields(LogConfig)} | {"internal.segment.bytes"} == CONFIG_NAMES


def test_defaults_need_no_properties() -> None:
    assert LogConfig().to_properties() == {}
    assert LogConfig.from_properties({}) == LogConfig()
    assert LogConfig.from_properties({"segment.ms": "604800000"}).to_properties() == {}


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("segment.bytes", "1048575", "a whole number from 1048576 to 2147483647"),
        ("segment.ms", "0", "a whole number from 1 to 9223372036854775807"),
        ("segment.ms", "soon", "a whole number"),
        ("compression.gzip.level", "0", "a whole number from 1 to 9, or -1"),
        ("compression.type", "none", "one of uncompressed, zstd, lz4, snappy, gzip, producer"),
        ("cleanup.policy", "none", "any of compact, delete"),
        ("preallocate", "1", "true or false"),
        ("min.cleanable.dirty.ratio", "1.1", "a number from 0 to 1"),
        ("message.timestamp.type", "NoTimestampType", "one of CreateTime, LogAppendTime"),
        ("leader.replication.throttled.replicas", "all", "partition:broker pairs"),
        ("min.compaction.lag.ms", "9223372036854775808", "a whole number from 0"),
        ("segment.byte", "5", "no topic configuration of this name; is segment.bytes meant"),
        ("Retention_MS", "5", "no topic configuration of this name; is retention.ms meant"),
        ("colour", "5", "no topic configuration of this name$"),
    ],
)
def test_a_wrong_value_is_refused_with_its_name_and_what_is_allowed(name: str, value: str, allowed: str) -> None:
    for make in (LogConfig.from_properties, LogConfig().with_properties):
        with pytest.raises(InvalidConfig, match=allowed) as refused:
            make({name: value})
        assert (refused.value.name, refused.value.value) == (name, value)
        assert refused.value.code is ErrorCode.INVALID_CONFIG
        assert name in str(refused.value)


def test_fields_are_checked_as_properties_are() -> None:
    with pytest.raises(InvalidConfig, match=r"segment\.ms cannot be 0"):
        LogConfig(segment_ms=0)
    with pytest.raises(InvalidConfig, match="cleanup"):
        LogConfig(cleanup_policy=frozenset({"keep"}))
    with pytest.raises(InvalidConfig, match=r"message\.timestamp\.type"):
        LogConfig(message_timestamp_type=TimestampType.NONE)
    with pytest.raises(InvalidConfig, match=r"max\.compaction\.lag\.ms, which is 4"):
        LogConfig(min_compaction_lag_ms=5, max_compaction_lag_ms=4)
    with pytest.raises(InvalidConfig, match="true or false"):
        LogConfig(preallocate=1)  # type: ignore[arg-type]  # what is refused is the point
    with pytest.raises(InvalidConfig, match="a whole number"):
        LogConfig.from_properties({"segment.ms": 5})  # type: ignore[dict-item]  # what is refused is the point


def test_it_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        LogConfig().segment_ms = 5  # type: ignore[misc]  # what is refused is the point


def test_small_segments_are_kafkas_internal_ones() -> None:
    config = LogConfig.from_properties({"internal.segment.bytes": "1000", "segment.bytes": "2000000"})
    assert config.segment_bytes == 1000
    assert config.to_properties() == {"internal.segment.bytes": "1000"}
    assert LogConfig(segment_bytes=1000) == LogConfig.from_properties(config.to_properties())


def test_some_properties_can_be_changed() -> None:
    config = LogConfig.from_properties({"internal.segment.bytes": "1000", "segment.ms": "5"})
    assert config.with_properties({"segment.ms": None, "flush.ms": "7"}).to_properties() == {
        "internal.segment.bytes": "1000",
        "flush.ms": "7",
    }
    assert config.with_properties({"segment.bytes": "2000000"}).segment_bytes == 2_000_000
    assert config.with_properties({"segment.bytes": None}).segment_bytes == 1 << 30
    with pytest.raises(InvalidConfig, match="no topic configuration"):
        config.with_properties({"segment.byte": None})


def test_what_an_older_kafka_stored_is_taken() -> None:
    stored = {"segment.bytes": "4096", "message.format.version": "3.0", "flush.ms": "7"}
    config = LogConfig.from_stored(stored)
    assert (config.segment_bytes, config.flush_ms) == (4096, 7)
    with pytest.raises(InvalidConfig, match="from 14 to"):
        LogConfig.from_stored({"segment.bytes": "13"})


def test_what_waits_for_compaction_does_not_wait_in_the_active_segment() -> None:
    lag = LogConfig(segment_ms=100, max_compaction_lag_ms=50)
    assert lag.max_segment_ms == 100
    assert lag.with_properties({"cleanup.policy": "compact"}).max_segment_ms == 50


def test_jitter_stays_below_its_limit_and_the_segments_time() -> None:
    assert LogConfig().random_jitter_ms() == 0
    drawn = {LogConfig(segment_jitter_ms=100, segment_ms=3).random_jitter_ms() for _ in range(200)}
    assert drawn == {0, 1, 2}


ALONE = """
import sys, types, octavo
package = sys.modules["octavo.log"] = types.ModuleType("octavo.log")  # so that nothing comes by way of the package
package.__path__ = [octavo.__path__[0] + "/log"]
from octavo.log import names, retention
from octavo.log.config import log_config
from octavo.log.files import clean_shutdown, leader_epochs, meta_properties, partition_metadata
from octavo.log.ownership import lock
print([name for name in ("numpy", "pyarrow", "numba") if name in sys.modules])
"""


def test_small_things_do_not_import_large_ones() -> None:
    done = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
