"""What a follower asks of its leader, and what it does with the answers."""

from __future__ import annotations

import pytest

from octavo.cluster.follower_effects import Append, Effect, Restart, TruncateTo, TruncateToEpoch
from octavo.cluster.following import HOLD_MS, Fetcher
from octavo.cluster.messages import (
    EARLIEST_LOCAL,
    LATEST,
    EpochEndOffset,
    FetchAnswer,
    FetchedPartition,
    FetchPartition,
    FetchRequest,
    ListedOffset,
    ListOffsetsPartition,
    ListOffsetsRequest,
    TopicIdPartition,
)
from octavo.errors import ErrorCode
from tests.unit.cluster.partitions import A, B
from tests.unit.effort import effort

EPOCH = 5
AT = FetchPartition(EPOCH, 100, 3, 0)


def batch(base_offset: int) -> bytes:
    return base_offset.to_bytes(8) + bytes(60)


def following(*partitions: TopicIdPartition, at: FetchPartition = AT) -> Fetcher:
    fetcher = Fetcher()
    for partition in partitions or (A,):
        assert fetcher.follow(partition, at, 100) == []
    return fetcher


def ask(fetcher: Fetcher, now_ms: int = 0) -> dict[TopicIdPartition, FetchPartition]:
    request = fetcher.next_request(now_ms)
    assert isinstance(request, FetchRequest)
    return dict(request.partitions)


def answer(fetcher: Fetcher, now_ms: int = 0, **parts: FetchedPartition) -> list[Effect]:
    """The leader grants no session, so every answer is full."""
    named = {"a": A, "b": B}
    return fetcher.fetched(FetchAnswer(0, 0, {named[name]: part for name, part in parts.items()}), now_ms)


def failed(error: ErrorCode) -> FetchedPartition:
    return FetchedPartition(error)


# ------------------------------------------------------------------------------------------------------------ appending


def test_records_are_appended_and_the_next_ones_asked_for() -> None:
    fetcher = following()
    assert ask(fetcher) == {A: AT}
    assert fetcher.next_request(0) is None  # one at a time
    effects = answer(fetcher, a=FetchedPartition(0, 110, 7, batch(100)))
    assert effects == [Append(A, batch(100), EPOCH, 110, 7)]
    assert fetcher.next_request(0) is None  # the log is busy
    fetcher.moved(A, end_offset=104, last_fetched_epoch=4, log_start_offset=7)
    assert ask(fetcher) == {A: FetchPartition(EPOCH, 104, 4, 7)}
    assert fetcher.lag(A) == 6


def test_the_high_watermark_comes_without_records_too_but_is_told_once() -> None:
    fetcher = following()
    ask(fetcher)
    assert answer(fetcher, a=FetchedPartition(0, 100, 0)) == [Append(A, b"", EPOCH, 100, 0)]
    fetcher.moved(A, end_offset=100, last_fetched_epoch=3, log_start_offset=0)
    assert ask(fetcher) == {A: AT}  # the last epoch stays what it was (KAFKA-15510)
    assert answer(fetcher, a=FetchedPartition(0, 100, 0)) == []
    ask(fetcher)
    assert answer(fetcher, a=FetchedPartition(0, 100, 50)) == [Append(A, b"", EPOCH, 100, 50)]


def test_the_leader_learns_at_once_that_records_are_appended() -> None:
    fetcher = following(A, B)
    ask(fetcher)
    answer(fetcher, a=FetchedPartition(0, 110, 0, batch(100)), b=FetchedPartition(0, 110, 0))
    fetcher.moved(B, end_offset=100, last_fetched_epoch=EPOCH, log_start_offset=0)
    assert fetcher.next_request(HOLD_MS - 1) is None  # it would wait at the leader, which knows nothing of A meanwhile
    assert fetcher.next_ms == HOLD_MS
    fetcher.moved(A, end_offset=101, last_fetched_epoch=EPOCH, log_start_offset=0)
    assert fetcher.next_ms == 0
    assert ask(fetcher)[A].fetch_offset == 101


