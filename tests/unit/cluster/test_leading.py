"""A leader: who is in sync, how far the high watermark goes, and when records are acknowledged."""

from __future__ import annotations

import pytest

from octavo.cluster.leading import NOTHING, IsrChange
from octavo.cluster.messages import AlteredPartition, AlterPartitionChange, BrokerState
from octavo.errors import ErrorCode
from octavo.schemas.metadata.nodes import RegisterBrokerRecord
from tests.unit.cluster.leaders import EPOCHS, LAG_MS, Leader, broker, state
from tests.unit.cluster.partitions import A

NONE = 0


def proposal(*isr: int) -> AlterPartitionChange:
    return AlterPartitionChange(5, 20, tuple(BrokerState(number, EPOCHS[number]) for number in isr))


# ------------------------------------------------------------------------------------------------------ high watermark


def test_the_high_watermark_follows_the_slowest_replica_in_sync() -> None:
    leader = Leader(1, 2, 3)
    assert leader.first == NOTHING  # nothing is known of the followers
    assert leader.fetch(2, 100) == NOTHING
    assert leader.fetch(3, 90).high_watermark == 90
    assert leader.append(50) == NOTHING
    assert leader.fetch(3, 150).high_watermark == 100
    assert leader.fetch(2, 140).high_watermark == 140


def test_the_high_watermark_never_goes_back() -> None:
    leader = Leader(1, 2)
    leader.fetch(2, 100)
    assert leader.led.high_watermark == 100
    assert leader.fetch(2, 60) == NOTHING  # it has lost data
    leader.append(10)
    assert leader.led.high_watermark == 100


def test_a_leader_alone_commits_at_once() -> None:
    leader = Leader(1, replicas=(1,))
    assert leader.first.high_watermark == 100
    assert leader.append(5).high_watermark == 105


def test_the_high_watermark_stays_below_the_least_number_of_replicas() -> None:
    """Even if the only one left has everything."""
    leader = Leader(1, min_isr=2)
    assert leader.first == NOTHING
    assert leader.append(5) == NOTHING
    assert leader.led.append_refusal() == ErrorCode.NOT_ENOUGH_REPLICAS
    assert leader.fetch(2, 60) == NOTHING
    leader.led.min_isr = 1
    leader.brokers[2] = broker(2, fenced=True)
    assert leader.led.check(leader.now_ms).high_watermark == 105


def test_no_more_replicas_are_needed_than_there_are() -> None:
    leader = Leader(1, min_isr=3, replicas=(1,))
    assert leader.led.append_refusal() == NONE
    assert leader.append(5).high_watermark == 105


def test_a_replica_that_is_about_to_join_holds_the_high_watermark_back() -> None:
    leader = Leader(1)
    assert leader.led.high_watermark == 100
    change = leader.fetch(2, 100).change
    assert change is not None
    leader.led.settled(change, AlteredPartition(ErrorCode.INELIGIBLE_REPLICA), leader.now_ms)
    leader.append(20)
    assert leader.led.high_watermark == 100  # it was caught up a moment ago
    leader.now_ms += LAG_MS + 1
    assert leader.led.check(leader.now_ms).high_watermark == 120


@pytest.mark.parametrize("stranger", [broker(2, fenced=True), broker(2, leaving=True), broker(2, epoch=200), None])
def test_a_replica_that_may_not_join_does_not_hold_the_high_watermark_back(
    stranger: RegisterBrokerRecord | None,
) -> None:
    leader = Leader(1)
    leader.fetch(2, 90)
    if stranger is None:
        del leader.brokers[2]
    else:
        leader.brokers[2] = stranger
    assert leader.append(20).high_watermark == 120


def test_positions_of_an_older_time_as_a_leader_do_not_count() -> None:
    leader = Leader(1, 2, 3)
    leader.fetch(2, 100)
    leader.fetch(3, 100)
    leader.end = 150
    assert leader.lead(state(1, 2, 3, leader_epoch=7, partition_epoch=22)) == NOTHING  # another led in epoch 6
    assert leader.fetch(2, 150) == NOTHING
    assert leader.fetch(3, 130).high_watermark == 130


def test_a_leader_that_is_elected_again_keeps_the_positions() -> None:
    leader = Leader(1, 2, 3)
    leader.fetch(2, 100)
    leader.fetch(3, 95)
    leader.append(10)
    assert leader.lead(state(1, 2, leader_epoch=6, partition_epoch=21)).high_watermark == 100
    assert leader.led.epoch_start == 110


def test_the_latest_offset_is_not_told_until_the_epoch_has_begun_for_readers() -> None:
    leader = Leader(1, 2)
    assert leader.led.is_old(leader.led.high_watermark)
    leader.fetch(2, 99)
    assert leader.led.is_old(leader.led.high_watermark)
    leader.fetch(2, 100)
    assert not leader.led.is_old(leader.led.high_watermark)


# ---------------------------------------------------------------------------------------------------------- expansion


