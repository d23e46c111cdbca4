"""Advice does no harm: it removes no mark that Kafka needs, and is another one where the log itself is damaged."""

from __future__ import annotations

from pathlib import Path

import pytest

from octavo.inspect.verify import all_rules, check_partition, looks
from octavo.inspect.verify.repairs import BESIDE_DAMAGE, COLLECT_EPOCHS, REBUILD_INDEXES, REBUILD_TRANSACTIONS, SALVAGE
from tests.golden.directories import unpack
from tests.unit.inspect.verify.planting import put, rewrite

DEALS = "deals-0"
LOG = f"{DEALS}/{21:020d}.log"


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looks, "_PAUSE_S", 0.0)


def test_no_repair_has_kafka_recover_other_partitions() -> None:
    """Mend 1.3 (c): without the mark Kafka recovers all partitions, and cuts the damaged ones."""
    for rule in all_rules():
        repair = rule.repair.lower()
        assert "clean" not in repair or "not shut down cleanly" in repair, rule


def test_a_transaction_index_is_rebuilt_with_the_other_indexes() -> None:
    """Mend 1.3 (a): Kafka does not make it anew by itself, and readers of committed data got aborted records."""
    repairs = {rule.repair for rule in all_rules() if rule.name.startswith("txnindex-")}
    assert repairs == {REBUILD_TRANSACTIONS}
    assert "`.txnindex`, `.index` and `.timeindex`" in REBUILD_TRANSACTIONS


def test_whoever_removes_a_line_of_a_checkpoint_lowers_its_count() -> None:
    """Mend 1.3 (b): with another number of lines than it counts, Kafka takes all directories offline."""
    removing = [rule.repair for rule in all_rules() if "line" in rule.repair and "emove" in rule.repair]
    assert len(removing) > 2
    assert all("lower the count in the second line" in repair for repair in removing)


def test_where_a_segment_is_damaged_its_indexes_are_not_to_be_deleted(tmp_path: Path) -> None:
    """Mend 1.3: Kafka would recover the segment, and cut it at the damage with all that is behind."""
    directory = unpack("closed", tmp_path, DEALS)
    rewrite(LOG, put(65, b"\xff"))(directory)
    for suffix in ("index", "txnindex"):
        rewrite(LOG.replace(".log", f".{suffix}"), lambda data: data + b"\1")(directory)
    rewrite(f"{DEALS}/{45:020d}.index", lambda data: data + b"\1")(directory)
    (directory / DEALS / "leader-epoch-checkpoint").write_bytes(b"?")
    found = {each.rule.name: each.repair for each in check_partition(directory / DEALS)}
    assert found["batch-crc"] == SALVAGE
    assert found["txnindex-length"] == found["epochs-format"] == BESIDE_DAMAGE
    by_file = {each.file: each.repair for each in check_partition(directory / DEALS) if each.rule.name == "index-size"}
    assert by_file == {f"{21:020d}.index": BESIDE_DAMAGE, f"{45:020d}.index": REBUILD_INDEXES}
    alone = check_partition(directory / DEALS, ignore={"batch-crc"})
    assert {each.repair for each in alone if each.rule.name == "txnindex-length"} == {BESIDE_DAMAGE}


def test_leader_epochs_are_collected_anew_from_a_sound_log(tmp_path: Path) -> None:
    directory = unpack("closed", tmp_path, DEALS)
    (directory / DEALS / "leader-epoch-checkpoint").write_bytes(b"?")
    assert {each.repair for each in check_partition(directory / DEALS)} == {COLLECT_EPOCHS}
