"""`octavo topics`: list, describe, create, change and delete topics, as Kafka's kafka-topics does."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from octavo.cli.broker_options import add_broker_options, given_cluster
from octavo.cli.exits import FINE
from octavo.errors import ErrorCode, InvalidInput, RequestFailed

if TYPE_CHECKING:
    from octavo.client.cluster import Cluster

_DESCRIPTION: Final = """\
Lists, describes, creates, changes and deletes topics, through any broker of the cluster, Octavo's or Apache Kafka's.
The options are those of Kafka's kafka-topics, and so is what is printed.
"""

_EPILOG: Final = """\
examples:
  octavo topics --list
  octavo topics --create --topic orders --partitions 6 --config retention.ms=3600000
  octavo topics --describe --topic orders
  octavo topics --alter --topic orders --partitions 12
  octavo topics --delete --topic orders -b 127.0.0.1:9093

Exit codes: 0 done, 2 could not: the broker does not answer, or refuses.
"""

_TOPIC: Final = 2  # the type of a resource
_OF_TOPIC: Final = 1  # the source of a setting
_BY_DEFAULT: Final = -1  # the broker's default for partitions or replicas


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `octavo topics` and its options to the parser."""
    parser = commands.add_parser(
        "topics",
        help="list, describe, create, change and delete topics of a cluster",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--list", action="store_true", help="print the names of all topics")
    what.add_argument("--describe", action="store_true", help="print partitions and settings")
    what.add_argument("--create", action="store_true", help="create a topic")
    what.add_argument("--alter", action="store_true", help="give a topic more partitions")
    what.add_argument("--delete", action="store_true", help="delete a topic, with all its records")
    parser.add_argument("--topic", metavar="NAME", help="the topic (--describe: all topics if it is not given)")
    parser.add_argument("--partitions", metavar="N", type=int, help="the number of partitions, in all")
    parser.add_argument("--replication-factor", metavar="N", type=int, help="the number of replicas of each partition")
    parser.add_argument(
        "--config", metavar="NAME=VALUE", action="append", default=[], help="--create: a setting; may be repeated"
    )
    parser.add_argument("--if-exists", action="store_true", help="do nothing if there is no such topic")
    parser.add_argument("--if-not-exists", action="store_true", help="do nothing if there is such a topic")
    parser.add_argument("--exclude-internal", action="store_true", help="leave out the topics of Kafka itself")
    add_broker_options(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Do what the options say."""
    if arguments.topic is None and (arguments.create or arguments.alter or arguments.delete):
        raise InvalidInput("--topic is missing: the name of the topic")
    if arguments.alter and arguments.partitions is None:
        raise InvalidInput("--partitions is missing: nothing else of a topic can be altered here")
    with given_cluster(arguments) as cluster:
        if arguments.list:
            for topic in _topics(cluster, arguments):
                print(topic.name)
        elif arguments.describe:
            for topic in _topics(cluster, arguments):
                _describe(cluster, topic)
        else:
            passes = set()
            if arguments.if_exists:
                passes = {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
            elif arguments.if_not_exists:
                passes = {ErrorCode.TOPIC_ALREADY_EXISTS}
            try:
                _change(cluster, arguments)
            except RequestFailed as error:
                if error.code not in passes:
                    raise
    return FINE


def _topics(cluster: Cluster, arguments: argparse.Namespace) -> list[Any]:
    name: str | None = arguments.topic
    found = cluster.metadata().topics
    topics = [each for each in found if name in (None, each.name)]
    if name is not None and not topics and not arguments.if_exists:
        raise RequestFailed(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name}")
    if arguments.exclude_internal:
        topics = [each for each in topics if not each.is_internal]
    return sorted(topics, key=lambda each: str(each.name))


def _change(cluster: Cluster, arguments: argparse.Namespace) -> None:
    if arguments.create:
        _create(cluster, arguments)
        print(f"Created topic {arguments.topic}.")
    elif arguments.alter:
        _alter(cluster, arguments.topic, arguments.partitions)
    else:
        _delete(cluster, arguments.topic)


def _create(cluster: Cluster, arguments: argparse.Namespace) -> None:
    from octavo.broker.wire.api_keys import CREATE_TOPICS
    from octavo.client.connection import check, only

    wanted = {
        "name": arguments.topic,
        "num_partitions": _BY_DEFAULT if arguments.partitions is None else arguments.partitions,
        "replication_factor": _BY_DEFAULT if arguments.replication_factor is None else arguments.replication_factor,
        "assignments": [],
        "configs": [{"name": name, "value": value} for name, value in _settings(arguments.config)],
    }
    timeout_ms = round(arguments.timeout * 1000)
    answer = cluster.controller().ask(
        CREATE_TOPICS, {"topics": [wanted], "timeout_ms": timeout_ms, "validate_only": False}
    )
    subject = f"topic {arguments.topic}"
    check(only(answer.topics, subject), subject)


def _settings(given: list[str]) -> Iterator[tuple[str, str]]:
    for each in given:
        name, separator, value = each.partition("=")
        if not separator or not name:
            raise InvalidInput(f"--config {each}: it must be NAME=VALUE")
        yield name.strip(), value


def _alter(cluster: Cluster, topic: str, partitions: int) -> None:
    from octavo.broker.wire.api_keys import CREATE_PARTITIONS
    from octavo.client.connection import check, only

    wanted = {"name": topic, "count": partitions, "assignments": None}
    answer = cluster.controller().ask(
        CREATE_PARTITIONS, {"topics": [wanted], "timeout_ms": 30_000, "validate_only": False}
    )
    subject = f"topic {topic}"
    check(only(answer.results, subject), subject)


def _delete(cluster: Cluster, topic: str) -> None:
    from octavo.broker.wire.api_keys import DELETE_TOPICS
    from octavo.client.connection import check, only

    answer = cluster.controller().ask(
        DELETE_TOPICS,
        {"topics": [{"name": topic, "topic_id": bytes(16)}], "topic_names": [topic], "timeout_ms": 30_000},
    )
    subject = f"topic {topic}"
    check(only(answer.responses, subject), subject)


def _describe(cluster: Cluster, topic: Any) -> None:
    """Print a topic as kafka-topics prints it."""
    from octavo.broker.wire.api_keys import DESCRIBE_CONFIGS
    from octavo.client.connection import check, only
    from octavo.records.uuid_text import write_uuid

    answer = cluster.any().ask(
        DESCRIBE_CONFIGS,
        {"resources": [{"resource_type": _TOPIC, "resource_name": topic.name, "configuration_keys": None}]},
    )
    subject = f"topic {topic.name}"
    told = only(answer.results, subject)
    check(told, subject)
    settings = [each for each in told.configs if each.config_source == _OF_TOPIC]
    fields = {
        "Topic": topic.name,
        "TopicId": write_uuid(UUID(bytes=topic.topic_id)),
        "PartitionCount": len(topic.partitions),
        "ReplicationFactor": len(topic.partitions[0].replica_nodes) if topic.partitions else 0,
        "Configs": ",".join(f"{each.name}={each.value}" for each in settings),
    }
    print("\t".join(f"{name}: {value}" for name, value in fields.items()))
    for partition in _partitions(cluster, topic):
        leader = "none" if partition.leader_id < 0 else partition.leader_id
        lists = {
            "Replicas": partition.replica_nodes,
            "Isr": partition.isr_nodes,
            "Elr": getattr(partition, "eligible_leader_replicas", None),
            "LastKnownElr": getattr(partition, "last_known_elr", None),
        }
        nodes = "".join(
            f"\t{name}: {'N/A' if nodes is None else ','.join(map(str, nodes))}" for name, nodes in lists.items()
        )
        print(f"\tTopic: {topic.name}\tPartition: {partition.partition_index}\tLeader: {leader}{nodes}")


def _partitions(cluster: Cluster, topic: Any) -> Iterator[Any]:
    """Yield the partitions of a topic, from the API that knows most of them."""
    from octavo.broker.wire.api_keys import DESCRIBE_TOPIC_PARTITIONS
    from octavo.client.connection import check, only

    connection, cursor = cluster.any(), None
    if not connection.serves(DESCRIBE_TOPIC_PARTITIONS):
        yield from sorted(topic.partitions, key=lambda each: int(each.partition_index))
        return
    while True:
        answer = connection.ask(
            DESCRIBE_TOPIC_PARTITIONS,
            {"topics": [{"name": topic.name}], "response_partition_limit": 2000, "cursor": cursor},
        )
        subject = f"topic {topic.name}"
        told = only(answer.topics, subject)
        check(told, subject)
        yield from told.partitions
        if answer.next_cursor is None:
            return
        cursor = vars(answer.next_cursor)