@pytest.mark.parametrize("end", ["forget", "refused", "broken", "follow"])
def test_records_that_are_not_appended_hold_nothing_up(end: str) -> None:
    fetcher = following(A, B)
    ask(fetcher)
    answer(fetcher, a=FetchedPartition(0, 110, 0, batch(100)), b=FetchedPartition(0, -1, -1))
    fetcher.moved(B, end_offset=100, last_fetched_epoch=EPOCH, log_start_offset=0)
    if end == "forget":
        fetcher.forget(A)
    elif end == "refused":
        fetcher.refused(A, 0)
    elif end == "broken":
        fetcher.broken(A)
    else:
        fetcher.follow(A, AT._replace(current_leader_epoch=EPOCH + 1), 100)
    assert fetcher.next_request(0) is not None


def test_a_busy_log_does_not_hold_up_the_others_for_long() -> None:
    fetcher = following(A, B)
    ask(fetcher)
    answer(fetcher, a=FetchedPartition(0, 110, 0, batch(100)), b=failed(ErrorCode.NOT_LEADER_OR_FOLLOWER))
    assert fetcher.next_request(HOLD_MS - 1) is None
    assert ask(fetcher, HOLD_MS) == {B: AT}


def test_an_empty_log_begins_at_the_batch_in_which_the_leaders_log_begins() -> None:
    fetcher = following(at=FetchPartition(EPOCH, 100, -1, 100))
    ask(fetcher)
    effects = answer(fetcher, a=FetchedPartition(0, 110, 100, batch(95)))
    assert effects == [Append(A, batch(95), EPOCH, 110, 100, restart_at=95)]


def test_records_that_begin_too_early_for_a_log_that_has_some_are_asked_for_again_later() -> None:
    fetcher = following()
    ask(fetcher)
    assert answer(fetcher, a=FetchedPartition(0, 110, 0, batch(95))) == []
    assert fetcher.next_request(19) is None
    assert ask(fetcher, 20) == {A: AT}


def test_a_log_without_epochs_is_cut_at_its_high_watermark_first() -> None:
    fetcher = Fetcher()
    assert fetcher.follow(A, FetchPartition(EPOCH, 100, -1, 0), 40) == [TruncateTo(A, 40)]
    assert fetcher.next_request(0) is None
    fetcher.moved(A, end_offset=40, last_fetched_epoch=-1, log_start_offset=0)
    assert ask(fetcher) == {A: FetchPartition(EPOCH, 40, -1, 0)}


def test_records_that_the_log_refuses_are_asked_for_again_later_and_a_broken_disk_is_left_alone() -> None:
    fetcher = following(A, B)
    ask(fetcher)
    answer(fetcher, a=FetchedPartition(0, 110, 0, batch(100)), b=FetchedPartition(0, 110, 0, batch(100)))
    fetcher.refused(A, 10)
    fetcher.broken(B)
    assert fetcher.next_ms == 30
    assert fetcher.next_request(29) is None
    assert ask(fetcher, 30) == {A: AT}
    assert fetcher.follow(B, AT._replace(current_leader_epoch=EPOCH + 1), 100) == []
    answer(fetcher, 1010, a=FetchedPartition(0, 110, 0))
    assert B in ask(fetcher, 30)


# ----------------------------------------------------------------------------------------------------------- truncation


def test_nothing_but_the_truncation_is_taken_from_a_diverging_answer() -> None:
    fetcher = following()
    ask(fetcher)
    part = FetchedPartition(0, 500, 40, batch(100), EpochEndOffset(2, 80))
    assert answer(fetcher, a=part) == [TruncateToEpoch(A, 2, 80)]
    fetcher.moved(A, end_offset=80, last_fetched_epoch=2, log_start_offset=0)
    assert ask(fetcher) == {A: FetchPartition(EPOCH, 80, 2, 0)}


def list_offsets(fetcher: Fetcher, timestamp: int, offset: int, now_ms: int = 0) -> list[Effect]:
    assert fetcher.next_request(now_ms) == ListOffsetsRequest({A: ListOffsetsPartition(EPOCH, timestamp)})
    return fetcher.listed({A: ListedOffset(0, offset)}, now_ms)


