"""Options of the sink: Kafka's names for ours, settings of new topics, and one sentence for what is wrong."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from octavo.errors import OctavoError
from octavo.records import Codec
from octavo.spark.sink.options import is_of_the_sink, read_sink_options


def test_an_option_may_have_the_name_of_kafka() -> None:
    ours = {"path": "/log", "partitions": "3", "compression": "zstd", "compressionLevel": "7", "batchSize": "1000"}
    kafkas = {
        "path": "/log",
        "num.partitions": "3",
        "kafka.compression.type": "zstd",
        "compression.zstd.level": "7",
        "kafka.batch.size": "1000",
    }
    found = read_sink_options(ours)
    assert found == read_sink_options(kafkas)
    assert (found.partitions, found.codec, found.level, found.batch_size) == (3, Codec.ZSTD, 7, 1000)
    assert read_sink_options({name.lower(): value for name, value in ours.items()}) == found


def test_settings_of_topics_are_those_of_new_topics() -> None:
    found = read_sink_options({"path": "/log", "cleanup.policy": "compact", "kafka.segment.bytes": "1048576"})
    assert found.topic_config == {"cleanup.policy": "compact", "segment.bytes": "1048576"}


def test_a_path_is_absolute() -> None:
    assert read_sink_options({"path": "file:/log"}).path == Path("/log")
    assert read_sink_options({"path": "file:///log"}).path == Path("/log")
    assert read_sink_options({"path": "log"}).path == Path.cwd() / "log"
    assert read_sink_options({"path": "/log", "stagingPath": "x"}).staging_path == Path.cwd() / "x"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"path": " "}, "the option path is missing: where the log is, as in save('/var/lib/kafka/data')"),
        ({"path": "s3://a/b"}, "path = s3://a/b: a log is written in a folder of a file system, not in a bucket"),
        ({"kafka.value.serializer": "a"}, "Kafka option 'value.serializer' is not supported as value are serialized"),
        ({"topik": "a"}, "there is no option 'topik'; is topic meant?"),
        ({"partitions": "0"}, "partitions must be positive"),
        ({"partitions": "3", "num.partitions": "4"}, "partitions is given twice, as 3 and as 4"),
        ({"compression": "lz5"}, "compression.type cannot be 'lz5'"),
        ({"compression": "snappy", "compressionLevel": "1"}, "the codec snappy has no levels"),
        ({"compression": "gzip", "compressionLevel": "10"}, "compression.gzip.level cannot be '10'"),
        ({"segment.bytes": "1"}, "segment.bytes cannot be '1'"),
        ({"topic": "a/b"}, "a/b"),
        ({"txnAppId": "a"}, "txnAppId and txnVersion go together"),
        (
            {"txnAppId": "a", "txnVersion": "-1"},
            "txnVersion cannot be '-1'",
        ),
        ({"sync": "no"}, "sync cannot be 'no': it is true or false"),
    ],
)
def test_what_is_wrong_is_told_in_a_sentence(options: dict[str, str], sentence: str) -> None:
    with pytest.raises(OctavoError) as told:
        read_sink_options({"path": "/log"} | options)
    assert sentence in str(told.value)


def test_options_about_brokers_are_ignored_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        read_sink_options({"path": "/log", "kafka.bootstrap.servers": "a:9092", "kafka.acks": "all"})
    [record] = caplog.records
    assert record.getMessage() == (
        "without a broker these options mean nothing, and are ignored: kafka.bootstrap.servers, kafka.acks"
    )


def test_which_options_are_of_the_sink_alone() -> None:
    assert is_of_the_sink("topic")
    assert is_of_the_sink("kafka.compression.type")
    assert is_of_the_sink("retention.ms")
    assert is_of_the_sink("checkpointlocation")
    assert not is_of_the_sink("path")
    assert not is_of_the_sink("subscribe")
    assert not is_of_the_sink("kafka.bootstrap.servers")
