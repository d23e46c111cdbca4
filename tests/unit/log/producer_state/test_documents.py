"""`docs/formats/producers.md` says what the code does: its tables and hex are read and written."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from octavo.log.producer_state import snapshot
from octavo.log.producer_state.states import ProducerEntry, RememberedBatch
from octavo.log.segment import transaction_index
from octavo.log.storage import DISK
from octavo.records.layout import Layout
from tests.unit.records.test_documents import DOCUMENTS, SIZES, worked

PAGE = "producers"
ABORTED = transaction_index.AbortedEntry(7, 44, 48, 46)


def producers() -> dict[int, ProducerEntry]:
    batch = RememberedBatch(11, 45, 1, 1_700_000_005_000)
    return {
        7: ProducerEntry(2, 0, 1_700_000_005_000, 44, batch),
        8: ProducerEntry(0, 3, 1_700_000_006_000),
    }


@pytest.mark.parametrize(("suffix", "layout"), [(".snapshot", snapshot.ENTRY), (".txnindex", transaction_index.ROW)])
def test_the_tables_are_the_layouts(suffix: str, layout: Layout[Any]) -> None:
    text = (DOCUMENTS / f"{PAGE}.md").read_text("utf-8")
    (section,) = re.findall(rf"^## `\{suffix}`: {layout.size} bytes .*?(?=^## )", text, re.MULTILINE | re.DOTALL)
    at = 0
    for position, size, field, type_ in re.findall(r"^\| (\d+) \| (\d+) \| `(\w+)` \| (\w+) \|", section, re.MULTILINE):
        assert (int(position), int(size)) == (at, SIZES[type_])
        assert layout.at(field) == at
        at += int(size)
    assert at == layout.size


def test_the_worked_snapshot_is_written_and_read(tmp_path: Path) -> None:
    expected, _ = worked(PAGE)
    path = tmp_path / "00000000000000000050.snapshot"
    snapshot.write_snapshot(DISK, path, producers())
    assert path.read_bytes() == expected
    read = snapshot.read_snapshot(DISK, path)
    assert {key: (entry.epoch, entry.batches, entry.txn_first_offset) for key, entry in read.items()} == {
        key: (entry.epoch, entry.batches, entry.txn_first_offset) for key, entry in producers().items()
    }


def test_the_worked_transaction_index_is_written_and_read(tmp_path: Path) -> None:
    _, expected = worked(PAGE)
    index = transaction_index.TransactionIndex(DISK, tmp_path / "00000000000000000042.txnindex", 42)
    index.append(ABORTED)
    assert index.path.read_bytes() == expected
    assert list(transaction_index.TransactionIndex(DISK, index.path, 42).entries()) == [ABORTED]
