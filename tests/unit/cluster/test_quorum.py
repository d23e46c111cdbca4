"""An observer of the metadata log: it finds the leader, and applies what is committed, and only that."""

from __future__ import annotations

import pytest

from octavo.cluster.messages import (
    CurrentLeader,
    Endpoint,
    EpochEndOffset,
    FetchSnapshotAnswer,
    FetchSnapshotRequest,
    MetadataFetchAnswer,
    MetadataFetchRequest,
    SnapshotId,
)
from octavo.cluster.quorum import (
    AppendMetadata,
    Apply,
    Asked,
    Effect,
    LoadSnapshot,
    NewLeader,
    Observer,
    Stop,
    TruncateMetadata,
    WriteSnapshot,
)
from octavo.errors import ErrorCode

ONE, TWO, THREE = Endpoint("a", 1), Endpoint("b", 2), Endpoint("c", 3)
ENDPOINTS = {101: ONE, 102: TWO, 103: THREE}
SNAPSHOT = SnapshotId(500, 4)


def who(observer: Observer, now_ms: int = 0) -> Endpoint:
    asked = observer.next_request(now_ms)
    assert asked is not None
    return asked.endpoint


def told(error: int, leader: int, epoch: int) -> MetadataFetchAnswer:
    return MetadataFetchAnswer(
        0, error, CurrentLeader(leader, epoch), {leader: ENDPOINTS[leader]} if leader > 0 else {}
    )


def found(*, end_offset: int = 0, last_epoch: int = 0) -> Observer:
    """An observer that knows the leader of epoch 4."""
    observer = Observer([ONE, TWO], end_offset=end_offset, last_epoch=last_epoch)
    who(observer)
    assert observer.fetched(told(ErrorCode.FENCED_LEADER_EPOCH, 103, 4), 0) == [NewLeader(4, 103)]
    return observer


def fetch(observer: Observer, now_ms: int = 0, **answer: object) -> list[Effect]:
    assert who(observer, now_ms) == THREE
    return observer.fetched(MetadataFetchAnswer(**answer), now_ms)  # type: ignore[arg-type]  # by their names


# --------------------------------------------------------------------------------------------------------- the leader


def test_any_bootstrap_server_leads_to_the_leader() -> None:
    observer = Observer([ONE, TWO])
    assert observer.next_request(0) == Asked(ONE, MetadataFetchRequest(0, 0, 0, -1))
    assert observer.next_request(0) is None
    assert observer.fetched(told(ErrorCode.NOT_LEADER_OR_FOLLOWER, 103, 4), 0) == [NewLeader(4, 103)]
    assert observer.next_request(0) == Asked(THREE, MetadataFetchRequest(4, 0, 0, -1))
    assert observer.controller == THREE


def test_an_epoch_that_most_controllers_do_not_know_never_was() -> None:
    """An answer was damaged, or `quorum-state` is: nobody would ever lead in this epoch."""
    observer = Observer([ONE, TWO, THREE], end_offset=70, last_epoch=3, leader_epoch=1 << 20)
    unknown = told(ErrorCode.UNKNOWN_LEADER_EPOCH, 102, 4)
    assert who(observer) == ONE
    assert observer.fetched(unknown, 0) == []
    assert who(observer, 100) == TWO
    assert observer.fetched(told(ErrorCode.UNKNOWN_LEADER_EPOCH, 102, 5), 100) == [NewLeader(5, -1)]
    asked = observer.next_request(200)
    assert asked is not None
    assert asked.request == MetadataFetchRequest(5, 70, 3, -1)
    assert observer.fetched(told(ErrorCode.NOT_LEADER_OR_FOLLOWER, 102, 5), 200) == [NewLeader(5, 102)]
    assert who(observer, 300) == TWO