def out_of_range() -> Fetcher:
    fetcher = following()
    ask(fetcher)
    assert answer(fetcher, a=failed(ErrorCode.OFFSET_OUT_OF_RANGE)) == []
    return fetcher


def test_a_log_that_is_longer_than_the_leaders_is_cut() -> None:
    assert list_offsets(out_of_range(), LATEST, 70) == [TruncateTo(A, 70)]


def test_a_log_that_ends_before_the_leaders_begins_is_begun_anew() -> None:
    fetcher = out_of_range()
    assert list_offsets(fetcher, LATEST, 900) == []
    assert list_offsets(fetcher, EARLIEST_LOCAL, 500) == [Restart(A, 500)]
    fetcher.moved(A, end_offset=500, last_fetched_epoch=-1, log_start_offset=500)
    assert ask(fetcher) == {A: FetchPartition(EPOCH, 500, -1, 500)}


def test_a_log_that_is_in_range_after_all_stays_and_is_not_asked_about_in_circles() -> None:
    fetcher = out_of_range()
    list_offsets(fetcher, LATEST, 100)
    assert list_offsets(fetcher, EARLIEST_LOCAL, 100) == []
    assert fetcher.next_request(19) is None
    assert ask(fetcher, 20) == {A: AT}


@pytest.mark.parametrize("found", [ListedOffset(ErrorCode.UNKNOWN_LEADER_EPOCH), ListedOffset(0, -1), None])
def test_a_leader_that_does_not_say_where_its_log_ends_is_asked_again_later(found: ListedOffset | None) -> None:
    fetcher = out_of_range()
    assert isinstance(fetcher.next_request(0), ListOffsetsRequest)
    assert fetcher.listed({} if found is None else {A: found}, 0) == []
    assert fetcher.next_request(19) is None
    assert list_offsets(fetcher, LATEST, 70, 20) == [TruncateTo(A, 70)]


# --------------------------------------------------------------------------------------------------------------- errors


def test_a_follower_that_is_fenced_waits_for_metadata() -> None:
    fetcher = following()
    ask(fetcher)
    answer(fetcher, a=failed(ErrorCode.FENCED_LEADER_EPOCH))
    assert fetcher.next_ms is None
    assert fetcher.next_request(1 << 40) is None
    assert fetcher.follow(A, AT, 100) == []  # the same epoch is no news
    assert fetcher.next_request(1 << 40) is None
    newer = AT._replace(current_leader_epoch=EPOCH + 1)
    fetcher.follow(A, newer, 100)
    assert ask(fetcher) == {A: newer}


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    ],
)
def test_after_other_errors_the_partition_is_asked_for_again_later(error: ErrorCode) -> None:
    fetcher = following(A, B)
    ask(fetcher)
    answer(fetcher, 50, a=failed(error), b=FetchedPartition(0, 100, 0))
    fetcher.moved(B, end_offset=100, last_fetched_epoch=3, log_start_offset=0)
    assert ask(fetcher, 50) == {B: AT}
    answer(fetcher, 50, b=FetchedPartition(0, 100, 0))
    assert ask(fetcher, 1050) == {A: AT, B: AT}


def test_answers_do_not_count_for_a_partition_that_has_a_new_epoch_or_is_no_longer_followed() -> None:
    fetcher = following(A, B)
    ask(fetcher)
    newer = AT._replace(current_leader_epoch=EPOCH + 1)
    fetcher.follow(A, newer, 100)
    fetcher.forget(B)
    part = FetchedPartition(0, 110, 0, batch(100))
    assert answer(fetcher, a=part, b=part) == []
    assert ask(fetcher) == {A: newer}
    fetcher.forget(A)
    assert answer(fetcher, a=part) == []
    assert fetcher.next_request(0) is None


def test_a_leader_that_does_not_answer_is_asked_again_later() -> None:
    fetcher = following(A, B)
    ask(fetcher)
    fetcher.failed(0)
    assert fetcher.next_ms == 20
    assert fetcher.next_request(19) is None
    assert ask(fetcher, 20) == {A: AT, B: AT}


