"""Names of files and folders."""

from __future__ import annotations

import pytest

from octavo.errors import InvalidInput
from octavo.log import names
from octavo.log.names import Aside, AsideFolder, TopicPartition, aside_folder_name, base_offset_of, file_name


def test_a_file_is_named_after_its_base_offset() -> None:
    assert file_name(42, names.LOG) == "00000000000000000042.log"
    assert base_offset_of("00000000000000000042.log") == 42
    assert base_offset_of("00000000000000000042.log.deleted") == 42
    assert base_offset_of("09223372036854775807.timeindex") == 2**63 - 1


@pytest.mark.parametrize(
    "name",
    [
        "42.log",
        "00000000000000000042",  # no suffix
        "0000000000000000004x.log",
        "000000000000000000042.log",
        "-0000000000000000042.log",
        "09223372036854775808.log",  # above every offset
        "0000000000000000004٢.log",  # a digit, but not Kafka's
        "00000000000000000000-0000000001.checkpoint",
        "leader-epoch-checkpoint",
        ".lock",
        "",
    ],
)
def test_other_files_have_no_base_offset(name: str) -> None:
    assert base_offset_of(name) is None


@pytest.mark.parametrize("partition", [TopicPartition("events", 0), TopicPartition("a-b.c_d-1", 2**31 - 1)])
def test_a_folder_is_named_after_its_partition(partition: TopicPartition) -> None:
    assert TopicPartition.parse(partition.folder) == partition
    assert str(partition) == partition.folder


@pytest.mark.parametrize(
    "name", ["events", "events-", "-1", "events-01", "events-+1", "events-2147483648", "a b-1", "..-1"]
)
def test_other_folders_are_no_partitions(name: str) -> None:
    assert TopicPartition.parse(name) is None


@pytest.mark.parametrize("topic", ["", ".", "..", "../victim", "a/b", "a\0b", "a\n", "x" * 250, "ä"])
def test_what_is_no_topics_name_never_becomes_a_path(topic: str) -> None:
    with pytest.raises(InvalidInput, match="topic"):
        _ = TopicPartition(topic, 0).folder
    assert str(TopicPartition(topic, 0)) == f"{topic}-0"  # for a message


@pytest.mark.parametrize("number", [-1, 2**31])
def test_what_is_no_partitions_number_never_becomes_a_path(number: int) -> None:
    with pytest.raises(InvalidInput, match="partition"):
        _ = TopicPartition("events", number).folder


@pytest.mark.parametrize("why", Aside)
def test_a_folder_that_is_put_aside_says_why(why: Aside) -> None:
    partition = TopicPartition("events.of-today", 12)
    name = aside_folder_name(partition, why)
    assert AsideFolder.parse(name) == (partition, why)
    assert TopicPartition.parse(name) is None
    assert name != aside_folder_name(partition, why)


def test_a_long_topic_is_cut_so_that_its_folder_can_be_put_aside() -> None:
    name = aside_folder_name(TopicPartition("x" * 249, 7), Aside.DELETE)
    assert len(name) == 255
    parsed = AsideFolder.parse(name)
    assert parsed is not None
    assert parsed.partition.partition == 7


@pytest.mark.parametrize(
    "name", ["events-1", "events-delete", "events-1-delete", "events.x-delete", "events-1.a.b-gone"]
)
def test_other_folders_are_not_put_aside(name: str) -> None:
    assert AsideFolder.parse(name) is None


@pytest.mark.parametrize("name", ["", ".", "..", "x" * 250, "a b", "ä", "a/b", "a\n"])
def test_a_topic_cannot_be_called_anything(name: str) -> None:
    with pytest.raises(InvalidInput, match="topic"):
        names.check_topic_name(name)


def test_what_kafka_keeps_for_itself_is_internal() -> None:
    assert names.is_internal_topic("__consumer_offsets")
    assert not names.is_internal_topic("events")