def test_one_controller_that_is_behind_takes_no_epoch_back() -> None:
    observer = found()
    behind = told(ErrorCode.UNKNOWN_LEADER_EPOCH, 101, 3)
    observer.next_request(0)
    observer.failed(0)
    assert who(observer, 100) == TWO
    assert observer.fetched(behind, 100) == []
    assert who(observer, 200) == ONE
    assert observer.fetched(told(ErrorCode.FENCED_LEADER_EPOCH, 103, 5), 200) == [NewLeader(5, 103)]
    observer.next_request(300)
    observer.failed(300)
    assert who(observer, 400) == TWO
    assert observer.fetched(behind, 400) == []  # the doubts of an earlier epoch do not count
    assert observer.leader_epoch == 5


def test_an_epoch_of_which_the_log_has_records_is_never_taken_back() -> None:
    observer = Observer([ONE], end_offset=70, last_epoch=3)
    for now_ms in (0, 100, 200):
        assert who(observer, now_ms) == ONE
        assert observer.fetched(told(ErrorCode.UNKNOWN_LEADER_EPOCH, 101, 2), now_ms) == []
    assert observer.leader_epoch == 3


def test_a_snapshot_that_makes_no_sense_is_fetched_again_later_each_time() -> None:
    observer, now_ms = found(), 0
    for pause_ms in (1000, 2000, 4000, 8000, 16_000):
        _download(observer, now_ms)
        assert observer.refused_snapshot("it is damaged", now_ms) == []
        assert observer.next_ms == now_ms + pause_ms
        now_ms += pause_ms
    _download(observer, now_ms)
    assert observer.refused_snapshot("it is damaged", now_ms) == [Stop("it is damaged")]


def _download(observer: Observer, now_ms: int) -> None:
    assert fetch(observer, now_ms, snapshot_id=SNAPSHOT, current_leader=CurrentLeader(103, 4)) == []
    assert isinstance(observer.next_request(now_ms).request, FetchSnapshotRequest)  # type: ignore[union-attr] # it asks
    answer = FetchSnapshotAnswer(snapshot_id=SNAPSHOT, size=5, unaligned_records=b"12345")
    assert observer.fetched_snapshot(answer, now_ms)[-1] == LoadSnapshot(SNAPSHOT)


def test_what_is_on_the_disk_is_where_it_begins() -> None:
    observer = Observer([ONE], end_offset=70, last_epoch=3, leader_epoch=2)
    assert observer.next_request(0) == Asked(ONE, MetadataFetchRequest(3, 70, 3, -1))


def test_servers_that_do_not_answer_or_know_no_leader_are_asked_in_turn() -> None:
    observer = Observer([ONE, TWO])
    assert who(observer) == ONE
    observer.failed(0)
    assert observer.next_request(19) is None
    assert observer.next_ms == 20
    assert who(observer, 20) == TWO
    assert observer.fetched(told(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1, 2), 20) == [NewLeader(2, -1)]
    assert observer.next_request(39) is None
    assert who(observer, 40) == ONE
    assert observer.fetched(told(ErrorCode.NOT_LEADER_OR_FOLLOWER, 102, 2), 40) == [NewLeader(2, 102)]
    assert who(observer, 40) == TWO


def test_a_leader_that_is_none_any_more_is_left() -> None:
    observer = found()
    assert who(observer) == THREE
    assert observer.fetched(told(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1, 5), 0) == [NewLeader(5, -1)]
    assert observer.controller is None
    assert who(observer, 20) == TWO
    observer.fetched(told(ErrorCode.NOT_LEADER_OR_FOLLOWER, 103, 4), 20)  # it knows less
    assert observer.leader_epoch == 5
    assert who(observer, 40) == ONE


def test_a_leader_that_was_out_of_reach_is_found_again_in_its_epoch() -> None:
    observer = found()
    who(observer)
    observer.failed(0)
    assert observer.controller is None
    assert who(observer, 20) == TWO
    assert observer.fetched(told(ErrorCode.NOT_LEADER_OR_FOLLOWER, 103, 4), 20) == []
    assert who(observer, 20) == THREE


