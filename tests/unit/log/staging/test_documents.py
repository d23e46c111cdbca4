"""`docs/formats/staged-commits.md` says what the code does: its table and its hex are read and written."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final
from uuid import UUID

from octavo.log.staging.journal import HEADER, Piece, read_journal, write_journal
from octavo.log.storage import DISK
from tests.unit.records.test_documents import DOCUMENTS, SIZES, worked

PAGE: Final = "staged-commits"


def test_the_table_of_the_header_is_the_layout() -> None:
    text = (DOCUMENTS / f"{PAGE}.md").read_text("utf-8")
    at = 0
    for position, size, field, type_ in re.findall(r"^\| (\d+) \| (\d+) \| `(\w+)` \| (\w+) \|", text, re.MULTILINE):
        assert int(position) == at == HEADER.at(field)
        assert int(size) == SIZES[type_]
        at += int(size)
    assert at == HEADER.size


def test_the_worked_journal_is_read_and_written(tmp_path: Path) -> None:
    [data] = worked(PAGE)
    path = tmp_path / "octavo-commits"
    path.write_bytes(data)
    journal = read_journal(DISK, path)
    assert [(each.name, each.version) for each in journal.applications] == [("query", 6)]
    pending = journal.pending
    assert pending is not None
    assert (pending.application, pending.version, pending.staging) == ("query", 7, "../.data.staging")
    [partition] = pending.partitions
    assert (str(partition.of), partition.topic_id, partition.base_offset) == ("events-0", UUID(int=1), 42)
    assert partition.pieces == [Piece(0, 0, 680)]
    write_journal(DISK, path, journal)
    assert path.read_bytes() == data
