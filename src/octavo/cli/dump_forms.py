"""The forms in which `octavo dump` prints files, except for Kafka's own text."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from json import JSONEncoder
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from octavo.cli.exits import COULD_NOT_RUN, DAMAGE_FOUND, FINE
from octavo.cli.progress import progress
from octavo.cli.tell import tell
from octavo.errors import FormatError, InvalidInput, Unreadable
from octavo.inspect.decoding.record_decoding import RecordDecoding, decoding_of
from octavo.inspect.entries import fields_of, has_entries, read_entries
from octavo.inspect.kinds import Kind, kind_of
from octavo.inspect.record_lines import Binary, RecordLines
from octavo.inspect.segment_file import SegmentFile
from octavo.inspect.wanted import Wanted

if TYPE_CHECKING:
    from octavo.inspect.parquet_tables import ParquetTables

_LINES_A_WRITE: Final = 512
_ENCODE: Final = JSONEncoder(separators=(",", ":")).encode


class Reading(NamedTuple):
    """How files are read."""

    wanted: Wanted
    verify: bool
    resync: bool
    decoding: RecordDecoding | None = None  # as the options say
    decodes_internal_topics: bool = True

    def open(self, file: str) -> SegmentFile:
        """Open a file of batches. Raises `Unreadable`, and `InvalidInput` if it has none."""
        segment = SegmentFile(Path(file), wanted=self.wanted, verify=self.verify, resync=self.resync)
        if not segment.has_batches and not self.resync:
            what = "it begins with no batch of records" if segment.size else "it is empty"
            raise InvalidInput(f"{file}: this is no file of Kafka's: {what}")
        return segment

    def decoding_of(self, path: Path) -> RecordDecoding | None:
        """Return how the records of a file are decoded; None if they are not."""
        return decoding_of(path, self.decoding) if self.decodes_internal_topics else self.decoding


class Form(ABC):
    """A form of output. A context manager: leaving it ends the output."""

    def __init__(self, reading: Reading) -> None:
        self.reading: Final = reading
        self._decodings: dict[Path, RecordDecoding | None] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def print_all(self, files: Iterable[str]) -> int:
        """Print files; return the highest of their exit codes."""
        return max([self.print_file(file) for file in files], default=FINE)

    def print_file(self, file: str) -> int:
        """Print one file of any kind, say on standard error what is wrong with it, and return its exit code."""
        kind = kind_of(Path(file))
        try:
            if has_entries(kind):
                return self._print_entries(file)
            if kind in (Kind.LOCK, Kind.COMMIT_JOURNAL):
                raise InvalidInput(f"{file} is {kind.value}, and has nothing to print")
            segment = self.reading.open(file)
        except (Unreadable, InvalidInput) as error:
            tell(str(error))
            return COULD_NOT_RUN
        return self.print_segment(segment)

    def _print_entries(self, file: str) -> int:
        try:
            self.write_entries(Path(file))
        except FormatError as error:
            tell(f"{file}: damaged at byte {error.position}: {error.rule}")
            return DAMAGE_FOUND
        return FINE

    def print_segment(self, segment: SegmentFile, *, is_growing: bool = False) -> int:
        """Print the rest of an open file. Of one that is growing, an incomplete end is not told."""
        found = cut = None
        passed_over = len(segment.damage)
        with progress(segment.size) as advance:
            try:
                for _ in self.write_records(segment):
                    advance(segment.position)
            except FormatError as error:
                found = error
            except Unreadable as error:  # another process has cut it
                cut = error
        _report(segment, found, passed_over, is_growing=is_growing)
        if cut is not None:
            tell(str(cut))
            return COULD_NOT_RUN
        return DAMAGE_FOUND if found is not None or len(segment.damage) > passed_over else FINE

    def _decoding(self, segment: SegmentFile) -> RecordDecoding | None:
        """Return how the records of an open file are decoded; what was found out about the last file is kept."""
        if segment.path not in self._decodings:
            self._decodings = {segment.path: self.reading.decoding_of(segment.path)}
        return self._decodings[segment.path]

    @abstractmethod
    def write_records(self, segment: SegmentFile) -> Iterator[None]:
        """Write the wanted records of a file, some at each step. Raises `FormatError` at damage."""

    @abstractmethod
    def write_entries(self, path: Path) -> None:
        """Write the entries of a file of another kind. Raises `FormatError` at damage."""


class JsonForm(Form):
    """Lines of JSON, in UTF-8 regardless of the terminal's locale."""

    def __init__(self, reading: Reading, binary: str) -> None:
        super().__init__(reading)
        self._binary: Final = Binary(binary)

    def write_records(self, segment: SegmentFile) -> Iterator[None]:
        for block in RecordLines(segment, self._binary, self._decoding(segment)).blocks():
            _write(block)
            yield

    def write_entries(self, path: Path) -> None:
        lines: list[str] = []
        try:
            for entry in read_entries(path):
                lines.append(_ENCODE(entry) + "\n")
                if len(lines) == _LINES_A_WRITE:
                    _write("".join(lines).encode())
                    lines.clear()
        finally:
            _write("".join(lines).encode())


