"""`octavo cluster status`: how a cluster is, its controllers, brokers and replicas."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from octavo.cli.broker_options import add_broker_options, given_cluster
from octavo.cli.exits import DAMAGE_FOUND, FINE
from octavo.cli.printable import printable
from octavo.cli.tables import Column, Row, print_json, print_table

if TYPE_CHECKING:
    from octavo.client.cluster_status import BrokerStatus, ClusterStatus, PartitionStatus

_DESCRIPTION: Final = """\
Tells how a cluster is, of Apache Kafka, Octavo or both: its controllers and brokers, which partitions nobody leads or
are not replicated as they should be, and how many records each replica is behind. Any broker can be asked.
"""

_EPILOG: Final = """\
examples:
  octavo cluster status
  octavo cluster status -b 10.0.0.1:9092 --all            every partition, not only those in trouble
  octavo cluster status --topic orders --json | jq .partitions

LAG is in records, as each replica told a moment ago: `2:0 3:15` means that broker 3 is 15 records behind the leader.
METADATA-LAG is what a broker has not read yet of the controllers' log; some records are usual. `-`: nobody told it.

Exit codes: 0 all brokers serve and all replicas are in sync, 1 something is not as it should be, 2 could not ask.
"""

_CONTROLLERS: Final = (
    Column("CONTROLLER", "id", 10),
    Column("ADDRESS", "address", 21),
    Column("ROLE", "role", 8),
    Column("LAG", "lag", 0),
)
_BROKERS: Final = (
    Column("BROKER", "id", 10),
    Column("ADDRESS", "address", 21),
    Column("RACK", "rack", 8),
    Column("STATE", "state", 11),
    Column("LEADS", "leads", 7),
    Column("REPLICAS", "replicas", 8),
    Column("LAG", "lag", 8),
    Column("METADATA-LAG", "metadataLag", 0),
)
_PARTITIONS: Final = (
    Column("TOPIC", "topic", 10),
    Column("PARTITION", "partition", 9),
    Column("LEADER", "leader", 6),
    Column("REPLICAS", "replicas", 8),
    Column("ISR", "isr", 8),
    Column("LAG", "lag", 15),
    Column("STATE", "state", 0),
)


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `octavo cluster` and its options to the parser."""
    parser = commands.add_parser(
        "cluster",
        help="tell how a cluster is: brokers, controllers, lag of replicas",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("what", metavar="status", choices=["status"], help="what to do")
    parser.add_argument(
        "--topic", metavar="NAME", action="append", help="look at this topic instead of all; may be repeated"
    )
    parser.add_argument("--all", action="store_true", help="list partitions that are in sync, too")
    parser.add_argument("--json", action="store_true", help="print all of it as one JSON object")
    add_broker_options(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Ask, and print what was told."""
    from octavo.client.cluster_status import cluster_status

    with given_cluster(arguments) as cluster:
        status = cluster_status(cluster, arguments.topic)
    if arguments.json:
        print_json([_object(status)])
    else:
        _print(status, with_all=arguments.all)
    return FINE if status.is_well else DAMAGE_FOUND


def _object(status: ClusterStatus) -> Row:
    return {
        "clusterId": status.cluster_id,
        "leaderEpoch": status.leader_epoch,
        "isWell": status.is_well,
        "controllers": [
            {"id": each.id, "address": each.address, "isActive": each.is_active, "lag": each.lag}
            for each in status.controllers
        ],
        "brokers": [_broker(each) for each in status.brokers],
        "partitions": [
            {
                "topic": each.topic,
                "partition": each.partition,
                "leader": each.leader if each.leader >= 0 else None,
                "replicas": each.replicas,
                "isr": each.isr,
                "lag": each.lag,
                "state": each.state,
            }
            for each in status.partitions
        ],
    }


def _print(status: ClusterStatus, *, with_all: bool) -> None:
    from octavo.client.cluster_status import IN_SYNC, OFFLINE

    print(f"Cluster {printable(status.cluster_id)}\n")
    print_table(
        _CONTROLLERS,
        [{**each._asdict(), "role": "active" if each.is_active else "follows"} for each in status.controllers],
    )
    if not status.controllers:
        print("no controller is active: brokers go on, but nothing can be changed, and nobody takes over")
    print()
    print_table(_BROKERS, [_broker(each) for each in status.brokers])
    behind = [each for each in status.partitions if each.state != IN_SYNC]
    shown = status.partitions if with_all else behind
    if shown:
        print()
        print_table(_PARTITIONS, [_partition(each) for each in shown])
    offline = sum(each.state == OFFLINE for each in behind)
    fenced = sum(each.is_fenced for each in status.brokers)
    unreached = sum(not (each.is_fenced or each.is_reached) for each in status.brokers)
    print(
        f"\n{len(status.partitions):,} partitions: {len(behind) - offline:,} under-replicated, {offline:,} offline; "
        f"{len(status.brokers):,} brokers: {fenced:,} fenced, {unreached:,} without an answer"
    )


def _broker(each: BrokerStatus) -> Row:
    return {
        "id": each.id,
        "address": each.address,
        "rack": each.rack,
        "state": "fenced" if each.is_fenced else "serves" if each.is_reached else "no answer",
        "leads": each.leads,
        "replicas": each.replicas,
        "lag": each.lag,
        "metadataLag": each.metadata_lag,
    }


def _partition(each: PartitionStatus) -> Row:
    lags = (f"{node}:{'-' if lag is None else lag}" for node, lag in each.lag.items() if node != each.leader)
    return {
        "topic": each.topic,
        "partition": each.partition,
        "leader": each.leader if each.leader >= 0 else "none",
        "replicas": ",".join(map(str, each.replicas)),
        "isr": ",".join(map(str, each.isr)),
        "lag": " ".join(lags),
        "state": each.state,
    }