def test_a_follower_that_has_everything_joins() -> None:
    leader = Leader(1, 2)
    leader.fetch(2, 100)
    change = leader.fetch(3, 100).change
    assert change == IsrChange(A, proposal(1, 2, 3), frozenset({1, 2, 3}))
    assert leader.led.isr == {1, 2}
    assert leader.led.maximal_isr == {1, 2, 3}
    leader.append(10)
    assert leader.fetch(2, 110) == NOTHING  # the new one counts from the moment that it was asked for
    leader.led.settled(change, AlteredPartition(NONE, 5, (1, 2, 3), 21), leader.now_ms)
    assert leader.led.isr == {1, 2, 3}
    assert leader.led.partition_epoch == 21
    assert leader.fetch(3, 110).high_watermark == 110


def test_nobody_joins_behind_the_high_watermark_or_the_start_of_the_epoch() -> None:
    leader = Leader(1, 2)
    assert leader.fetch(3, 99).change is None  # the epoch began at 100
    assert leader.fetch(3, 100).change is not None  # and the high watermark is at 80

    leader = Leader(1, 2)
    leader.append(50)
    leader.fetch(2, 150)
    assert leader.led.high_watermark == 150
    assert leader.fetch(3, 149).change is None
    assert leader.fetch(3, 150).change is not None


@pytest.mark.parametrize("record", [broker(3, fenced=True), broker(3, leaving=True), broker(3, epoch=90)])
def test_nobody_joins_who_is_fenced_or_leaves_or_has_another_epoch(record: RegisterBrokerRecord) -> None:
    leader = Leader(1, 2)
    leader.brokers[3] = record
    assert leader.fetch(3, 100).change is None
    del leader.brokers[3]
    assert leader.fetch(3, 100).change is None
    leader.brokers[3] = broker(3)
    assert leader.fetch(3, 100, epoch=-1).change is not None  # an old follower tells none


def test_one_change_is_pending_at_a_time() -> None:
    leader = Leader(1)
    assert leader.fetch(2, 100).change is not None
    assert leader.fetch(3, 100).change is None


# ----------------------------------------------------------------------------------------------------------- shrinking


def test_replicas_that_are_behind_for_too_long_leave_together() -> None:
    leader = Leader(1, 2, 3)
    leader.fetch(2, 100)
    leader.fetch(3, 100)
    leader.append(10)
    leader.now_ms += LAG_MS
    assert leader.led.check(leader.now_ms) == NOTHING
    leader.now_ms += 1
    change = leader.led.check(leader.now_ms).change
    assert change == IsrChange(A, proposal(1), frozenset({1, 2, 3}))
    assert leader.led.high_watermark == 100  # they count until the controller has said yes
    outcome = leader.led.settled(change, AlteredPartition(NONE, 5, (1,), 21), leader.now_ms)
    assert outcome.high_watermark == 110


def test_a_follower_that_has_everything_stays_however_silent_it_is() -> None:
    leader = Leader(1, 2, 3)
    leader.fetch(2, 100)
    leader.fetch(3, 99)
    leader.now_ms += 10 * LAG_MS
    change = leader.led.check(leader.now_ms).change
    assert change is not None
    assert change.asked == proposal(1, 2)


def test_a_follower_that_reaches_where_the_leader_was_at_its_last_fetch_stays() -> None:
    """It is always a little behind, because so much is produced."""
    leader = Leader(1, 2)
    for _ in range(10):
        before = leader.end
        leader.append(10)
        leader.now_ms += LAG_MS // 2
        leader.fetch(2, before)
        assert leader.led.check(leader.now_ms).change is None
    leader.append(10)
    leader.now_ms += LAG_MS + 1
    assert leader.led.check(leader.now_ms).change is not None


def test_a_member_that_has_never_fetched_has_a_while_and_its_epoch_is_not_known() -> None:
    leader = Leader(1, 2, 3)
    leader.now_ms += LAG_MS
    leader.fetch(2, 100)
    assert leader.led.check(leader.now_ms).change is None
    leader.now_ms += 1
    change = leader.led.check(leader.now_ms).change
    assert change is not None
    assert change.asked == proposal(1, 2)

    leader = Leader(1, 2)
    change = leader.fetch(3, 100).change
    assert change is not None
    assert BrokerState(2, -1) in change.asked.new_isr_with_epochs


# ------------------------------------------------------------------------------------------------ what becomes of it


@pytest.mark.parametrize("error", [ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED])
def test_a_change_that_was_certainly_not_made_is_forgotten(error: ErrorCode) -> None:
    leader = Leader(1, 2)
    change = leader.fetch(3, 100).change
    assert change is not None
    leader.led.settled(change, AlteredPartition(error), leader.now_ms)
    assert leader.led.maximal_isr == {1, 2}
    assert leader.fetch(3, 100).change is not None


