"""Batches whose records nobody can read are damage, though their checksums are right."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from octavo.inspect.salvage import salvage, survey
from octavo.inspect.verify import all_rules, check_partition
from octavo.inspect.verify.repairs import READABLE, SALVAGE, SALVAGE_MESSAGES
from octavo.records import BatchBuilder
from tests.crash.storage import FastStorage
from tests.unit.inspect.salvage.damaging import batches_in
from tests.unit.inspect.verify.planted_batches import (
    AFTER_OFFSET,
    BEFORE,
    BEFORE_OFFSET,
    Planted,
    at_offset,
    field,
    record_field,
    right,
    write_log,
)
from tests.unit.inspect.verify.test_batch_rules import FAULTS

REPAIRS: Final = {rule.name: rule.repair for rule in all_rules()}
ADVISED: Final = [each for each in FAULTS if REPAIRS[each.rule] in (SALVAGE, SALVAGE_MESSAGES)]
KEPT: Final = [each for each in FAULTS if REPAIRS[each.rule] == READABLE]


def salvaged(planted: Planted, folder: Path) -> tuple[bool, set[int], Path]:
    """Return whether something is said to be lost, what is in the result, and where it is."""
    source = write_log(folder / planted.folder, planted.data)
    [report] = salvage([source], folder / "safe" / planted.folder, storage=FastStorage()).partitions
    return report.has_lost, set(batches_in(report.target)), report.target


@pytest.mark.parametrize("planted", ADVISED, ids=str)
def test_what_verify_advises_to_salvage_is_sound_afterwards(planted: Planted, tmp_path: Path) -> None:
    """Mend 1.3 (e): nothing was lost, it said, and kept a batch that nobody can read and Kafka cannot load."""
    (tmp_path / "safe").mkdir()
    has_lost, kept, target = salvaged(planted, tmp_path)
    assert {BEFORE_OFFSET, AFTER_OFFSET} <= kept
    assert [each.rule.name for each in check_partition(target)] == []
    assert has_lost or len(kept) > 2


@pytest.mark.parametrize("planted", KEPT, ids=str)
def test_what_is_odd_and_can_be_read_is_kept(planted: Planted, tmp_path: Path) -> None:
    (tmp_path / "safe").mkdir()
    source = write_log(tmp_path / planted.folder, planted.data)
    [report] = salvage([source], tmp_path / "safe" / planted.folder, storage=FastStorage()).partitions
    assert report.damage == []
    assert batches_in(report.target) == batches_in(source)


def test_a_batch_larger_than_a_block_is_looked_into(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(survey, "_BLOCK", 256)
    large = BatchBuilder()
    for number in range(50):
        large.append(b"key %d" % number, b"value" * 10, timestamp_ms=1)
    batch = large.build()
    for number, content in enumerate((batch, right(record_field(20, "length", b"\x7e"))(batch))):
        source = write_log(
            tmp_path / f"large-{number}", at_offset(0, BEFORE) + at_offset(6, content) + at_offset(56, BEFORE)
        )
        [report] = salvage([source], tmp_path / f"safe-{number}", storage=FastStorage()).partitions
        assert set(batches_in(report.target)) == ({0, 6, 56} if number == 0 else {0, 56})
        lost = [(each.first_offset, each.last_offset) for each in report.lost]
        assert lost == ([] if number == 0 else [(6, 55)])


def test_batches_out_of_order_are_looked_into(tmp_path: Path) -> None:
    """Compressed ones, too, whatever the order in which they come."""
    from tests.golden.files import load

    broken = right(field("record_count", 5))(load("v2-snappy").data)
    source = write_log(tmp_path / "events-0", at_offset(100, BEFORE) + at_offset(0, broken) + at_offset(106, BEFORE))
    [report] = salvage([source], tmp_path / "safe-0", storage=FastStorage()).partitions
    assert set(batches_in(report.target)) == {100, 106}
