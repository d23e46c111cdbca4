"""The options of `octavo dump`, except for those of Kafka's tool (see `kafka_options`)."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING, Final

from octavo.cli.decoding_options import add_decoding_options, given_decoding_options
from octavo.cli.times import milliseconds
from octavo.errors import InvalidInput

if TYPE_CHECKING:
    from octavo.inspect.wanted import KeyRange, Range, Wanted

DESCRIPTION: Final = """\
Prints what is in Kafka's files: segments of any format that Kafka ever stored,
indexes, snapshots, checkpoints and properties. PATH is such a file, the folder
of a partition, or a data directory, whose files come in the order of their
names.

  --format table     for people, and the default at a terminal
  --format kafka     the text of Kafka's own kafka-dump-log, and the default
                     elsewhere
  --format jsonl     one JSON object a line, with everything: the default for
                     files that Kafka's tool does not know, and with options
                     that its text has no place for
  --format parquet   the same as columns, in --output

A line of JSON is a record:

  topic, partition     from the folder <topic>-<partition> of a segment, else
                       null
  offset, timestamp    the timestamp in milliseconds, -1 where there is none
  timestampType        CreateTime, LogAppendTime or NoTimestampType
  key, value           see --binary; null is not ""
  headers              a list of [key, value]
  producerId, producerEpoch, sequence, isTransactional, isControl, magic,
  compression, leaderEpoch
  file, position       where the record's batch begins
  control              what a control record says
  decodedKey, decodedValue, decodeError
                       in internal topics of Kafka, and with --value-format and
                       --key-format

or an entry of another file: kind, topic, partition, its fields, file. Of a
folder, --format jsonl prints the records; entries are printed of files that
are named, and with --entries. `octavo produce --json` sends such lines.
"""

EPILOG: Final = """\
examples:
  octavo dump orders-0                            a partition, at a terminal
  octavo dump orders-0/*.log --offsets 1000:2000 --format jsonl
  octavo dump /var/lib/kafka/data --format parquet --output dump
  octavo dump orders-0 --since 2026-11-16T03:00 --key user-17
  octavo dump broken.log --format jsonl --resync > saved.jsonl
  octavo dump orders-0 --follow                   new records, until interrupted
  octavo dump --files 00000000000000000000.log --print-data-log

Damage ends the dump of a file, after all records before it, with one sentence
on standard error and exit code 1; with --resync it is passed over and reported.
A last batch that is not all there (a writer died, or the file is being written
to) is told, and no damage. Exit code 2: a file could not be read, or is no
segment.
"""

_BINARY: Final = ("hex", "base64", "text")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add all options to the parser."""
    parser.add_argument("paths", metavar="PATH", nargs="*", help="a file, a partition's folder or a data directory")
    parser.add_argument("--format", choices=("table", "kafka", "jsonl", "parquet"), help="see above")
    parser.add_argument("--output", metavar="FILE", help="for parquet: a file FILE.parquet, or a folder for all tables")
    _add_own(parser.add_argument_group("records to print"))
    add_decoding_options(parser)


def _add_own(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--binary",
        choices=_BINARY,
        help='how jsonl has keys and values (default: text, which is UTF-8, and {"hex": "ff00"} for what is not UTF-8)',
    )
    group.add_argument(
        "--entries", action="store_true", help="jsonl: of a folder, also the entries of indexes and other files"
    )
    group.add_argument(
        "--offsets", metavar="A:B", type=_offsets, help="only offsets from A on and below B; either may be left out"
    )
    group.add_argument(
        "--since",
        metavar="TIME",
        type=milliseconds,
        help="only timestamps from TIME on: 2026-11-16T03:00, or milliseconds",
    )
    group.add_argument(
        "--until", metavar="TIME", type=milliseconds, help="only timestamps before TIME; without a zone, in UTC"
    )
    group.add_argument(
        "--key", metavar="KEY", action="append", default=[], help="only this key: text, or 0xff00; may be repeated"
    )
    group.add_argument("--key-prefix", metavar="KEY", action="append", default=[], help="only keys that begin so")
    group.add_argument("--key-from", metavar="KEY", help="only keys from this one on, compared byte by byte")
    group.add_argument("--key-below", metavar="KEY", help="only keys below this one")
    group.add_argument("--no-verify", action="store_true", help="do not compare checksums")
    group.add_argument("--resync", action="store_true", help="go on after damage, with the next batch that is whole")
    group.add_argument("--follow", action="store_true", help="go on as segments grow, until it is interrupted")


def own_options(arguments: argparse.Namespace) -> list[str]:
    """Return the options that were given and that Kafka's text has no place for."""
    given = {
        "--binary": arguments.binary is not None,
        "--entries": arguments.entries,
        "--offsets": arguments.offsets is not None,
        "--since": arguments.since is not None,
        "--until": arguments.until is not None,
        "--key": bool(arguments.key),
        "--key-prefix": bool(arguments.key_prefix),
        "--key-from": arguments.key_from is not None,
        "--key-below": arguments.key_below is not None,
        "--no-verify": arguments.no_verify,
        "--resync": arguments.resync,
        "--follow": arguments.follow,
        "--output": arguments.output is not None,
    }
    return [name for name, is_given in (given | given_decoding_options(arguments)).items() if is_given]


def wanted_records(arguments: argparse.Namespace) -> Wanted:
    """Return the ranges of records to print. Raises `InvalidInput` for one that ends before it begins."""
    from octavo.inspect.wanted import EVERYTHING, KeyRange, Wanted

    offsets: Range = arguments.offsets or EVERYTHING
    keys: list[KeyRange] = [KeyRange.exactly(_key(text)) for text in arguments.key]
    keys += [KeyRange.with_prefix(_key(text)) for text in arguments.key_prefix]
    if arguments.key_from is not None or arguments.key_below is not None:
        first, behind = (None if text is None else _key(text) for text in (arguments.key_from, arguments.key_below))
        keys.append(KeyRange(first, behind))
    wanted = Wanted(offsets, (arguments.since, arguments.until), tuple(keys))
    wanted.check()
    return wanted


def _key(text: str) -> bytes:
    if not text.startswith("0x"):
        return os.fsencode(text)
    try:
        return bytes.fromhex(text[2:])
    except ValueError:
        raise InvalidInput(f"{text!r} is not a key in hexadecimal digits, two for each byte, like 0xff00") from None


def _offsets(text: str) -> Range:
    """Parse a range of offsets: `A:B`, `A:` or `:B`."""
    first, colon, behind = text.partition(":")
    try:
        if not colon:
            raise ValueError
        return (int(first) if first else None, int(behind) if behind else None)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not A:B, like 1000:2000, 1000: or :2000") from None
