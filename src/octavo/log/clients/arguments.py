"""Check the arguments of producers and consumers, and convert those that other Kafka clients take."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping, Sequence
from inspect import signature
from typing import Any, Final

from octavo.errors import InvalidInput, UnknownPartition, WrongCall
from octavo.log.coordinator.offset_and_metadata import OffsetAndMetadata
from octavo.log.directory.data_directory import DataDirectory
from octavo.log.names import TopicPartition, check_topic_name
from octavo.log.watched.watched_directory import WatchedDirectory

FOREVER: Final = float("inf")


def writable_directory(data: object) -> DataDirectory:
    """Return `data` if a producer can write to it. Otherwise raise `WrongCall`."""
    if isinstance(data, DataDirectory):
        return data
    if isinstance(data, WatchedDirectory):
        raise WrongCall("the directory was opened read-only, and a Producer writes: open it without read_only")
    raise WrongCall(f"{_first('Producer', data)}: write Producer(DataDirectory.open('data'), {{...}})")


def readable_directory(data: object) -> DataDirectory | WatchedDirectory:
    """Return `data` if a consumer can read from it. Otherwise raise `WrongCall`."""
    if isinstance(data, DataDirectory | WatchedDirectory):
        return data
    topics = f"[{data!r}]" if isinstance(data, str) else "[...]"
    instead = f"write Consumer(DataDirectory.open('data'), {{...}}), and then subscribe({topics})"
    raise WrongCall(f"{_first('Consumer', data)}: {instead}")


def _first(client: str, data: object) -> str:
    given = "" if data is None else f", not {type(data).__name__}"
    return f"a {client} takes a DataDirectory first{given}, since it works in this process and without brokers"


def check_config(client: str, config: object, more: tuple[object, ...]) -> None:
    """Check that a configuration is a mapping, and that nothing follows it. Raises `WrongCall`."""
    if more or not (config is None or isinstance(config, Mapping)):
        given = ", ".join(map(repr, more or (config,)))
        topics = f": write subscribe([{given}])" if client == "Consumer" else ""
        raise WrongCall(f"a {client} takes a directory and a configuration, a mapping, and not {given}{topics}")


def check_function(name: str, function: object, *arguments: str) -> None:
    """Check that a serializer, deserializer or partitioner takes these arguments. Raises `WrongCall`."""
    if function is None:
        return
    told = f"{name} must be a function of {', '.join(arguments)}"
    if not callable(function):
        raise WrongCall(f"{told}, not {type(function).__name__}")
    try:
        parameters = signature(function)
    except ValueError:
        return  # a builtin without a known signature
    try:
        parameters.bind(*arguments)
    except TypeError:
        raise WrongCall(f"{told}; it takes {parameters}") from None


def deadline_after(timeout: float | None) -> float:
    """Return the end of a time-out in seconds, on the monotonic clock. None waits for ever. Raises `InvalidInput`."""
    if timeout is None:
        return FOREVER
    try:
        if timeout >= 0:
            return time.monotonic() + timeout
    except TypeError:
        pass  # it is no number
    raise InvalidInput(f"a time-out is a number of seconds, or None to wait for ever; not {timeout!r}")


def one_partition(partition: object) -> TopicPartition:
    """Return a partition, given as a `TopicPartition` or as a tuple of topic and number. Raises `WrongCall`."""
    if type(partition) is TopicPartition:
        return partition
    if isinstance(partition, tuple) and len(partition) == 2 and isinstance(partition[0], str):
        return TopicPartition(*partition)
    raise WrongCall(f"a partition is a TopicPartition of octavo.log, or (topic, number); not {partition!r}")


def many_partitions(partitions: Iterable[object]) -> list[TopicPartition]:
    """Return partitions that are given in a list. Raises `WrongCall`."""
    if _is_partition(partitions):
        raise WrongCall(f"partitions are given in a list: write [{partitions!r}]")
    if isinstance(partitions, str):
        raise WrongCall(f"partitions are given in a list, and not by a text: write partitions_for({partitions!r})")
    if not isinstance(partitions, Iterable):
        raise WrongCall(f"partitions are given in a list, and not by {partitions!r}")
    return [one_partition(each) for each in partitions]


def listed_partitions(given: tuple[Any, ...]) -> list[TopicPartition]:
    """Return partitions that are given one by one, as in kafka-python, or in one list. Raises `WrongCall`."""
    if len(given) == 1 and not _is_partition(given[0]):
        return many_partitions(given[0])
    return many_partitions(given)


def _is_partition(value: object) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str)


def subscribed_topics(
    topics: Sequence[str] | re.Pattern[str], pattern: str | re.Pattern[str] | None
) -> frozenset[str] | re.Pattern[str]:
    """Return the topics or the pattern to subscribe to. Raises `InvalidInput`."""
    if pattern is not None:
        if topics:
            raise InvalidInput("subscribe takes topics or a pattern, not both")
        topics = re.compile(pattern)
    if isinstance(topics, re.Pattern):
        return topics
    if isinstance(topics, str):
        raise InvalidInput(f"topics are named in a list, or by a pattern; not by {topics!r}")
    for name in topics:
        if str(name).startswith("^"):  # confluent-kafka's way to give a pattern
            raise WrongCall(f"{name!r} names no topic: write subscribe(pattern={name!r})")
        check_topic_name(name)
    return frozenset(topics)


def offsets_by_partition(offsets: Mapping[Any, Any]) -> dict[TopicPartition, OffsetAndMetadata]:
    """Return offsets to commit, given as numbers or as tuples like `OffsetAndMetadata`. Raises `WrongCall`."""
    if not isinstance(offsets, Mapping):
        raise WrongCall("offsets are given by partition: write {TopicPartition('orders', 0): 17}")
    return {one_partition(partition): _offset(at) for partition, at in offsets.items()}


def times_by_partition(timestamps_ms: Mapping[Any, int]) -> dict[TopicPartition, int]:
    """Return the timestamps to look for, by partition. Raises `WrongCall`."""
    if not isinstance(timestamps_ms, Mapping):
        raise WrongCall("timestamps are given by partition: write {TopicPartition('orders', 0): 1700000000000}")
    return {one_partition(partition): timestamp_ms for partition, timestamp_ms in timestamps_ms.items()}


def _offset(at: object) -> OffsetAndMetadata:
    if isinstance(at, OffsetAndMetadata):
        return at
    if type(at) is int:
        return OffsetAndMetadata(at)
    if isinstance(at, tuple) and 1 <= len(at) <= 3:
        offset, metadata, *epoch = (*at, None, None)[:3]
        return OffsetAndMetadata(offset, metadata or "", *(each for each in epoch if each is not None))
    raise WrongCall(f"an offset is a number or an OffsetAndMetadata of octavo.log, not {at!r}")


def partitions_of(data: DataDirectory | WatchedDirectory, topic: str) -> list[TopicPartition]:
    """Return the partitions of a topic, in order. Raises `UnknownPartition` if there is no such topic."""
    if not isinstance(topic, str):
        raise InvalidInput(f"a topic's name is a text, not {type(topic).__name__}")
    known = data.topics.get(topic) if isinstance(data, DataDirectory) else None
    if known is not None:
        return [TopicPartition(topic, number) for number in sorted(known.partitions)]
    found = [partition for partition in data.partitions() if partition.topic == topic]
    if not found:
        raise UnknownPartition(f"there is no topic {topic!r}: create it first")
    if isinstance(data, WatchedDirectory):
        return found
    return [TopicPartition(topic, number) for number in range(found[-1].partition + 1)]


OneByOne = TopicPartition | Iterable[TopicPartition]  # one partition of several arguments, or all of them in one list
