"""The options of `octavo groups`, and which of them go together."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Final

from octavo.cli.broker_options import add_broker_options
from octavo.cli.times import duration_ms, milliseconds
from octavo.errors import InvalidInput

_DESCRIPTION: Final = """\
Lists, describes and deletes consumer groups, of the classic and of the consumer protocol, and resets their offsets,
through any broker of the cluster, Octavo's or Apache Kafka's. The options are those of Kafka's kafka-consumer-groups,
and so is what is printed; --json prints a JSON object a line instead.

--describe prints, for each group:
  --offsets        the committed offsets, and how far they lag behind the ends of the partitions (the default)
  --members        the members, and with --verbose what is assigned to them
  --state          the state, and the coordinator

--reset-offsets prints new offsets for groups that have no members. Nothing is changed unless --execute is given.
  which partitions --topic TOPIC, --topic TOPIC:0,1,2 (both may be repeated), or --all-topics: all that have offsets
  which offsets    --to-earliest, --to-latest     the first offset, or the end
                   --to-offset N, --shift-by N    an offset, or so many more than now (less, if N is negative)
                   --to-current                   the offset as it is; the end where there is none
                   --to-datetime TIME             the first record of this time or later, like 2026-11-16T03:00:00.000
                   --by-duration DURATION         the first record that is not older, like PT36H or P7D
                   --from-file FILE               what --export has printed: lines of topic,partition,offset
An offset that a partition does not have is replaced by its first offset or by its end.
"""

_EPILOG: Final = """\
examples:
  octavo groups --list --state
  octavo groups --describe --group billing
  octavo groups --describe --all-groups --json | jq 'select(.lag > 1000)'
  octavo groups --describe --group billing --members --verbose
  octavo groups --reset-offsets --group billing --topic orders --to-datetime 2026-11-16T03:00:00.000
  octavo groups --reset-offsets --group billing --all-topics --shift-by -100 --execute
  octavo groups --reset-offsets --group billing --all-topics --to-current --export > billing.csv
  octavo groups --reset-offsets --group billing --from-file billing.csv --execute
  octavo groups --delete-offsets --group billing --topic orders
  octavo groups --delete --group billing --group reports

