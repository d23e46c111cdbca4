"""Which batches of transactions may go."""

from __future__ import annotations

from octavo.log.compaction.cleaned_transactions import CleanedTransactions
from octavo.log.segment.transaction_index import AbortedEntry
from octavo.records.control_key import ControlType

ABORTED = AbortedEntry(producer_id=1, first_offset=10, last_offset=20, last_stable_offset=21)


def test_a_batch_of_an_aborted_transaction_goes() -> None:
    transactions = CleanedTransactions()
    transactions.add([ABORTED])
    assert not transactions.note_batch(1, 5)  # of one before
    assert not transactions.note_batch(2, 12)
    assert transactions.note_batch(1, 12)
    assert not transactions.note_marker(ControlType.ABORT, 1, 20)
    assert not transactions.note_batch(1, 25)


def test_a_marker_is_over_when_nothing_was_met() -> None:
    transactions = CleanedTransactions()
    transactions.add([ABORTED, ABORTED])  # told twice, as by two segments
    assert transactions.note_marker(ControlType.ABORT, 1, 20)
    assert transactions.note_marker(ControlType.COMMIT, 1, 30)
    assert not transactions.note_batch(1, 35)
    assert not transactions.note_marker(ControlType.COMMIT, 1, 40)
    assert transactions.note_marker(ControlType.COMMIT, 1, 50)


def test_other_control_batches_stay_but_for_empty_ones() -> None:
    transactions = CleanedTransactions()
    assert not transactions.note_marker(ControlType.LEADER_CHANGE, -1, 1)
    assert not transactions.note_marker(99, -1, 1)
    assert transactions.note_marker(None, 1, 1)
