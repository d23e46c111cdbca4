"""The clients that write lines for a word count, and read its counts: `Words`."""

from __future__ import annotations

import time
from collections import Counter
from random import Random
from types import TracebackType
from typing import Final, Self

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from tests.kafka.word_count import APPLICATION, CHANGELOG, COUNTS, LINES, PATIENCE_S

PARTITIONS: Final = 2
_AT_ONCE: Final = 20  # lines
_VOCABULARY: Final = [f"word{number}" for number in range(40)]
_QUICK: Final[dict[str, str | int | float | bool]] = {
    "log_level": 0,
    "reconnect.backoff.ms": 5,
    "reconnect.backoff.max.ms": 50,
}


class Words:
    """A producer of lines, and a consumer of counts, which reads what is committed."""

    def __init__(self, address: str, random: Random) -> None:
        """Create the topics of the application."""
        self._random: Final = random
        self._client: Final = {"bootstrap.servers": address, **_QUICK}
        self._admin: Final = AdminClient(self._client)
        self._producer: Final = Producer(self._client)
        self._consumer: Final = self._reader(COUNTS)
        self._written = 0  # lines
        self.words: Final[Counter[str]] = Counter()  # how often each was written
        self.counts: Final[dict[str, list[int]]] = {}  # of each word, in the order in which they were read
        self.count_of_counts = 0
        topics = [NewTopic(name, PARTITIONS, 1) for name in (LINES, COUNTS)]
        for future in self._admin.create_topics(topics).values():
            future.result(PATIENCE_S)

    def _reader(self, topic: str) -> Consumer:
        consumer = Consumer(
            {
                "group.id": "reader",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
                **self._client,
            }
        )
        consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
        return consumer

    def write(self) -> None:
        """Write some more lines of up to eight words."""
        for _ in range(_AT_ONCE):
            line = self._random.choices(_VOCABULARY, k=self._random.randrange(1, 9))
            self._producer.produce(LINES, " ".join(line), partition=self._written % PARTITIONS)
            self._written += 1
            self.words.update(line)
        assert self._producer.flush(PATIENCE_S) == 0

    def go_on(self, count: int) -> None:
        """Write lines until so many more counts have been read."""
        wanted = self.count_of_counts + count
        deadline = time.monotonic() + PATIENCE_S
        while self.count_of_counts < wanted:
            assert time.monotonic() < deadline, f"only {self.count_of_counts} of {wanted} counts are there"
            self.write()
            self._read(0.02)

    def read_the_rest(self) -> None:
        """Read until there is a count for each word that was written, and then to the end of the topic."""
        wanted = self.words.total()
        deadline = time.monotonic() + PATIENCE_S
        while self.count_of_counts < wanted:
            assert time.monotonic() < deadline, f"only {self.count_of_counts} of {wanted} counts are there"
            self._read(0.2)
        self._consumer.close()

    def read_everything(self) -> dict[str, list[int]]:
        """Return the counts of each word as a reader sees them who begins anew."""
        counts: dict[str, list[int]] = {}
        for word, value in self._read_all(COUNTS):
            counts.setdefault(word, []).append(int(value))
        return counts

    def read_changelog(self) -> dict[str, int]:
        """Return the last count of each word in the changelog."""
        return {word: int.from_bytes(value) for word, value in self._read_all(CHANGELOG)}

    def _read(self, timeout_s: float) -> None:
        for message in self._consumer.consume(1000, timeout_s):
            if message.error() is None:
                word, value = _content(message)
                self.counts.setdefault(word, []).append(int(value))
                self.count_of_counts += 1

    def _read_all(self, topic: str) -> list[tuple[str, bytes]]:
        consumer = self._reader(topic)
        records: list[tuple[str, bytes]] = []
        ended: set[int | None] = set()
        while len(ended) < PARTITIONS:
            for message in consumer.consume(1000, 1):
                if message.error() is None:
                    records.append(_content(message))
                else:
                    ended.add(message.partition())
        consumer.close()
        return records

    def settings(self, topic: str) -> dict[str, str | None]:
        """Return the settings of a topic."""
        resource = ConfigResource(ResourceType.TOPIC, topic)
        told = self._admin.describe_configs([resource])[resource].result(PATIENCE_S)
        return {name: entry.value for name, entry in told.items()}

    def wait_for_purge(self, topic: str) -> None:
        """Return when records of each partition have been deleted."""
        consumer = self._reader(topic)
        deadline = time.monotonic() + PATIENCE_S
        for number in range(PARTITIONS):
            while not consumer.get_watermark_offsets(TopicPartition(topic, number), PATIENCE_S)[0]:
                assert time.monotonic() < deadline, f"nothing was deleted of {topic}-{number}"
        consumer.close()

    def lines_left(self) -> int:
        """Return how many lines the application has not committed as read."""
        partitions = [TopicPartition(LINES, number) for number in range(PARTITIONS)]
        asked = [ConsumerGroupTopicPartitions(APPLICATION, partitions)]
        told = self._admin.list_consumer_group_offsets(asked)[APPLICATION].result(PATIENCE_S)
        committed: int = sum(each.offset for each in told.topic_partitions)
        return self._written - committed

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._consumer.close()


def _content(message: Message) -> tuple[str, bytes]:
    key, value = message.key(), message.value()
    assert isinstance(key, bytes)
    assert isinstance(value, bytes)
    return key.decode(), value