class TableForm(Form):
    """A table for people, as wide as the terminal."""

    def __init__(self, reading: Reading) -> None:
        from octavo.cli.dump_table import TableWriter, terminal_width, wants_colours

        super().__init__(reading)
        self._table: Final = TableWriter(width=terminal_width(), colours=wants_colours())
        self._path: Path | None = None  # of the file that is being printed

    def write_records(self, segment: SegmentFile) -> Iterator[None]:
        if self._path != segment.path:
            what = f"{kind_of(segment.path).value}, {segment.size:,} bytes"
            self._head(segment.path, what if segment.size else f"{what}: no record was written to it yet")
        for batch in segment.batches():
            try:
                for line in self._table.batch(segment, batch, self._decoding(segment)):
                    _write_text(line)
            except FormatError as error:
                segment.pass_over(batch.position, error)
            yield

    def write_entries(self, path: Path) -> None:
        kind = kind_of(path)
        self._head(path, kind.value)
        # The columns that are the same in every row are in the heading.
        fields = [name for name in fields_of(kind) if name not in ("kind", "file")]
        if kind is not Kind.OFFSET_CHECKPOINT:
            fields = [name for name in fields if name not in ("topic", "partition")]
        for line in self._table.entries(fields, ([entry[name] for name in fields] for entry in read_entries(path))):
            _write_text(line)

    def _head(self, path: Path, what: str) -> None:
        if self._path is not None:
            _write_text("")
        self._path = path
        _write_text(self._table.heading(path, what))


class ParquetForm(Form):
    """Files of columns."""

    def __init__(self, reading: Reading, output: str) -> None:
        from octavo.inspect.parquet_tables import ParquetTables

        super().__init__(reading)
        self._tables: Final[ParquetTables] = ParquetTables(Path(output), reading.decoding)

    def write_records(self, segment: SegmentFile) -> Iterator[None]:
        return self._tables.add_records(segment)

    def write_entries(self, path: Path) -> None:
        self._tables.add_entries(path)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._tables.__exit__(kind, error, trace)


def _report(segment: SegmentFile, found: FormatError | None, known: int, *, is_growing: bool) -> None:
    for position, size, error in segment.damage[known:]:
        tell(f"{segment.path}: damaged at byte {position}, {size} bytes passed over: {error.rule}")
    if found is not None:
        tell(f"{segment.path}: damaged {found} (--resync goes on after it)")
    if is_growing:
        return
    if segment.torn_tail is not None:
        left = segment.size - segment.torn_tail
        tell(
            f"{segment.path}: the last batch, at byte {segment.torn_tail}, is not all there: "
            f"its {left} bytes are left out"
        )
    if segment.zero_tail is not None:
        left = segment.size - segment.zero_tail
        tell(f"{segment.path}: the last {left} bytes are zeros, which Kafka writes over later")


def _write(data: bytes | memoryview) -> None:
    """Write all bytes to standard output. If PYTHONUNBUFFERED is set, one call may write only a part of them."""
    rest = memoryview(data)
    while rest:
        rest = rest[sys.stdout.buffer.write(rest) :]


def _write_text(line: str) -> None:
    """Write a line in the encoding of the terminal."""
    _write(f"{line}\n".encode(sys.stdout.encoding or "utf-8", "replace"))
