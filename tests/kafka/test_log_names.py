"""The names of topics, folders and ids: as Apache Kafka has them."""

from __future__ import annotations

import uuid

from octavo.errors import InvalidInput
from octavo.log.files.meta_properties import read_uuid, write_uuid
from octavo.log.names import (
    Aside,
    AsideFolder,
    TopicPartition,
    aside_folder_name,
    is_internal_topic,
    topic_name_problem,
)
from tests.kafka.judge import Judge
from tests.kafka.log_questions import ask

TOPICS = [
    "events",
    "a.b_c-D9",
    ".",
    "..",
    "...",
    "",
    "a b",
    "é",
    "x" * 249,
    "x" * 250,
    "-",
    "a/b",
    "a\n",
    "__consumer_offsets",
]
TOPICS += ["__transaction_state", "__share_group_state", "__cluster_metadata", "__transaction_state2"]
FOLDERS = ["events-0", "a-b-12", "--3", "-3", "events", "events-", "events-x", "events-2147483647", "events-2147483648"]
ASIDES = ["events-0.abc-delete", "events-0.abc-stray", "events-0.abc-future", "events-delete", "events-0-delete"]
ASIDES += ["a.b-1.c-delete", "events.abc-delete", "events-0.-delete", "events-0. -delete", "events-x.abc-stray"]


def test_topics_may_be_called_what_kafka_lets_them(kafka_broker: Judge) -> None:
    for topic, answer in zip(TOPICS, ask(kafka_broker, "topic", TOPICS), strict=True):
        assert (topic_name_problem(topic) is None) == (answer.error is None), topic
        if answer.error is None:
            assert is_internal_topic(topic) == (answer.value == "true"), topic


def test_folders_are_read_as_kafka_reads_them(kafka_broker: Judge) -> None:
    for name, answer in zip(FOLDERS, ask(kafka_broker, "folder", FOLDERS), strict=True):
        partition = TopicPartition.parse(name)
        assert (None if partition is None else [*partition]) == answer.value, name
    for name, answer in zip(ASIDES, ask(kafka_broker, "folder", ASIDES), strict=True):
        aside = AsideFolder.parse(name)
        assert (None if aside is None else [*aside.partition]) == answer.value, name


def test_folders_are_put_aside_under_kafkas_names(kafka_broker: Judge) -> None:
    partitions = [TopicPartition(topic, number) for topic in ("events", "x" * 249) for number in (0, 123456)]
    for partition, answer in zip(partitions, ask(kafka_broker, "aside", [[*each] for each in partitions]), strict=True):
        assert partition.folder == answer.value[0]
        for why, theirs in zip((Aside.DELETE, Aside.STRAY, Aside.FUTURE), answer.value[1:], strict=True):
            ours = aside_folder_name(partition, why)
            length = len(uuid.uuid4().hex)
            ends = [len(name) - len(why.value) for name in (ours, theirs)]
            assert ours[: ends[0] - length] == theirs[: ends[1] - length]
            assert len(ours) == len(theirs)
            parsed = AsideFolder.parse(theirs)
            assert parsed is not None
            assert (parsed.why, parsed.partition.partition) == (why, partition.partition)


def test_ids_are_kafkas(kafka_broker: Judge) -> None:
    ours = [uuid.uuid4() for _ in range(100)]
    texts = [write_uuid(each) for each in ours]
    assert [answer.value for answer in ask(kafka_broker, "uuid", texts)] == texts
    odd = [
        "",
        "a",
        "A" * 21,
        "A" * 22,
        "A" * 23,
        "A" * 22 + "==",
        "A" * 22 + "=",
        "A" * 21 + "=",
        "A" * 21 + "+",
        "A" * 24,
    ]
    odd += ["A" * 21 + "/", "A" * 21 + "B", "A" * 21 + " ", " " + "A" * 22, "A" * 22 + "\n", "-" * 22, "A" * 21 + "é"]
    for text, answer in zip(odd, ask(kafka_broker, "uuid", odd), strict=True):
        try:
            assert write_uuid(read_uuid(text)) == answer.value, text
        except InvalidInput:
            assert answer.error is not None, text
