"""`octavo handover`: prepare a data directory for Apache Kafka."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from octavo.cli.exits import FINE

if TYPE_CHECKING:
    from octavo.log.metadata import Handover

_DESCRIPTION: Final = """\
Makes a data directory one that a stock Apache Kafka 4.x starts on and serves, with the ids and configurations that its
topics have. Several folders are one directory on several disks: name all of them.

Nothing in the logs is changed, except that a commit of staged batches (as Spark makes them) is finished if it was
interrupted. Metadata are written where they are missing or wrong: leader epochs and folders of
partitions are set right, and topics that the metadata do not know are added. These are then kept for ever
(retention.ms=-1), because nobody can tell how long they were meant to be kept; only Kafka's own __consumer_offsets and
__transaction_state are compacted instead (cleanup.policy=compact). The output names what was added, what Kafka's
default retention would delete, the lines that server.properties needs, and where these are not what Kafka was running
with.

The directory must not be in use. What Kafka would not start on is refused, with the reason, and left as it is.
"""

_EPILOG: Final = """\
example:
  octavo handover /var/lib/octavo

Exit codes: 0 it can be started on, 2 it cannot, or is in use.
"""

_REMOTE: Final = "remote.log.storage.system.enable"
_SHOWN: Final = 10  # the most names in a list; the rest are only counted


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `octavo handover` and its options to the parser."""
    parser = commands.add_parser(
        "handover",
        help="make a data directory one that Apache Kafka serves",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folders", metavar="DIR", nargs="+", help="a folder of partitions")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Prepare the data directory for Apache Kafka, and print what to do next."""
    from octavo.log import handover
    from octavo.log.partition_folders import folder_paths

    for line in _lines(handover(folder_paths(arguments.folders))):
        print(line)
    return FINE


def _lines(done: Handover) -> list[str]:
    partitions = sum(done.topics.values())
    lines = [
        f"{', '.join(map(str, done.folders))}: ready for Apache Kafka 4.x",
        f"  node {done.node_id} of cluster {done.cluster_id}, "
        f"{_count(len(done.topics), 'topic')}, {_count(partitions, 'partition')}",
    ]
    if done.finished_commit:
        lines.append("  a commit that was interrupted is finished: all its records are in the logs")
    lines += _adopted(done)
    if done.raised:
        lines.append(f"  leader epochs brought up to those of the logs: {_some(done.raised)}")
    if done.missing:
        lines.append(f"  without a folder, Kafka makes them empty: {_some(done.missing)}")
    if done.unclean:
        lines.append(f"  not closed in good order, Kafka checks the logs when it starts: {_some(done.unclean)}")
    if done.remote:
        lines += _remote(done)
    if done.expiring:
        lines += _expiring(done)
    lines += ["", "Start Kafka with these lines in its server.properties (do not format the directory):", ""]
    lines += [f"  {name}={value}" for name, value in done.settings.items()]
    if done.remote:
        lines += [
            f"  {_REMOTE}=true",
            "  and its other lines that begin with remote.log., rsm.config. and rlmm.config.",
        ]
    lines += ["", "  bin/kafka-server-start.sh server.properties"]
    if done.differences:
        lines += [
            "",
            "These lines are not what Kafka was running with. Keep the lines that it had, where you have them:",
            "",
        ]
        lines += [f"  {name}: {before}" for name, before in done.differences]
    return lines


def _remote(done: Handover) -> list[str]:
    from octavo.log.tiers import list_parts

    return [
        f"  {_count(len(done.remote), 'partition')} of tiered topics, whose older records are in remote storage. Start "
        "Kafka with the settings of its remote storage: without them it serves what is on this disk, and forgets, when "
        "it is stopped, where these partitions begin:",
        *(f"    {each}" for each in list_parts(done.remote)),
    ]


def _expiring(done: Handover) -> list[str]:
    from octavo.log.directory.by_default import list_sizes

    lists = list_sizes(done.expiring)
    return [
        f"  Kafka would delete {sum(done.expiring.values()):,} bytes by its default of log.retention.hours=168, unless "
        "server.properties or retention.ms of the topics say otherwise:",
        *(f"    {each}" for each in lists),
    ]


def _adopted(done: Handover) -> list[str]:
    from octavo.log.metadata.handover import COMPACTED_TOPICS

    lines = []
    known = tuple(topic for topic in done.adopted if topic in COMPACTED_TOPICS)
    others = tuple(topic for topic in done.adopted if topic not in COMPACTED_TOPICS)
    if known:
        lines.append(f"  not in the metadata until now: {_some(known)}. Kafka compacts them (cleanup.policy=compact)")
    if others:
        lines.append(
            f"  not in the metadata until now: {_some(others)}. "
            "Their configuration is not known: they are kept for ever (retention.ms=-1) until you say otherwise"
        )
    return lines


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("" if number == 1 else "s")


def _some(names: tuple[object, ...]) -> str:
    shown = ", ".join(map(str, names[:_SHOWN]))
    return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN:,} more"