@pytest.mark.parametrize(
    "answer",
    [
        AlteredPartition(ErrorCode.FENCED_LEADER_EPOCH),
        AlteredPartition(ErrorCode.INVALID_UPDATE_VERSION),
        AlteredPartition(ErrorCode.INVALID_REQUEST),
        AlteredPartition(ErrorCode.UNKNOWN_TOPIC_ID),
        AlteredPartition(ErrorCode.NEW_LEADER_ELECTED),
        AlteredPartition(NONE, 6, (1, 2, 3), 30),  # of an epoch that is not known here
        AlteredPartition(NONE, 5, (1, 2), 19),
    ],
)
def test_a_change_of_which_nothing_is_certain_stays_until_metadata_tell(answer: AlteredPartition) -> None:
    leader = Leader(1, 2)
    leader.fetch(2, 100)
    change = leader.fetch(3, 100).change
    assert change is not None
    leader.append(10)
    leader.fetch(2, 110)
    assert leader.led.settled(change, answer, leader.now_ms) == NOTHING
    assert leader.led.maximal_isr == {1, 2, 3}
    assert leader.led.high_watermark == 100
    leader.brokers[3] = broker(3, fenced=True)
    assert leader.lead(state(1, 2, partition_epoch=21)).high_watermark == 110
    assert leader.led.pending is None


def test_a_late_answer_does_not_count_after_newer_metadata() -> None:
    leader = Leader(1, 2, 3)
    leader.fetch(2, 100)
    leader.now_ms += LAG_MS + 1
    change = leader.led.check(leader.now_ms).change
    assert change is not None
    leader.lead(state(1, 2, 3, partition_epoch=22))
    assert leader.led.settled(change, AlteredPartition(NONE, 5, (1, 2), 21), leader.now_ms) == NOTHING
    assert leader.led.isr == {1, 2, 3}


def test_metadata_that_are_not_newer_than_an_answer_change_nothing() -> None:
    """Also if another change was asked for since: it may still be made."""
    leader = Leader(1)
    change = leader.fetch(2, 100).change
    assert change is not None
    leader.led.settled(change, AlteredPartition(NONE, 5, (1, 2), 21), leader.now_ms)
    assert leader.fetch(3, 100).change is not None
    leader.lead(state(1, partition_epoch=20))
    leader.lead(state(1, 2, partition_epoch=21))
    assert leader.led.isr == {1, 2}
    assert leader.led.maximal_isr == {1, 2, 3}


# ------------------------------------------------------------------------------------------------------- Fetch refused


@pytest.mark.parametrize(
    ("replica", "epoch", "leader_epoch", "error"),
    [
        (2, 102, 5, NONE),
        (2, -1, 5, NONE),
        (2, 102, -1, NONE),
        (2, 900, 5, NONE),  # it has registered again, and metadata do not tell yet
        (2, 102, 4, ErrorCode.FENCED_LEADER_EPOCH),
        (2, 102, 6, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (4, 104, 5, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (4, 104, -1, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (2, 101, 5, ErrorCode.NOT_LEADER_OR_FOLLOWER),  # from before its restart
    ],
)
def test_a_follower_is_refused(replica: int, epoch: int, leader_epoch: int, error: int) -> None:
    assert Leader(1, 2).led.refusal(replica, epoch, leader_epoch) == error


def test_the_low_watermark_is_that_of_live_replicas() -> None:
    leader = Leader(1, 2, 3)
    for replica, start in ((2, 30), (3, 10)):
        leader.led.fetched(
            replica, EPOCHS[replica], fetch_offset=100, log_start_offset=start, end_offset=100, now_ms=leader.now_ms
        )
    assert leader.led.low_watermark(40) == 10
    leader.brokers[3] = broker(3, fenced=True)
    assert leader.led.low_watermark(40) == 30
    assert leader.led.low_watermark(20) == 20


# ------------------------------------------------------------------------------------------------------------ acks=all


def test_records_are_acknowledged_when_the_high_watermark_has_passed_them() -> None:
    leader = Leader(1, 2, min_isr=2)
    leader.fetch(2, 100)
    assert leader.led.append_refusal() == NONE
    leader.append(5)
    assert leader.led.acknowledgement(105) is None
    leader.fetch(2, 104)
    assert leader.led.acknowledgement(105) is None
    leader.fetch(2, 105)
    assert leader.led.acknowledgement(105) == NONE


def test_records_that_are_committed_but_on_too_few_replicas_are_told_so() -> None:
    leader = Leader(1, 2, min_isr=2)
    leader.append(5)
    leader.fetch(2, 105)
    leader.lead(state(1, partition_epoch=21))
    assert leader.led.acknowledgement(105) == ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    assert leader.led.acknowledgement(106) is None


def test_a_deposed_leader_acknowledges_nothing() -> None:
    leader = Leader(1, 2)
    leader.append(5)
    leader.led.depose()
    assert leader.led.fetched(2, 102, fetch_offset=105, log_start_offset=0, end_offset=105, now_ms=0) == NOTHING
    assert leader.led.acknowledgement(50) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert leader.led.append_refusal() == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert leader.led.refusal(2, 102, 5) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert leader.led.check(leader.now_ms + 10 * LAG_MS) == NOTHING