def test_a_bootstrap_server_that_serves_is_the_leader() -> None:
    observer = Observer([ONE, TWO], leader_epoch=4)
    who(observer)
    observer.fetched(MetadataFetchAnswer(high_watermark=0), 0)
    assert observer.controller == ONE


def test_addresses_of_static_voters_are_known_without_endpoints() -> None:
    observer = Observer([ONE], voters=ENDPOINTS)
    who(observer)
    observer.fetched(MetadataFetchAnswer(0, ErrorCode.NOT_LEADER_OR_FOLLOWER, CurrentLeader(102, 2)), 0)
    assert who(observer) == TWO


@pytest.mark.parametrize("error", [ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.NOT_CONTROLLER])
def test_after_an_error_of_the_whole_answer_another_server_is_asked_later(error: ErrorCode) -> None:
    observer = found()
    assert fetch(observer, top_error_code=error) == []
    assert observer.next_request(19) is None
    assert who(observer, 20) == TWO


def test_another_cluster_and_an_invalid_request_end_it() -> None:
    for answer in (
        MetadataFetchAnswer(ErrorCode.INCONSISTENT_CLUSTER_ID),
        MetadataFetchAnswer(0, ErrorCode.INVALID_REQUEST),
    ):
        observer = found()
        who(observer)
        [stop] = observer.fetched(answer, 0)
        assert isinstance(stop, Stop)
        assert observer.next_request(1 << 40) is None
        assert observer.next_ms is None


# ------------------------------------------------------------------------------------------------------------ records


def test_only_what_is_committed_is_applied() -> None:
    observer = found()
    assert fetch(observer, records=b"batches", high_watermark=-1) == [AppendMetadata(b"batches", 4)]
    assert observer.next_request(0) is None  # the log is busy
    assert observer.moved(end_offset=100, last_epoch=4, now_ms=0) == []  # nobody knows what is committed
    assert fetch(observer, records=b"more", high_watermark=110) == [AppendMetadata(b"more", 4)]
    assert observer.moved(end_offset=150, last_epoch=4, now_ms=0) == [Apply(110, is_caught_up=True)]
    assert fetch(observer, high_watermark=140) == [Apply(140, is_caught_up=True)]
    assert fetch(observer, high_watermark=140) == []
    assert observer.next_request(0) == Asked(THREE, MetadataFetchRequest(4, 150, 4, 140))


def test_a_log_that_is_far_behind_is_not_caught_up() -> None:
    observer = found()
    fetch(observer, records=b"batches", high_watermark=300)
    assert observer.moved(end_offset=100, last_epoch=2, now_ms=0) == [Apply(100, is_caught_up=False)]
    fetch(observer, records=b"batches", high_watermark=310)
    assert observer.moved(end_offset=310, last_epoch=4, now_ms=0) == [Apply(310, is_caught_up=True)]


def test_an_answer_that_brings_nothing_is_not_asked_for_in_circles() -> None:
    observer = found()
    fetch(observer, records=b"half a batch")
    observer.moved(end_offset=0, last_epoch=0, now_ms=100)
    assert observer.next_request(119) is None


def test_nothing_is_applied_after_a_truncation_until_the_leader_has_confirmed_the_rest() -> None:
    observer = found(end_offset=200, last_epoch=3)
    assert fetch(observer, diverging_epoch=EpochEndOffset(2, 150), high_watermark=190) == [
        TruncateMetadata(EpochEndOffset(2, 150))
    ]
    assert observer.moved(end_offset=120, last_epoch=2, now_ms=0) == []
    assert fetch(observer, diverging_epoch=EpochEndOffset(1, 90)) == [TruncateMetadata(EpochEndOffset(1, 90))]
    observer.moved(end_offset=90, last_epoch=1, now_ms=0)
    assert fetch(observer, high_watermark=190) == [Apply(90, is_caught_up=False)]


