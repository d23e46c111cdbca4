"""`octavo produce`: send lines to a topic, as kcat does."""

from __future__ import annotations

import argparse
import os
import select
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from octavo.cli.broker_options import add_broker_options, given_cluster
from octavo.cli.delimiters import delimiter
from octavo.cli.exits import FINE
from octavo.cli.tell import tell
from octavo.errors import InvalidInput, Unreadable

if TYPE_CHECKING:
    from octavo.cli.produced_lines import LineReader
    from octavo.client.sending import Sender

_DESCRIPTION: Final = """\
Sends lines to a topic, each as the value of a record: those of the files, or of standard input. A broker may create the
topic. Records of a partition keep their order, and if an answer of a broker is lost, none is written twice.

  -K :               a line is KEY:VALUE; without the separator, it is a value without a key
  -Z                 an empty key or value is null
  --json             a line is what `octavo consume --json` and `octavo dump --format jsonl` print:
                     {"key": ..., "value": ..., "headers": [[NAME, VALUE]], "timestamp": ..., "partition": ...}
                     with a key or a value; the rest may be missing. The partition is only kept with --keep-partitions.
                     Lines that are no records, such as those of indexes and of markers of transactions, are left out
"""

_EPILOG: Final = """\
examples:
  echo 'hello' | octavo produce greetings
  octavo produce orders -K : -z zstd -l orders.txt
  octavo produce orders -k user-17 -H source=test -p 3 < one.txt
  octavo consume orders --json -e | octavo produce copy --json --keep-partitions
  octavo dump orders-0 --format jsonl | octavo produce copy --json

Exit codes: 0 all acknowledged, 2 could not: the broker does not answer, or refuses.
"""

_LINGER_S: Final = 0.05  # without new input, records wait no longer than this
_CHUNK: Final = 256 << 10


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `octavo produce` and its options to the parser."""
    parser = commands.add_parser(
        "produce",
        help="send lines to a topic of a cluster",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("topic", metavar="TOPIC", help="the topic")
    parser.add_argument(
        "-l", "--file", metavar="FILE", action="append", default=[], help="a file to read instead of standard input"
    )
    parser.add_argument("-K", "--key-separator", metavar="TEXT", type=delimiter, help="what separates key and value")
    parser.add_argument(
        "-D", "--delimiter", metavar="TEXT", type=delimiter, default=b"\n", help="what ends a record (default: \\n)"
    )
    parser.add_argument("-k", "--key", metavar="TEXT", help="the key of all records")
    parser.add_argument(
        "-H", "--header", metavar="NAME=VALUE", action="append", default=[], help="a header of all records"
    )
    parser.add_argument("-p", "--partition", metavar="N", type=int, help="the partition (default: by the key's hash)")
    parser.add_argument(
        "-z", "--compression", choices=("none", "gzip", "snappy", "lz4", "zstd"), default="none", help="(default: none)"
    )
    parser.add_argument("-Z", "--null", action="store_true", help="an empty key or value is null")
    parser.add_argument("--json", action="store_true", help="lines are JSON, see above")
    parser.add_argument(
        "--binary",
        choices=("text", "hex", "base64"),
        default="text",
        help="--json: how `octavo dump --binary` has printed keys and values (default: text)",
    )
    parser.add_argument("--keep-partitions", action="store_true", help="--json: to the partition that a line names")
    parser.add_argument(
        "--acks", choices=("1", "all"), default="all", help="who has to have a record: the leader, or all (default)"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="do not tell how many records were sent")
    add_broker_options(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Send all lines, and tell how many records were sent."""
    from octavo.cli.produced_lines import LineReader
    from octavo.client.sending import ALL, Sender
    from octavo.records.layout import Codec

    reader = LineReader(arguments)
    with given_cluster(arguments) as cluster:
        sender = Sender(
            cluster,
            arguments.topic,
            codec=Codec[arguments.compression.upper()],
            acks=ALL if arguments.acks == "all" else 1,
        )
        try:
            for path in arguments.file or ["-"]:
                _send_file(path, arguments.delimiter, reader, sender)
            sender.flush()
        except BaseException:
            _tell_left_out(reader)
            tell(f"{sender.sent} records were sent before this:")
            raise
    _tell_left_out(reader)
    if not arguments.quiet:
        tell(f"{sender.sent} {'record' if sender.sent == 1 else 'records'} sent to {arguments.topic}")
    return FINE


def _tell_left_out(reader: LineReader) -> None:
    """Say how many lines were no records."""
    if reader.left_out:
        parts = ", ".join(f"{count} {what}" for what, count in sorted(reader.left_out.items()))
        count = reader.left_out.total()
        tell(f"{count} {'line is' if count == 1 else 'lines are'} left out, as no records: {parts}")


def _send_file(path: str, end: bytes, reader: LineReader, sender: Sender) -> None:
    for line in _lines(path, end):
        if line is None:
            sender.flush()
            continue
        record = reader.read(line)
        if record is None:
            continue
        sender.add(
            record.key,
            record.value,
            record.headers,
            timestamp_ms=time.time_ns() // 1_000_000 if record.timestamp_ms is None else record.timestamp_ms,
            partition=record.partition,
        )


def _lines(path: str, end: bytes) -> Iterator[bytes | None]:
    """Yield the lines of a file without their ends, and None whenever no more come for a moment."""
    descriptor = _open(path)
    try:
        rest = b""
        while True:
            if not _is_ready(descriptor, _LINGER_S):
                yield None
            try:
                chunk = os.read(descriptor, _CHUNK)
            except IsADirectoryError:
                raise Unreadable(path, "it is a directory") from None
            if not chunk:
                break
            *whole, rest = (rest + chunk).split(end)
            yield from whole
        if rest:
            yield rest
    finally:
        if path != "-":
            os.close(descriptor)


def _open(path: str) -> int:
    if path == "-":
        if sys.stdin is None:
            raise InvalidInput("standard input is closed")
        return sys.stdin.fileno()
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise Unreadable(path, error.strerror or str(error)) from None


def _is_ready(descriptor: int, wait_s: float) -> bool:
    return bool(select.select([descriptor], [], [], wait_s)[0])
