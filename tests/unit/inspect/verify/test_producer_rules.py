"""Faults in transaction indexes, producer snapshots and leader epochs that Kafka wrote are found where they are."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

import pytest

from octavo.inspect.verify import leader_epochs, looks, producer_snapshots, transaction_index
from tests.golden.directories import unpack
from tests.unit.inspect.verify.planting import (
    TXN_ENTRY,
    Fault,
    problems,
    put,
    replace,
    rewrite,
    rules_of,
    snapshot,
    txn_entry,
    with_crc,
    write,
)

DEALS: Final = "deals-0"
TWO_ABORTS: Final = f"{DEALS}/00000000000000000021.txnindex"
LAST: Final = f"{DEALS}/00000000000000000052.snapshot"
EPOCHS: Final = "events-0/leader-epoch-checkpoint"

# The entries of the last snapshot: transactional, transaction open, idempotent, idempotent.
ENDED, OPEN, OLDER, NEWER = range(4)
AT: Final = [10, 56, 102, 148]
EPOCH, SEQUENCE, OFFSET, DELTA, TIMESTAMP, COORDINATOR, TRANSACTION = range(1, 8)


def entry(number: int, field: int, amount: int) -> Fault:
    """Return a change of one field of an entry of the last snapshot, without a rule yet."""

    def change(entries: list[list[int]]) -> None:
        entries[number][field] += amount

    return Fault("", rewrite(LAST, snapshot(change)), LAST, AT[number], 52)


def name(rule: str, fault: Fault) -> Fault:
    return fault._replace(rule=rule)


def remove_snapshots(directory: Path) -> None:
    for path in (directory / DEALS).glob("*.snapshot"):
        path.unlink()


def copy_last(directory: Path, *offsets: int) -> None:
    """Have the last snapshot at later offsets, too."""
    for offset in offsets:
        shutil.copy(directory / LAST, directory / f"{DEALS}/{offset:020d}.snapshot")


def move_last(directory: Path, offset: int, *, last_offset: int) -> None:
    """Have the last snapshot at a later offset instead, and say of a producer which offset it wrote last."""
    (directory / LAST).rename(directory / f"{DEALS}/{offset:020d}.snapshot")

    def change(entries: list[list[int]]) -> None:
        entries[NEWER][OFFSET] = last_offset

    rewrite(f"{DEALS}/{offset:020d}.snapshot", snapshot(change))(directory)


TXN_INDEX: Final = [
    Fault("txnindex-length", rewrite(TWO_ABORTS, lambda data: data + bytes(5)), TWO_ABORTS, 68),
    Fault("txnindex-version", txn_entry(TWO_ABORTS, 1, version=1), TWO_ABORTS, 34),
    Fault("txnindex-range", txn_entry(TWO_ABORTS, 1, last_stable_offset=-25), TWO_ABORTS, 34, 23),
    Fault("txnindex-order", rewrite(TWO_ABORTS, lambda data: data[34:] + data[:34]), TWO_ABORTS, 34, 22),
    Fault("txnindex-missing", rewrite(TWO_ABORTS, lambda data: data[:34]), TWO_ABORTS, None, 23),
    Fault(
        "txnindex-missing",
        lambda directory: (directory / TWO_ABORTS).unlink(),
        TWO_ABORTS,
        None,
        22,
    ),
    Fault(
        "txnindex-superfluous",  # at a marker that commits
        write(f"{DEALS}/00000000000000000015.txnindex", TXN_ENTRY.pack(0, 1, 11, 15, 16)),
        f"{DEALS}/00000000000000000015.txnindex",
        0,
        15,
    ),
    Fault(
        "txnindex-superfluous",  # at a batch of records
        rewrite(f"{DEALS}/00000000000000000045.txnindex", lambda data: TXN_ENTRY.pack(0, 2, 45, 45, 46) + data),
        f"{DEALS}/00000000000000000045.txnindex",
        0,
        45,
    ),
    Fault("txnindex-first-offset", txn_entry(TWO_ABORTS, 0, first_offset=1), TWO_ABORTS, 0, 22),
    Fault("txnindex-first-offset", txn_entry(TWO_ABORTS, 0, first_offset=-1), TWO_ABORTS, 0, 22),
    Fault("txnindex-stable-offset", txn_entry(TWO_ABORTS, 0, last_stable_offset=4), TWO_ABORTS, 0, 22),
    Fault("txnindex-stable-offset", txn_entry(TWO_ABORTS, 1, last_stable_offset=-1), TWO_ABORTS, 34, 23),
]
SNAPSHOTS: Final = [
    Fault("snapshot-missing", lambda directory: remove_snapshots(directory), LAST, None, 52),
    Fault("snapshot-length", rewrite(LAST, lambda data: with_crc(put(6, b"\0\0\0\5")(data))), LAST, 6, 52),
    Fault("snapshot-length", rewrite(LAST, lambda data: data[:9]), LAST, 9, 52),
    Fault("snapshot-length", rewrite(LAST, lambda data: b""), LAST, 0, 52),
    Fault("snapshot-version", rewrite(LAST, put(1, b"\2")), LAST, 0, 52),
    Fault("snapshot-crc", rewrite(LAST, put(60, b"\xff")), LAST, 2, 52),
    name("snapshot-fields", entry(ENDED, EPOCH, -20)),
    name("snapshot-fields", entry(NEWER, OFFSET, 1)),
    Fault(
        "snapshot-duplicate",
        rewrite(LAST, snapshot(lambda entries: entries.append(entries[OLDER]))),
        LAST,
        194,
        52,
    ),
    Fault(
        "snapshot-beyond-end", lambda directory: copy_last(directory, 98, 99), f"{DEALS}/{99:020d}.snapshot", None, 99
    ),
    Fault(
        "snapshot-beyond-end",  # and it has the state of a producer there
        lambda directory: move_last(directory, 99, last_offset=70),
        f"{DEALS}/{99:020d}.snapshot",
        None,
        99,
    ),
    Fault(
        "snapshot-beyond-end",  # further than a batch can reach
        lambda directory: move_last(directory, 39_000_000, last_offset=50),
        f"{DEALS}/{39_000_000:020d}.snapshot",
        None,
        39_000_000,
    ),
    Fault(
        "snapshot-unknown-producer",
        rewrite(LAST, snapshot(lambda entries: entries.append([77, 0, 3, 51, 0, 0, -1, -1]))),
        LAST,
        194,
        52,
    ),
    Fault(
        "snapshot-missing-producer",  # it has a transaction open
        rewrite(LAST, snapshot(lambda entries: entries.pop(OPEN))),
        LAST,
        6,
        52,
    ),
    Fault(
        "snapshot-missing-producer",  # it is newer than one that is there
        rewrite(LAST, snapshot(lambda entries: entries.pop(NEWER))),
        LAST,
        6,
        52,
    ),
    name("snapshot-epoch", entry(NEWER, EPOCH, 1)),
    name("snapshot-last-batch", entry(NEWER, SEQUENCE, 1)),
    name("snapshot-last-batch", entry(OLDER, OFFSET, -8)),
    name("snapshot-last-batch", entry(OLDER, DELTA, 1)),
    name("snapshot-last-batch", entry(ENDED, OFFSET, 42)),
    name("snapshot-timestamp", entry(NEWER, TIMESTAMP, 1)),
    name("snapshot-timestamp", entry(ENDED, TIMESTAMP, -1)),
    name("snapshot-coordinator-epoch", entry(ENDED, COORDINATOR, 1)),
    name("snapshot-transaction", entry(OPEN, TRANSACTION, -1)),
    name("snapshot-transaction", entry(ENDED, TRANSACTION, 48)),
    name("snapshot-transaction", entry(OPEN, TRANSACTION, -51)),
]
LEADER_EPOCHS: Final = [
    Fault("epochs-format", rewrite(EPOCHS, put(0, b"1")), EPOCHS, 0),
    Fault("epochs-format", rewrite(EPOCHS, put(2, b"3")), EPOCHS, 2),
    Fault("epochs-format", rewrite(EPOCHS, replace(b"2 20", b"2 twenty")), EPOCHS, 8),
    Fault("epochs-entry", rewrite(EPOCHS, replace(b"0 7", b"-1 7")), EPOCHS, 4),
    Fault("epochs-order", rewrite(EPOCHS, replace(b"2 20", b"2 7")), EPOCHS, 8, 7),
    Fault("epochs-order", rewrite(EPOCHS, replace(b"2 20", b"0 20")), EPOCHS, 8, 20),
    Fault("epochs-beyond-end", rewrite(EPOCHS, lambda data: b"0\n3\n0 7\n2 20\n5 22\n"), EPOCHS, 13, 22),
    Fault("epochs-data", rewrite(EPOCHS, replace(b"2 20", b"2 18")), EPOCHS, 8, 18),
    Fault("epochs-data", rewrite(EPOCHS, replace(b"2 20", b"3 20")), EPOCHS, 8, 20),
    Fault("epochs-data", rewrite(EPOCHS, lambda data: b"0\n1\n0 7\n"), EPOCHS, 4, 20),
]
FAULTS: Final = [*TXN_INDEX, *SNAPSHOTS, *LEADER_EPOCHS]


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looks, "_PAUSE_S", 0.0)


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_a_planted_fault_is_found_where_it_is(fault: Fault, tmp_path: Path) -> None:
    partition = fault.file.partition("/")[0]
    fault.check(unpack("closed", tmp_path, partition), partition)


@pytest.mark.parametrize("file", [f"{DEALS}/partition.metadata", ".kafka_cleanshutdown"])
def test_a_log_without_snapshots_is_sound_if_it_is_old_or_was_not_closed(file: str, tmp_path: Path) -> None:
    directory = unpack("closed", tmp_path, DEALS)
    remove_snapshots(directory)
    (directory / file).unlink()
    assert {each.rule.name for each in problems(directory, DEALS)} <= {"topic-id-missing"}


def test_every_rule_has_a_fault() -> None:
    assert rules_of(transaction_index, producer_snapshots, leader_epochs) == {fault.rule for fault in FAULTS}
