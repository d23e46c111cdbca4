"""`octavo dump`: print what is in Kafka's files."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Final

from octavo.cli.decoding_options import chosen_decoding
from octavo.cli.dump_options import DESCRIPTION, EPILOG, add_options, own_options, wanted_records
from octavo.cli.exits import COULD_NOT_RUN, DAMAGE_FOUND, FINE
from octavo.cli.kafka_options import add_kafka_options, kafka_options, text_options
from octavo.cli.tell import tell
from octavo.errors import InvalidInput, OctavoError, Unreadable

if TYPE_CHECKING:
    from octavo.cli.dump_forms import Form

_KAFKAS: Final = (".log", ".checkpoint", ".index", ".timeindex", ".snapshot", ".txnindex")  # files that its tool prints


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `octavo dump` and its options to the parser."""
    parser = commands.add_parser(
        "dump",
        help="print what is in segments, indexes, snapshots and checkpoints",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_options(parser)
    add_kafka_options(parser)
    parser.set_defaults(run=run, print_usage=parser.print_usage)


def run(arguments: argparse.Namespace) -> int:
    """Dump all files, in order; return the highest of their exit codes."""
    paths = [path for path in (*arguments.paths, *",".join(arguments.files or ()).split(",")) if path]
    try:
        if not paths:
            raise InvalidInput("there is no PATH: a file, a partition's folder or a data directory")
        chosen = _format(arguments)
    except InvalidInput as error:
        arguments.print_usage(sys.stderr)
        tell(str(error))
        return COULD_NOT_RUN
    if arguments.follow:
        from octavo.cli.dump_follow import follow

        return follow(paths, _form(arguments, chosen))
    if chosen == "kafka":
        files, listed, code = _expanded(paths, _is_kafkas)
        return max(code, _print_texts(files, listed, arguments))
    with _form(arguments, chosen) as form:
        only_records = not form.reading.wanted.is_everything
        prints_records = only_records or (chosen == "jsonl" and not arguments.entries)
        files, listed, code = _expanded(paths, _has_current_records if prints_records else None)
        if only_records:  # a file that is named is printed under any name, unless that is one of a file without records
            files = [file for file in files if not _has_only_entries(file)]
        for is_text, group in groupby(files, lambda file: chosen is None and _is_named_for_kafka(file)):
            some = list(group)
            code = max(code, _print_texts(some, listed, arguments) if is_text else form.print_all(some))
    return code


def _format(arguments: argparse.Namespace) -> str | None:
    """Return the format; None for Kafka's text where its tool knows the kind of a file, and JSON elsewhere.

    Raises `InvalidInput` for options that do not go together.
    """
    chosen: str | None = arguments.format
    own, kafkas = own_options(arguments), kafka_options(arguments)
    if kafkas and (own or chosen not in (None, "kafka")):
        other = own[0] if own else f"--format {chosen}"
        raise InvalidInput(f"{kafkas[0]} is an option of Kafka's tool, and does not go with {other}")
    if chosen == "kafka" and own:
        raise InvalidInput(f"Kafka's text has no place for {own[0]}: use another format")
    if (chosen == "parquet") != (arguments.output is not None):
        raise InvalidInput("--format parquet and --output FILE go together")
    if arguments.binary is not None and chosen in ("table", "parquet"):
        raise InvalidInput(f"--binary is for --format jsonl, and does not go with --format {chosen}")
    if arguments.entries and chosen in ("table", "parquet"):
        raise InvalidInput(f"--entries is for --format jsonl: --format {chosen} has them anyway")
    if arguments.follow and chosen == "parquet":
        raise InvalidInput("a Parquet file cannot be followed: use --format jsonl or table")
    if chosen is not None:
        return chosen
    if kafkas:
        return "kafka"
    if sys.stdout.isatty() and arguments.binary is None and not arguments.entries:
        return "table"
    return "jsonl" if own else None


def _form(arguments: argparse.Namespace, chosen: str | None) -> Form:
    from octavo.cli.dump_forms import JsonForm, ParquetForm, Reading, TableForm

    reading = Reading(
        wanted_records(arguments),
        verify=not arguments.no_verify,
        resync=arguments.resync,
        decoding=chosen_decoding(arguments),
        decodes_internal_topics=not arguments.no_decode,
    )
    if chosen == "parquet":
        return ParquetForm(reading, arguments.output)
    if chosen == "table":
        return TableForm(reading)
    return JsonForm(reading, arguments.binary or "text")


def _expanded(paths: Iterable[str], wanted: Callable[[str], bool] | None) -> tuple[list[str], set[str], int]:
    """Return the files below all paths, those of them that are in folders, and an exit code.

    `wanted` chooses among the files of a folder.
    """
    from octavo.inspect.listing import files_below

    found: list[str] = []
    listed: set[str] = set()
    code = FINE

    def report(error: OctavoError) -> None:
        nonlocal code
        tell(str(error))
        code = COULD_NOT_RUN

    for path in paths:
        try:
            below = [str(file) for file in files_below(Path(path), report)]
        except OctavoError as error:
            report(error)
            continue
        if below == [str(Path(path))]:
            found.append(path)
            continue
        chosen = [file for file in below if wanted is None or wanted(file)]
        found += chosen
        listed.update(chosen)
    return found, listed, code


def _is_kafkas(file: str) -> bool:
    """Return whether Kafka's tool prints files of this name."""
    return file.endswith(_KAFKAS)


def _is_named_for_kafka(file: str) -> bool:
    """Return whether Kafka's tool prints a file, and does not fail because its name has no offset."""
    from octavo.inspect.kinds import FileName
    from octavo.log.names import BOOTSTRAP_CHECKPOINT

    name = Path(file).name
    return _is_kafkas(file) and (name == BOOTSTRAP_CHECKPOINT or FileName.parse(name).base_offset is not None)


def _has_current_records(file: str) -> bool:
    """Return whether a file has records that belong to the log: renamed files have copies, or what was deleted."""
    from octavo.inspect.kinds import FileName

    name = FileName.parse(Path(file).name)
    return name.kind.has_batches and not name.renamed


def _has_only_entries(file: str) -> bool:
    from octavo.inspect.entries import has_entries
    from octavo.inspect.kinds import kind_of

    return has_entries(kind_of(Path(file)))


def _print_texts(files: Iterable[str], listed: set[str], arguments: argparse.Namespace) -> int:
    """Print files as Kafka's tool does; return the highest exit code.

    Kafka's tool ends with the first file that it fails at. That suits files that were named, but not a folder: its
    files are printed one by one. Indexes that have no entry yet are left out, since Kafka's tool takes the zeros in
    them for an entry, and finds fault with it.
    """
    code = FINE
    for is_listed, group in groupby(files, listed.__contains__):
        some = list(group)
        runs = [[file] for file in some if not _is_index_without_entries(file)] if is_listed else [some]
        code = max([code, *(_print_text(each, arguments) for each in runs)])
    return code


def _is_index_without_entries(file: str) -> bool:
    from octavo.inspect.entries import read_entries
    from octavo.inspect.kinds import Kind, kind_of

    path = Path(file)
    if kind_of(path) not in (Kind.OFFSET_INDEX, Kind.TIME_INDEX):
        return False
    try:
        return next(read_entries(path), None) is None
    except OctavoError:
        return False  # Kafka's tool says what is wrong with it


def _print_text(files: Sequence[str], arguments: argparse.Namespace) -> int:
    """Print files as Kafka's tool does; return the exit code."""
    from octavo.inspect.kafka_text import print_files

    sys.stdout.flush()
    try:
        is_damaged = print_files(files, text_options(arguments), sys.stdout.buffer, sys.stderr.buffer)
    except Unreadable as error:
        tell(str(error))
        return COULD_NOT_RUN
    return DAMAGE_FOUND if is_damaged else FINE
