"""`octavo consume`: print the records of a topic, as kcat does."""

from __future__ import annotations

import argparse
import re
import sys
from typing import TYPE_CHECKING, Final

from octavo.cli.broker_options import add_broker_options, given_cluster
from octavo.cli.delimiters import delimiter
from octavo.cli.exits import DAMAGE_FOUND, FINE
from octavo.cli.tell import tell
from octavo.errors import InvalidInput

if TYPE_CHECKING:
    from octavo.client.receiving import Receiver

_DESCRIPTION: Final = """\
Prints the records of a topic as they come, until it is interrupted: the values, each with a newline. Offsets are not
committed anywhere.

  -o WHERE         where to begin: beginning (the default), end, an offset, -N for the last N records of each partition,
                   s@MILLISECONDS or s@2026-11-16T03:00 for a time. -o e@TIME ends before a time; -o may be repeated
  -f FORMAT        what to print of each record: %s value, %k key, %h headers, %t topic, %p partition, %o offset,
                   %T timestamp, %S and %K the sizes of value and key, %% a percent sign, and \\n \\t \\r \\xFF
  --json           one JSON object a line; what is not UTF-8 is {"hex": "ff00"}, null is not ""
"""

_EPILOG: Final = """\
examples:
  octavo consume orders                          all there is, then what comes
  octavo consume orders -o -10 -e                the last ten of each partition
  octavo consume orders -o s@2026-11-16T03:00 -c 100 -K :
  octavo consume orders -f '%p %o %k=%s\\n' -e
  octavo consume orders --json -e | jq .value

Exit codes: 0 done, 1 a batch is damaged, 2 could not: the broker does not answer, or refuses. 130 interrupted.
"""

_WAIT_MS: Final = 500
_OFFSET: Final = re.compile(r"-?[0-9]{1,19}")


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `octavo consume` and its options to the parser."""
    parser = commands.add_parser(
        "consume",
        help="print the records of a topic of a cluster",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("topic", metavar="TOPIC", help="the topic")
    parser.add_argument(
        "-p", "--partition", metavar="N", type=int, action="append", help="only this partition; may be repeated"
    )
    parser.add_argument(
        "-o", "--offset", metavar="WHERE", action="append", default=[], help="where to begin, see above"
    )
    parser.add_argument("-c", "--count", metavar="N", type=int, help="stop after N records")
    parser.add_argument("-e", "--exit", action="store_true", help="stop at the end of all partitions")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("-f", "--format", metavar="FORMAT", help="what to print of each record, see above")
    what.add_argument("-J", "--json", action="store_true", help="print JSON, see above")
    parser.add_argument(
        "-K", "--key-separator", metavar="TEXT", type=delimiter, help="print the key and this before the value"
    )
    parser.add_argument(
        "-D", "--delimiter", metavar="TEXT", type=delimiter, default=b"\n", help="what ends a record (default: \\n)"
    )
    parser.add_argument("-Z", "--null", action="store_true", help="print null as NULL, not as nothing")
    parser.add_argument(
        "--isolation-level",
        choices=("read_uncommitted", "read_committed"),
        default="read_committed",
        help="whether to print what transactions have not committed (default: read_committed)",
    )
    parser.add_argument("--resync", action="store_true", help="go on behind damaged batches")
    parser.add_argument("-q", "--quiet", action="store_true", help="do not tell where a partition ends")
    add_broker_options(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print records until it is enough."""
    from octavo.cli.consumed_records import printer
    from octavo.client.receiving import Receiver

    if arguments.count is not None and arguments.count < 0:
        raise InvalidInput("-c: the number of records cannot be negative")
    print_record = printer(arguments, is_terminal=sys.stdout.isatty())
    out = sys.stdout.buffer
    with given_cluster(arguments) as cluster:
        committed = arguments.isolation_level == "read_committed"
        receiver = Receiver(cluster, arguments.topic, arguments.partition, committed=committed, resync=arguments.resync)
        stops = _begin(receiver, arguments.offset)
        is_bounded = stops is not None or arguments.exit
        left = arguments.count
        told: set[int] = set()
        outcome = FINE
        while left != 0:
            going = [each for each in receiver.partitions if each not in receiver.stopped]
            if stops is not None:
                going = [each for each in going if receiver.positions[each] < stops[each]]
            if arguments.exit:
                going = [each for each in going if receiver.positions[each] < receiver.ends.get(each, 1 << 62)]
            if not going and (is_bounded or receiver.stopped):
                break
            for partition, batch, record in receiver.receive(going, wait_ms=_WAIT_MS):
                if stops is not None and record.offset >= stops[partition]:
                    continue
                out.write(print_record(partition, batch, record))
                if left is not None:
                    left -= 1
                    if left == 0:
                        break
            out.flush()
            if receiver.damage:
                outcome = DAMAGE_FOUND
                _tell_damage(receiver, arguments.topic)
            if not arguments.quiet and left != 0:
                _tell_ends(receiver, arguments.topic, told)
    return outcome


def _tell_damage(receiver: Receiver, topic: str) -> None:
    """Tell which batches could not be read, and what comes of their partitions."""
    for partition, offset, problem in receiver.damage:
        rest = "nothing is read from there on" if partition in receiver.stopped else "the rest of the batch is left out"
        tell(f"partition {partition} of {topic} is damaged at offset {offset}: {problem}; {rest}")
    receiver.damage.clear()


def _tell_ends(receiver: Receiver, topic: str, told: set[int]) -> None:
    """Tell of each partition once that its end was reached, until there is more in it."""
    for partition, end in receiver.ends.items():
        if receiver.positions[partition] < end:
            told.discard(partition)
        elif partition not in told:
            told.add(partition)
            behind = receiver.high_watermarks[partition]
            if behind > end:
                where = f"reached the last stable offset of partition {partition} of {topic}, {end}"
                tell(f"{where}: a transaction is open, and the partition ends at {behind}")
            else:
                tell(f"reached the end of partition {partition} of {topic}, at offset {end}")


def _begin(receiver: Receiver, given: list[str]) -> dict[int, int] | None:
    """Have a receiver begin where the options say. Returns the offsets at which it stops; None if it does not."""
    from octavo.client.partition_offsets import EARLIEST, LATEST

    begins, stops = "beginning", None
    for each in given:
        if each.startswith("e@"):
            stops = receiver.offsets(_time(each[2:]))
        else:
            begins = each
    if begins == "beginning":
        positions = receiver.offsets(EARLIEST)
    elif begins == "end":
        positions = receiver.offsets(LATEST)
    elif begins.startswith("s@"):
        positions = receiver.offsets(_time(begins[2:]))
    elif _OFFSET.fullmatch(begins) is None:
        raise InvalidInput(f"-o {begins}: it must be beginning, end, an offset, -N, s@TIME or e@TIME")
    elif begins.startswith("-"):
        first, last = receiver.offsets(EARLIEST), receiver.offsets(LATEST)
        positions = {number: max(first[number], end + int(begins)) for number, end in last.items()}
    else:
        positions = dict.fromkeys(receiver.partitions, int(begins))
    receiver.seek(positions)
    return stops


def _time(text: str) -> int:
    from octavo.cli.times import milliseconds

    try:
        return milliseconds(text)
    except argparse.ArgumentTypeError as error:
        raise InvalidInput(f"-o {text}: {error}") from None
