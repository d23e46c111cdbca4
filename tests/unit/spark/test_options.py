"""Options: what is wrong is told in one sentence, before anything is read."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from octavo.errors import BadDirectory, OctavoError
from octavo.log.names import TopicPartition
from octavo.spark import OctavoSource
from octavo.spark.options import read_options
from tests.unit.spark.queries import plan, read
from tests.unit.spark.topics import write_topic

TOPICS = "subscribe, subscribepattern, assign"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {"subscribe": "a", "assign": "{}"},
            "Only one of the following options can be specified for Kafka source: "
            f"{TOPICS}. See the docs for more details.",
        ),
        ({"assign": "x"}, "No topicpartitions to assign as specified value for option 'assign' is 'x'"),
        ({"assign": '{"a":0}'}, 'Expected e.g. {"topicA":[0,1],"topicB":[0,1]}, got {"a":0}'),
        ({"subscribe": " "}, "No topics to subscribe to as specified value for option 'subscribe' is ' '"),
        (
            {"subscribePattern": ""},
            "Pattern to subscribe is empty as specified value for option 'subscribePattern' is ''",
        ),
        ({"startingOffsets": "foo"}, 'Expected e.g. {"topicA":{"0":23,"1":-1},"topicB":{"0":-2}}, got foo'),
        ({"startingTimestamp": "x"}, "Expected a single long value, got x"),
        ({"startingTimestamp": " 1_000 "}, "Expected a single long value, got 1_000"),
        ({"endingTimestamp": str(1 << 63)}, "Expected a single long value, got 9223372036854775808"),
        ({"minPartitions": "0"}, "minPartitions must be positive"),
        ({"maxRecordsPerPartition": "0"}, "maxRecordsPerPartition must be positive"),
        (
            {"minOffsetsPerTrigger": "5", "maxOffsetsPerTrigger": "4"},
            "The value of minOffsetPerTrigger(5) is higher than the maxOffsetsPerTrigger(4).",
        ),
        ({"failOnDataLoss": "x"}, "failOnDataLoss cannot be 'x': it is true or false"),
        ({"isolation.level": "x"}, "isolation.level cannot be 'x': it is one of read_uncommitted, read_committed"),
        (
            {"kafka.isolation.level": "x"},
            "kafka.isolation.level cannot be 'x': it is one of read_uncommitted, read_committed",
        ),
        (
            {"kafka.auto.offset.reset": "earliest"},
            "Kafka option 'auto.offset.reset' is not supported. Instead set the source option 'startingoffsets' to "
            "'earliest' or 'latest' to specify where to start.",
        ),
        (
            {"kafka.key.deserializer": "x"},
            "Kafka option 'key.deserializer' is not supported as keys are deserialized as byte arrays with "
            "ByteArrayDeserializer. Use DataFrame operations to explicitly deserialize the keys.",
        ),
        ({"kafka.enable.auto.commit": "true"}, "Kafka option 'enable.auto.commit' is not supported"),
        (
            {"startingOffsets": '{"a":{"0":4}}', "endingOffsets": '{"a":{"0":2}}'},
            "The specified start offset 4 is greater than the end offset 2 for topic a partition 0.",
        ),
        (
            {"startingOffsetsByTimestamp": '{"a":{"0":9}}', "endingOffsetsByTimestamp": '{"a":{"0":8}}'},
            "The specified start timestamp 9 is greater than the end timestamp 8 for topic a partition 0.",
        ),
        (
            {"startingOffsets": '{"a":{"0":1}}', "endingOffsets": '{"a":{"0":2,"1":2}}'},
            "The specified start offset and end offset should have the same topic-partitions. "
            "Topic-partitions for start offset: a-0, topic-partitions for end offset: a-0, a-1.",
        ),
        ({"compresion": "lz4"}, "there is no option 'compresion'; is compression meant?"),  # it may be for writing
        ({"startingOffset": "latest"}, "there is no option 'startingOffset'; is startingOffsets meant?"),
        (
            {"onCorruption": "quarantine"},
            "onCorruption = quarantine needs the option quarantinePath: a folder for what is put aside",
        ),
        ({"maxTriggerDelay": "soon"}, "maxTriggerDelay cannot be 'soon': it is a duration, such as 30s or 15m"),
        ({"columns": "offset,vlaue"}, "columns: there is no column 'vlaue'; is value meant?"),
        ({"columns": "offset,Offset"}, "columns: offset is named twice"),
    ],
)
def test_a_wrong_option_is_answered_when_it_is_loaded(tmp_path: Path, options: dict[str, str], sentence: str) -> None:
    write_topic(tmp_path, "a", batches=1)
    with pytest.raises(OctavoError) as refused:
        OctavoSource({"path": str(tmp_path)} | options).schema()
    assert str(refused.value) == sentence


def test_a_topic_that_is_not_there_is_answered_with_the_nearest(tmp_path: Path) -> None:
    for topic in ("orders", "returns", *(f"t{number}" for number in range(100))):
        (tmp_path / f"{topic}-0").mkdir()
    for options, sentence in (
        ({"subscribe": "t7,Order"}, f"there is no topic 'Order' in {tmp_path}; is 'orders' meant?"),
        ({"assign": '{"return":[0]}'}, f"there is no partition return-0 in {tmp_path}; is 'returns' meant?"),
        (
            {"subscribe": "customers"},
            f"there is no topic 'customers' in {tmp_path}; "
            "there are 'orders', 'returns', 't0', 't1', 't10' and 97 more",
        ),
    ):
        with pytest.raises(OctavoError) as refused:
            OctavoSource({"path": str(tmp_path)} | options).schema()
        assert str(refused.value) == sentence


def test_a_pattern_that_matches_nothing_warns_when_it_is_loaded(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_topic(tmp_path, "a", batches=1)
    OctavoSource({"path": str(tmp_path), "subscribePattern": "a.*"}).schema()
    assert not caplog.messages
    OctavoSource({"path": str(tmp_path), "subscribePattern": "b.*"}).schema()
    assert caplog.messages == ["no topic matches subscribePattern = b.*: there is nothing to read, or not yet"]


def test_paths_and_topics_are_looked_for_when_it_is_loaded(tmp_path: Path) -> None:
    with pytest.raises(OctavoError, match="the option path is missing"):
        OctavoSource({})
    with pytest.raises(BadDirectory, match="there is no such file or folder"):
        OctavoSource({"path": str(tmp_path / "nowhere")}).schema()
    with pytest.raises(BadDirectory, match="no file and no folder matches this pattern"):
        OctavoSource({"path": str(tmp_path / "no*")}).schema()
    with pytest.raises(BadDirectory, match="there is no partition here"):
        OctavoSource({"path": str(tmp_path)}).schema()
    write_topic(tmp_path, "a", batches=1)
    with pytest.raises(OctavoError, match=r"there is no topic 'b' in .*; there is 'a'$"):
        OctavoSource({"path": str(tmp_path), "subscribe": "a,b"}).schema()
    with pytest.raises(OctavoError, match=r"there is no partition b-0 in .*; there is 'a'$"):
        OctavoSource({"path": str(tmp_path), "assign": '{"b":[0]}'}).schema()
    with pytest.raises(OctavoError, match="Partitions specified for Kafka start offsets don't match"):
        OctavoSource({"path": str(tmp_path), "startingOffsets": '{"a":{"0":1,"1":1}}'}).schema()
    with pytest.raises(OctavoError, match=r"there is no partition a-7 in .*; of 'a' there are 1, from 0 to 0$"):
        OctavoSource({"path": str(tmp_path), "assign": '{"a":[7]}'}).schema()
    write_topic(tmp_path, "c", batches=1)
    with pytest.raises(OctavoError, match="Partitions specified for Kafka start offsets don't match"):
        plan(tmp_path, startingOffsets='{"a":{"0":1}}')


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"startingOffsets": "latest"}, "starting offset can't be latest for batch queries on Kafka"),
        ({"startingOffsets": '{"a":{"0":-1}}'}, "startingOffsets for a-0 can't be latest for batch queries on Kafka"),
        ({"endingOffsets": "earliest"}, "ending offset can't be earliest for batch queries on Kafka"),
        ({"endingOffsets": '{"a":{"0":-2}}'}, "ending offset for a-0 can't be earliest for batch queries on Kafka"),
        (
            {"startingTimestamp": "99999999999999"},
            "No offset matched from request of topic-partition a-0 and timestamp 99999999999999.",
        ),
    ],
)
def test_what_only_a_stream_can_have_is_refused_by_a_batch_query(
    tmp_path: Path, options: dict[str, str], sentence: str
) -> None:
    write_topic(tmp_path, "a", batches=1)
    with pytest.raises(OctavoError) as refused:
        plan(tmp_path, **options)
    assert str(refused.value) == sentence


def test_a_stream_has_no_end(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write_topic(tmp_path, "a", batches=1)
    for options, sentence in (
        ({"endingOffsets": "latest"}, "ending offset not valid in streaming queries"),
        ({"endingOffsetsByTimestamp": '{"a":{"0":5}}'}, "ending timestamp not valid in streaming queries"),
    ):
        source = OctavoSource({"path": str(tmp_path)} | options)
        with pytest.raises(OctavoError, match=sentence):
            source.streamReader(source.schema())
    source = OctavoSource({"path": str(tmp_path), "endingTimestamp": "5"})
    source.streamReader(source.schema())
    assert caplog.messages == ["endingTimestamp option ignored in streaming queries"]


def test_a_batch_query_tells_which_options_are_for_streams(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write_topic(tmp_path, "a", batches=1)
    plan(tmp_path)
    assert caplog.messages == []
    plan(tmp_path, maxOffsetsPerTrigger="5", maxTriggerDelay="1s")
    assert caplog.messages == [
        "maxOffsetsPerTrigger option ignored in batch queries",
        "maxTriggerDelay option ignored in batch queries",
    ]


def test_offsets_that_mean_the_ends_of_the_log_are_compared_with_no_others() -> None:
    options = read_options(
        {"path": "/a", "startingOffsets": '{"a":{"0":4,"1":-2}}', "endingOffsets": '{"a":{"0":-1,"1":0}}'}
    )
    assert options.starting is not None
    assert options.starting.of_each == {TopicPartition("a", 0): 4, TopicPartition("a", 1): -2}


def test_what_means_nothing_without_a_broker_is_taken_with_one_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_topic(tmp_path, "a", batches=1)
    with caplog.at_level(logging.WARNING, "octavo.spark"):
        assert len(read(tmp_path, kafka_bootstrap_servers="x:9092", partition_metadata_cache_ttl_ms="5")) == 5
    (warning,) = caplog.messages
    assert warning.endswith("are ignored: partition.metadata.cache.ttl.ms, kafka.bootstrap.servers")


def test_a_schema_of_the_users_own_is_refused(tmp_path: Path) -> None:
    write_topic(tmp_path, "a", batches=1)
    source = OctavoSource({"path": str(tmp_path)})
    with pytest.raises(OctavoError, match="narrow it by the option columns"):
        source.reader(OctavoSource({"path": str(tmp_path), "columns": "offset"}).schema())


@pytest.mark.parametrize(
    ("text", "delay_ms"), [("500", 500), ("500ms", 500), ("30s", 30_000), ("15m", 900_000), ("2h", 7_200_000)]
)
def test_durations_are_read_as_spark_reads_them(text: str, delay_ms: int) -> None:
    assert read_options({"path": "/a", "maxTriggerDelay": text}).max_trigger_delay_ms == delay_ms
    assert read_options({"path": "/a"}).max_trigger_delay_ms == 900_000


def test_several_paths_come_as_a_list_or_with_commas() -> None:
    assert read_options({"paths": '["/a,b", "/c"]'}).paths == ("/a,b", "/c")
    assert read_options({"path": "/a, /c"}).paths == ("/a", "/c")
