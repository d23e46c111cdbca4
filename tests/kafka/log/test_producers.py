"""What Kafka's log and ours say to producers: who is let in, who is told to have been there, who is refused."""

from __future__ import annotations

import pytest

from octavo.errors import ErrorCode
from tests.batches import MAX_INT32, TIME_MS
from tests.kafka.log.conftest import OpenProducing
from tests.kafka.log.samples import batch, marker, produced, replicated, transacted
from tests.kafka.log.side_by_side import Refusal, outcome_of
from tests.kafka.unified_log import Appended

OUT_OF_ORDER = Refusal(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
FENCED = Refusal(ErrorCode.INVALID_PRODUCER_EPOCH)
NOT_IN_TRANSACTION = Refusal(ErrorCode.INVALID_TXN_STATE)
COORDINATOR_FENCED = Refusal(ErrorCode.TRANSACTION_COORDINATOR_FENCED)
DAY_MS = 86_400_000


@pytest.mark.parametrize("first", [0, 1, 17, MAX_INT32])
def test_an_unknown_producer_may_begin_anywhere(first: int, open_producing: OpenProducing) -> None:
    both = open_producing()
    assert both.append(produced(5, 3, first, 2)) == Appended(0, 1, -1, 0)
    both.append(produced(5, 3, (first + 2) & MAX_INT32))
    both.close()


def test_sequences_follow_each_other(open_producing: OpenProducing) -> None:
    both = open_producing()
    assert both.append(produced(5, 0, 0, 3)) == Appended(0, 2, -1, 0)
    assert both.append(produced(5, 0, 4)) == OUT_OF_ORDER
    assert both.append(produced(5, 0, 2, 2)) == OUT_OF_ORDER  # a part of it was there
    assert both.append(produced(5, 0, 1)) == OUT_OF_ORDER
    assert both.append(produced(5, 0, 3, 2)) == Appended(3, 4, -1, 0)
    assert both.append(produced(6, 0, 3, 2)) == Appended(5, 6, -1, 0)
    assert both.append(produced(5, 0, 5)) == Appended(7, 7, -1, 0)
    both.close()


def test_the_last_five_batches_are_known_again(open_producing: OpenProducing) -> None:
    both = open_producing()
    sequence, sent = 0, []
    for count in (3, 1, 2, 1, 4, 2, 1):
        sent.append((produced(5, 0, sequence, count, timestamp_ms=TIME_MS + sequence), sequence, count))
        sequence += count
        both.append(sent[-1][0])
    for data, first, count in sent[-5:]:
        assert both.append(data) == Appended(first, first + count - 1, TIME_MS + first, 0)
    for data, _, _ in sent[:-5]:
        assert both.append(data) == OUT_OF_ORDER
    other_content = produced(5, 0, 13, 1, size=77)
    assert both.append(other_content) == Appended(13, 13, TIME_MS + 13, 0)
    assert both.append(produced(5, 0, 11, 3)) == OUT_OF_ORDER  # two of them in one
    assert both.append(produced(5, 1, 13, 1)) == OUT_OF_ORDER
    both.close()


def test_a_log_that_is_opened_again_knows_the_last_batch_alone(open_producing: OpenProducing) -> None:
    both = open_producing()
    for sequence in range(6):
        both.append(produced(5, 0, sequence))
    both.close()
    both.open()
    assert both.append(produced(5, 0, 5)) == Appended(5, 5, TIME_MS, 0)
    assert both.append(produced(5, 0, 4)) == OUT_OF_ORDER
    assert both.append(produced(5, 0, 6)) == Appended(6, 6, -1, 0)
    both.close()


def test_sequences_begin_again_after_the_largest(open_producing: OpenProducing) -> None:
    both = open_producing()
    both.append(produced(5, 0, MAX_INT32 - 1))
    assert both.append(produced(5, 0, 0)) == OUT_OF_ORDER
    assert both.append(produced(5, 0, MAX_INT32, 3)) == Appended(1, 3, -1, 0)  # the largest, 0 and 1
    assert both.append(produced(5, 0, MAX_INT32, 3)) == Appended(1, 3, TIME_MS, 0)
    assert both.append(produced(5, 0, 1)) == OUT_OF_ORDER
    assert both.append(produced(5, 0, 2)) == Appended(4, 4, -1, 0)
    both.append(produced(6, 0, MAX_INT32))
    assert both.append(produced(6, 0, 0)) == Appended(6, 6, -1, 0)
    both.close()
    both.open()
    both.append(produced(6, 0, 1))
    both.close()


def test_a_new_epoch_begins_with_sequence_0(open_producing: OpenProducing) -> None:
    both = open_producing()
    both.append(produced(5, 2, 0, 4))
    assert both.append(produced(5, 3, 4)) == OUT_OF_ORDER
    assert both.append(produced(5, 1, 4)) == FENCED
    assert both.append(produced(5, 4, 0, 2)) == Appended(4, 5, -1, 0)
    assert both.append(produced(5, 2, 0, 4)) == FENCED  # it was there, but who sent it is not any more
    assert both.append(produced(5, 3, 0)) == FENCED
    assert both.append(produced(5, 4, 2)) == Appended(6, 6, -1, 0)
    both.close()


def test_several_batches_at_once_are_a_followers(open_producing: OpenProducing) -> None:
    """A follower takes whatever its leader took."""
    both = open_producing()
    both.append_as_follower(replicated(produced(5, 0, 0), 0) + replicated(produced(5, 0, 1), 1))
    both.append_as_follower(replicated(produced(5, 0, 7), 2))  # its leader had expired the producer
    both.append_as_follower(replicated(produced(5, 3, 9), 3))
    both.append_as_follower(replicated(produced(5, 1, 0), 4))
    both.append_as_follower(replicated(produced(5, 1, 0), 5))
    both.append_as_follower(replicated(marker(True, 5, 0, 9), 6))
    both.append_as_follower(replicated(marker(True, 5, 0, 8), 7))
    both.append_as_follower(replicated(transacted(6, 0, 0), 8) + replicated(marker(False, 6, 0, 8), 9))
    both.close()


def test_what_is_not_written_begins_no_segment(open_producing: OpenProducing) -> None:
    """Here we differ: Kafka makes room for a batch before it asks who sent it."""
    both = open_producing(internal_segment_bytes=300)
    both.append(produced(5, 0, 0, 2))
    both.append(produced(5, 0, 2, 2))
    for again in (produced(5, 0, 2, 2, size=100), produced(5, 0, 7, 2, size=100)):
        for log in (both.kafka, both.octavo):
            outcome_of(lambda: log.append(again))  # noqa: B023 (called at once)
    assert [segment.base_offset for segment in both.octavo.state.segments] == [0]
    assert [segment.base_offset for segment in both.kafka.state.segments] == [0, 4]


# Transactions


def test_a_transaction_is_committed_and_one_aborted(open_producing: OpenProducing) -> None:
    both = open_producing()
    both.append(batch(2))
    assert both.append(transacted(5, 0, 0, 2)) == Appended(2, 3, -1, 0)
    both.append(transacted(6, 0, 0))
    assert both.producers[1:3] == (2, 2)
    assert both.append(marker(True, 5, 0), origin="COORDINATOR") == Appended(5, 5, -1, 0)
    assert both.producers[1:3] == (4, 4)
    both.append(transacted(6, 0, 1))
    both.append(transacted(5, 0, 2))
    both.append(marker(False, 6, 0), origin="COORDINATOR")
    assert both.producers[1:3] == (7, 7)
    assert [entry[1:] for entry in both.producers.aborted] == [(6, 4, 8, 7)]
    both.append(marker(False, 5, 0), origin="COORDINATOR")
    assert both.producers[1:3] == (10, -1)
    both.read_committed((1, 100, 300, 10_000))
    both.close()
    both.open()
    both.append(transacted(6, 0, 2))
    both.append(transacted(5, 0, 3))
    both.close()
    both.open()
    assert both.producers[1:3] == (10, 10)
    both.append(marker(False, 6, 0), origin="COORDINATOR")
    both.append(marker(True, 5, 0), origin="COORDINATOR")
    both.read_committed((1, 100, 300, 10_000))
    both.close()


def test_who_has_a_transaction_open_may_write_nothing_else(open_producing: OpenProducing) -> None:
    both = open_producing()
    both.append(transacted(5, 0, 0))
    assert both.append(produced(5, 0, 1)) == NOT_IN_TRANSACTION
    both.append(transacted(5, 0, 1))
    assert both.append(produced(5, 1, 0)) == NOT_IN_TRANSACTION
    both.append(marker(True, 5, 0), origin="COORDINATOR")
    assert both.append(produced(5, 0, 2)) == Appended(3, 3, -1, 0)
    both.append(transacted(5, 0, 3))
    both.close()


def test_markers_without_data(open_producing: OpenProducing) -> None:
    both = open_producing()
    both.append(marker(True, 5, 0), origin="COORDINATOR")
    both.append(marker(False, 6, 3), origin="COORDINATOR")
    assert both.append(transacted(6, 2, 0)) == FENCED
    assert both.append(transacted(6, 4, 7)) == OUT_OF_ORDER
    assert both.append(transacted(6, 3, 7)) == OUT_OF_ORDER
    both.append(transacted(6, 3, 0))
    both.append(marker(False, 6, 3), origin="COORDINATOR")
    both.append(marker(False, 6, 3), origin="COORDINATOR")
    assert [entry.first_offset for entry in both.producers.aborted] == [2]
    both.close()
    both.open()
    both.append(produced(5, 0, 4))
    both.append(produced(6, 3, 4))
    both.close()


def test_markers_of_coordinators_and_epochs_that_are_over(open_producing: OpenProducing) -> None:
    both = open_producing()
    both.append(transacted(5, 3, 0))
    assert both.append(marker(True, 5, 2, 4), origin="COORDINATOR") == FENCED
    both.append(marker(True, 5, 3, 4), origin="COORDINATOR")
    assert both.append(marker(True, 5, 3, 3), origin="COORDINATOR") == COORDINATOR_FENCED
    both.append(marker(True, 5, 3, 4), origin="COORDINATOR")
    both.append(marker(True, 5, 4, 5), origin="COORDINATOR")  # the epoch goes up with the transaction's end
    assert both.append(transacted(5, 3, 1)) == FENCED
    assert both.append(transacted(5, 4, 1)) == OUT_OF_ORDER  # of this epoch there is nothing yet
    assert both.append(transacted(5, 4, 0)) == Appended(4, 4, -1, 0)
    assert both.append(transacted(5, 5, 1)) == OUT_OF_ORDER
    both.append(marker(False, 5, 5, 5), origin="COORDINATOR")
    assert both.append(transacted(5, 5, 0)) == Appended(6, 6, -1, 0)
    both.close()


def test_markers_that_are_no_coordinators(open_producing: OpenProducing) -> None:
    both = open_producing()
    both.append(transacted(5, 0, 0))
    both.append(marker(True, 5, 0))
    both.append(produced(5, 0, 1), origin="COORDINATOR")
    both.append(produced(7, 0, 4), origin="COORDINATOR")
    both.append(produced(7, 0, 9), origin="COORDINATOR")
    both.close()


def test_a_transactions_end_is_seen_when_it_is_replicated(open_producing: OpenProducing) -> None:
    both = open_producing(follows_end=False)
    both.append(transacted(5, 0, 0, 2))
    both.append(transacted(6, 0, 0))
    both.append(marker(False, 5, 0), origin="COORDINATOR")
    both.append(marker(True, 6, 0), origin="COORDINATOR")
    for offset in range(6):
        both.advance_high_watermark(offset)
        both.read_committed((1, 1000))
    assert both.producers[1:3] == (5, -1)
    both.close()


def test_the_start_may_pass_an_open_transaction(open_producing: OpenProducing) -> None:
    both = open_producing(internal_segment_bytes=200)
    both.append(transacted(5, 0, 0))
    for sequence in range(1, 6):
        both.append(transacted(5, 0, sequence))
        both.append(batch())
    both.delete_records_before(4)
    both.apply_retention()
    both.read_committed((1, 1000))
    both.append(marker(False, 5, 0), origin="COORDINATOR")
    both.read_committed((1, 1000))
    both.close()
    both.open()
    both.read_committed((1, 1000))
    both.close()


# What is forgotten


def test_producers_expire(open_producing: OpenProducing) -> None:
    both = open_producing()
    both.append(produced(5, 0, 0))
    both.append(transacted(6, 0, 0))
    both.append(produced(7, 0, 0, timestamp_ms=TIME_MS + 1000))
    both.append(marker(True, 8, 0, timestamp_ms=TIME_MS - 1), origin="COORDINATOR")
    both.now_ms += DAY_MS - 1
    both.expire_producers()
    assert [state.producer_id for state in both.producers.states] == [5, 6, 7]
    both.now_ms += 1
    both.expire_producers()
    assert [state.producer_id for state in both.producers.states] == [6, 7]
    both.append(produced(5, 0, 9))
    both.append(marker(True, 6, 0), origin="COORDINATOR")
    both.expire_producers()
    assert [state.producer_id for state in both.producers.states] == [7]  # the others' clocks stand
    both.close()
    both.now_ms += 1000
    both.open()
    assert both.producers.states == ()
    both.close()


def test_a_snapshot_of_producers_that_have_expired(open_producing: OpenProducing) -> None:
    both = open_producing()
    both.append(produced(5, 0, 0))
    both.append(transacted(6, 0, 0))
    both.close()
    both.now_ms += 2 * DAY_MS
    both.open()
    assert [state.producer_id for state in both.producers.states] == [6]
    both.append(produced(5, 0, 7))
    both.close()


def test_recovery_forgets_producers_that_have_expired(open_producing: OpenProducing) -> None:
    both = open_producing()
    both.append(produced(4, 0, 0))
    both.roll()
    both.append(produced(5, 0, 0))
    both.append(transacted(6, 0, 0))
    both.append(produced(7, 0, 0, timestamp_ms=TIME_MS + 1000))
    both.now_ms += DAY_MS + 500
    both.crash()
    assert [state.producer_id for state in both.producers.states] == [6, 7]
    both.append(produced(5, 0, 7))  # any sequence may follow
    both.close()