@pytest.mark.parametrize("end_offset", [99, 150])
def test_what_was_applied_is_never_cut(end_offset: int) -> None:
    observer = found()
    fetch(observer, records=b"batches", high_watermark=100)
    observer.moved(end_offset=160, last_epoch=4, now_ms=0)
    effects = fetch(observer, diverging_epoch=EpochEndOffset(3, end_offset))
    if end_offset >= 100:
        assert effects == [TruncateMetadata(EpochEndOffset(3, end_offset))]
        effects = observer.moved(end_offset=80, last_epoch=3, now_ms=0)  # by the own epochs
    assert effects == [Stop("the controllers have lost metadata that were committed")]


# ----------------------------------------------------------------------------------------------------------- snapshots


def test_a_snapshot_comes_in_parts_and_replaces_everything() -> None:
    observer = found()
    assert fetch(observer, snapshot_id=SNAPSHOT) == []
    assert observer.next_request(0) == Asked(THREE, FetchSnapshotRequest(4, SNAPSHOT, 0))
    part = FetchSnapshotAnswer(snapshot_id=SNAPSHOT, size=7, unaligned_records=b"abcd")
    assert observer.fetched_snapshot(part, 0) == [WriteSnapshot(SNAPSHOT, 0, b"abcd")]
    assert observer.next_request(0) == Asked(THREE, FetchSnapshotRequest(4, SNAPSHOT, 4))
    part = FetchSnapshotAnswer(snapshot_id=SNAPSHOT, size=7, position=4, unaligned_records=b"efg")
    assert observer.fetched_snapshot(part, 0) == [WriteSnapshot(SNAPSHOT, 4, b"efg"), LoadSnapshot(SNAPSHOT)]
    assert observer.next_request(0) is None
    assert observer.loaded(SNAPSHOT) == []
    assert observer.next_request(0) == Asked(THREE, MetadataFetchRequest(4, 500, 4, -1))
    assert observer.fetched(MetadataFetchAnswer(high_watermark=500), 0) == [Apply(500, is_caught_up=True)]


@pytest.mark.parametrize(
    "answer",
    [
        FetchSnapshotAnswer(ErrorCode.UNKNOWN_SERVER_ERROR),
        FetchSnapshotAnswer(0, ErrorCode.SNAPSHOT_NOT_FOUND),
        FetchSnapshotAnswer(snapshot_id=SnapshotId(600, 4), size=7, unaligned_records=b"abcd"),
        FetchSnapshotAnswer(snapshot_id=SNAPSHOT, size=7, position=1, unaligned_records=b"abcd"),
        FetchSnapshotAnswer(snapshot_id=SNAPSHOT, size=7, unaligned_records=b""),
        FetchSnapshotAnswer(snapshot_id=SNAPSHOT, size=3, unaligned_records=b"abcd"),
        None,
    ],
)
def test_after_any_failure_fetch_names_the_newest_snapshot(answer: FetchSnapshotAnswer | None) -> None:
    observer = found()
    fetch(observer, snapshot_id=SNAPSHOT)
    who(observer)
    if answer is None:
        observer.failed(0)
    else:
        assert observer.fetched_snapshot(answer, 0) == []
    assert observer.next_request(19) is None
    asked = observer.next_request(20)
    assert asked is not None
    assert isinstance(asked.request, MetadataFetchRequest)


def test_a_snapshot_of_an_old_leader_is_left_when_there_is_a_new_one() -> None:
    observer = found()
    fetch(observer, snapshot_id=SNAPSHOT)
    who(observer)
    answer = FetchSnapshotAnswer(0, ErrorCode.FENCED_LEADER_EPOCH, CurrentLeader(101, 5), ENDPOINTS)
    assert observer.fetched_snapshot(answer, 0) == [NewLeader(5, 101)]
    assert observer.next_request(20) == Asked(ONE, MetadataFetchRequest(5, 0, 0, -1))


def test_a_snapshot_that_is_older_than_the_log_is_not_taken() -> None:
    observer = found(end_offset=600, last_epoch=4)
    assert fetch(observer, snapshot_id=SNAPSHOT) == []
    asked = observer.next_request(20)
    assert asked is not None
    assert isinstance(asked.request, MetadataFetchRequest)