Exit codes: 0 done, 2 could not: the broker does not answer, or refuses, or a group has members.
"""

_ACTIONS: Final = ("list", "describe", "reset_offsets", "delete", "delete_offsets", "validate_regex")
_SPECIFICATIONS: Final = (
    "to_earliest",
    "to_latest",
    "to_current",
    "to_offset",
    "shift_by",
    "to_datetime",
    "by_duration",
    "from_file",
)
# The actions that an option goes with.
_GOES_WITH: Final = {
    "group": ("describe", "reset_offsets", "delete", "delete_offsets"),
    "all_groups": ("describe", "reset_offsets", "delete"),
    "state": ("list", "describe"),
    "type": ("list",),
    "offsets": ("describe",),
    "members": ("describe",),
    "verbose": ("describe",),
    "topic": ("reset_offsets", "delete_offsets"),
    "json": ("list", "describe", "reset_offsets"),
} | dict.fromkeys((*_SPECIFICATIONS, "all_topics", "execute", "dry_run", "export"), ("reset_offsets",))


def add_groups(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """Add `octavo groups` and its options. Returns its parser."""
    parser = commands.add_parser(
        "groups",
        help="list, describe and delete consumer groups of a cluster, and reset their offsets",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_actions(parser)
    parser.add_argument("--group", metavar="ID", action="append", default=[], help="a group; may be repeated")
    parser.add_argument("--all-groups", action="store_true", help="all groups")
    parser.add_argument(
        "--state",
        metavar="STATES",
        nargs="?",
        const="",
        help="--list: the states too, or only groups in these states, with commas between them; --describe: see above",
    )
    parser.add_argument(
        "--type", metavar="TYPES", nargs="?", const="", help="--list: the types too, or only classic or consumer"
    )
    parser.add_argument("--json", action="store_true", help="print JSON, see above")
    parser.add_argument("--verbose", action="store_true", help="--describe: also epochs, and what is assigned to whom")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--offsets", action="store_true", help="--describe: see above")
    what.add_argument("--members", action="store_true", help="--describe: see above")
    _add_resets(parser)
    add_broker_options(parser)
    return parser


def _add_actions(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--list", action="store_true", help="print the ids of all groups")
    what.add_argument("--describe", action="store_true", help="print offsets, members or states, see above")
    what.add_argument("--reset-offsets", action="store_true", help="commit other offsets, see above")
    what.add_argument("--delete", action="store_true", help="delete groups, with their offsets")
    what.add_argument("--delete-offsets", action="store_true", help="delete the offsets of a group in topics")
    what.add_argument(
        "--validate-regex", metavar="REGEX", help="say whether consumers can subscribe to this regular expression"
    )


def _add_resets(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--topic",
        metavar="TOPIC[:PARTITIONS]",
        action="append",
        default=[],
        help="--reset-offsets, --delete-offsets: a topic, or some partitions of it; may be repeated",
    )
    parser.add_argument("--all-topics", action="store_true", help="--reset-offsets: see above")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--to-earliest", action="store_true", help="--reset-offsets: see above")
    where.add_argument("--to-latest", action="store_true")
    where.add_argument("--to-current", action="store_true")
    where.add_argument("--to-offset", metavar="N", type=int)
    where.add_argument("--shift-by", metavar="N", type=int)
    where.add_argument("--to-datetime", metavar="TIME", type=milliseconds)
    where.add_argument("--by-duration", metavar="DURATION", type=duration_ms)
    where.add_argument("--from-file", metavar="FILE")
    whether = parser.add_mutually_exclusive_group()
    whether.add_argument("--dry-run", action="store_true", help="--reset-offsets: only print them (the default)")
    whether.add_argument("--execute", action="store_true", help="--reset-offsets: commit them")
    parser.add_argument("--export", action="store_true", help="--reset-offsets: print CSV, for --from-file")


def check_options(arguments: argparse.Namespace) -> None:
    """Raise `InvalidInput` if an option is missing, or goes with another action."""
    given = vars(arguments)
    (action,) = (each for each in _ACTIONS if given[each] not in (None, False))
    for option, actions in _GOES_WITH.items():
        if given[option] not in (None, False, []) and action not in actions:
            raise InvalidInput(f"{_option(option)} goes with {_any(actions)} only")
    if action in _GOES_WITH["group"] and not (arguments.group or arguments.all_groups):
        raise InvalidInput(
            f"{_option(action)} needs {_any(['group', 'all_groups'][: 1 + (action != 'delete_offsets')])}"
        )
    if arguments.group and arguments.all_groups:
        raise InvalidInput("--group and --all-groups do not go together")
    if arguments.describe and arguments.state:
        raise InvalidInput("--state takes no value with --describe")
    if arguments.describe and arguments.state is not None and (arguments.members or arguments.offsets):
        raise InvalidInput("--state does not go together with --members and --offsets")
    if arguments.delete_offsets and (len(arguments.group) > 1 or not arguments.topic):
        raise InvalidInput("--delete-offsets needs one --group, and --topic")
    if arguments.reset_offsets:
        if all(given[each] in (None, False) for each in _SPECIFICATIONS):
            raise InvalidInput(f"--reset-offsets needs {_any(_SPECIFICATIONS)}")
        if arguments.from_file is None and bool(arguments.topic) == arguments.all_topics:
            raise InvalidInput("--reset-offsets needs either --topic or --all-topics")


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")


def _any(names: Sequence[str]) -> str:
    return " or ".join(filter(None, [", ".join(map(_option, names[:-1])), _option(names[-1])]))