def test_a_lost_session_is_begun_anew_at_once() -> None:
    fetcher = following()
    ask(fetcher)
    fetcher.fetched(FetchAnswer(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0, {}), 0)
    assert ask(fetcher) == {A: AT}
    fetcher.fetched(FetchAnswer(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR, 0, {}), 0)
    assert fetcher.next_request(19) is None
    assert ask(fetcher, 20) == {A: AT}


def test_throttled_partitions_are_held_back_unless_they_are_in_sync() -> None:
    fetcher = following(A, B)
    assert fetcher.next_request(0, held_back=[A, B]) is None
    ask(fetcher)
    answer(fetcher, a=FetchedPartition(0, 200, 0, batch(100)), b=FetchedPartition(0, 100, 0))
    for partition, end in ((A, 150), (B, 100)):
        fetcher.moved(partition, end_offset=end, last_fetched_epoch=3, log_start_offset=0)
    request = fetcher.next_request(0, held_back=[A, B])
    assert isinstance(request, FetchRequest)
    assert request.partitions.keys() == {B}


def test_a_leader_that_goes_on_refusing_is_asked_less_and_less_often_until_it_answers() -> None:
    fetcher = following()
    now_ms, pauses = 0, []
    for _ in range(8):
        ask(fetcher, now_ms)
        answer(fetcher, now_ms, a=failed(ErrorCode.UNKNOWN_TOPIC_ID))
        assert fetcher.next_ms is not None
        pauses.append(fetcher.next_ms - now_ms)
        now_ms = fetcher.next_ms
    assert pauses == [20, 40, 80, 160, 320, 640, 1000, 1000]
    ask(fetcher, now_ms)
    answer(fetcher, now_ms, a=FetchedPartition(0, 110, 0, batch(100)))
    fetcher.moved(A, end_offset=104, last_fetched_epoch=4, log_start_offset=0)
    ask(fetcher, now_ms)
    answer(fetcher, now_ms, a=failed(ErrorCode.NOT_LEADER_OR_FOLLOWER))
    assert fetcher.next_ms == now_ms + 20


def test_records_that_are_refused_again_and_again_are_asked_for_less_and_less_often() -> None:
    fetcher = following()
    for now_ms, next_ms in ((0, 20), (20, 60), (60, 140)):
        ask(fetcher, now_ms)
        answer(fetcher, now_ms, a=FetchedPartition(0, 110, 0, batch(100)))
        fetcher.refused(A, now_ms)
        assert fetcher.next_ms == next_ms


def test_what_it_takes_to_ask_again_depends_on_what_has_changed() -> None:
    efforts = []
    for count in (10, 1000):
        partitions = [TopicIdPartition(A.topic_id, number) for number in range(count)]
        fetcher = following(*partitions)
        ask(fetcher)
        nothing = FetchedPartition(0, 100, 0)
        for effect in fetcher.fetched(FetchAnswer(0, 77, dict.fromkeys(partitions, nothing)), 0):
            fetcher.moved(effect.partition, end_offset=100, last_fetched_epoch=3, log_start_offset=0)

        def go_on(fetcher: Fetcher = fetcher, partition: TopicIdPartition = partitions[1]) -> None:
            assert fetcher.next_ms == 0
            ask(fetcher)
            fetcher.fetched(FetchAnswer(0, 77, {partition: FetchedPartition(0, 100, 0, batch(100))}), 0)
            fetcher.moved(partition, end_offset=101, last_fetched_epoch=3, log_start_offset=0)

        go_on()
        efforts.append(effort(go_on))
    assert efforts[0] == efforts[1]


def test_without_a_session_partitions_with_records_give_way_to_the_others() -> None:
    fetcher, asked, ends = following(A, B), [], {A: 100, B: 100}
    for now_ms in range(4):
        first, second = ask(fetcher, now_ms)
        asked.append(first)
        ends[first] += 1
        # A leader that has always more, and room for one in its answer.
        parts = {first: FetchedPartition(0, 200, 0, batch(150)), second: FetchedPartition()}
        for effect in fetcher.fetched(FetchAnswer(0, 0, parts), now_ms):
            place = effect.partition
            fetcher.moved(place, end_offset=ends[place], last_fetched_epoch=3, log_start_offset=0)
    assert asked == [A, B, A, B]
