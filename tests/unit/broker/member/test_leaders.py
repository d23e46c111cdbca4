"""The partitions that a member leads, on real logs: high watermarks, changes of the ISR, and who is woken when."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from octavo.broker.answers import Wait
from octavo.broker.member.leaders import Committed, Leaders, Led
from octavo.cluster.leading import ClusterView, IsrChange
from octavo.cluster.messages import AlteredPartition, BrokerState
from octavo.cluster.replicas import Changed
from octavo.errors import ErrorCode
from octavo.log import Isolation, Log
from octavo.schemas.metadata.topics import PartitionRecord
from tests.unit.cluster.leaders import EPOCHS, LAG_MS, broker, state
from tests.unit.cluster.partitions import TOPIC_ID, A
from tests.unit.log.logs import make_batch, open_log


class Member:
    """Broker 1, and what its leaders have asked for."""

    def __init__(self, log: Log) -> None:
        self.log: Final = log
        self.brokers = {number: broker(number) for number in EPOCHS}
        self.asked: Final[list[IsrChange]] = []
        self.woken: Final[list[Wait]] = []
        self.changed: Final[list[Log]] = []
        self.elsewhere: Final[list[Callable[[], None]]] = []
        self.takes_changes = True
        self.min_isr = 2
        self.now_ms = 1_000_000
        self.leaders: Final = Leaders(
            ClusterView(1, EPOCHS[1], self.brokers, LAG_MS),
            min_isr=lambda _: self.min_isr,
            submit=self._submit,
            wake=self.woken.append,
            changed=self.changed.append,
            elsewhere=self.elsewhere.append,
            clock_ms=lambda: self.now_ms,
        )

    def _submit(self, change: IsrChange) -> bool:
        self.asked.append(change)
        return self.takes_changes

    def lead(self, record: PartitionRecord) -> Led:
        self.leaders.lead(Changed(A, record, is_new_epoch=True, is_new=True), self.log)
        led = self.leaders.get(TOPIC_ID.bytes, 0)
        assert led is not None
        return led

    def append(self, count: int = 1) -> int:
        """Append as any thread does, and have the thread of the handlers look."""
        self.log.append(make_batch(count))
        self.leaders.log_changed(self.log)
        return self.log.end_offset

    def fetch(self, led: Led, replica: int, offset: int) -> None:
        self.leaders.fetched(
            led, replica, EPOCHS[replica], offset=offset, start_offset=0, end_offset=self.log.end_offset
        )
        self.leaders.log_changed(self.log)

    def wait_for(self, *needs: tuple[Led, int]) -> Committed:
        wait = Committed(math.inf, needs, lambda is_over: None)
        self.leaders.watch(wait)
        return wait


@pytest.fixture
def member(tmp_path: Path) -> Iterator[Member]:
    with open_log(tmp_path) as log:
        log.advance_high_watermark(0)  # as in a directory of a member: it does not follow the end
        yield Member(log)


def test_records_are_committed_when_all_in_sync_have_them(member: Member) -> None:
    led = member.lead(state(1, 2))
    assert member.log.epochs[-1] == (5, 0)
    end = member.append(3)
    wait = member.wait_for((led, end))
    assert led.acknowledgement(end) is None
    assert member.log.high_watermark == 0
    member.fetch(led, 2, 2)
    assert (member.log.high_watermark, member.woken) == (2, [])
    member.fetch(led, 2, 3)
    assert (member.log.high_watermark, member.woken) == (3, [wait])
    assert led.acknowledgement(end) == 0


def test_waits_are_woken_in_the_order_of_their_offsets_and_once(member: Member) -> None:
    led = member.lead(state(1, 2))
    first, second = member.append(), member.append()
    later, earlier = member.wait_for((led, second)), member.wait_for((led, first))
    member.fetch(led, 2, first)
    assert member.woken == [earlier]
    member.fetch(led, 2, second)
    member.fetch(led, 2, second)
    assert member.woken == [earlier, later]


def test_what_is_committed_already_is_tried_at_once(member: Member) -> None:
    """Another thread has appended, and the followers were faster than the one that has to answer."""
    led = member.lead(state(1, 2))
    end = member.append()
    member.fetch(led, 2, end)
    wait = member.wait_for((led, end))
    assert member.woken == [wait]


def test_who_waits_is_woken_when_the_broker_is_deposed(member: Member) -> None:
    led = member.lead(state(1, 2))
    end = member.append()
    wait = member.wait_for((led, end))
    member.changed.clear()
    member.leaders.depose(A)
    assert (member.woken, member.changed) == ([wait], [member.log])
    assert led.acknowledgement(end) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert member.leaders.get(TOPIC_ID.bytes, 0) is None
    member.leaders.depose(A)  # nothing happens
    again = member.lead(state(1, leader_epoch=7, partition_epoch=30))
    assert again is not led
    assert led.acknowledgement(end) == ErrorCode.NOT_LEADER_OR_FOLLOWER  # the new term does not count for old waits


def test_alone_in_sync_everything_is_committed_at_once(member: Member) -> None:
    member.min_isr = 1
    led = member.lead(state(1))
    member.append(4)
    assert member.log.high_watermark == 4
    assert led.acknowledgement(4) == 0


def test_a_new_epoch_is_kept_before_anything_is_appended_in_it(member: Member) -> None:
    led = member.lead(state(1, 2))
    member.append(2)
    assert member.lead(state(1, 2, leader_epoch=6, partition_epoch=21)) is led
    assert member.log.epochs[-1] == (6, 2)
    assert (led.state.leader_epoch, led.state.epoch_start) == (6, 2)
    assert led.state.is_old(member.log.high_watermark)
    member.lead(state(1, 2, 3, leader_epoch=6, partition_epoch=22))  # only the ISR is another
    assert led.state.epoch_start == 2
    assert led.state.isr == {1, 2, 3}


def test_the_controller_is_asked_for_a_change_of_the_isr(member: Member) -> None:
    led = member.lead(state(1, 2))
    member.fetch(led, 2, 0)
    member.fetch(led, 3, 0)
    [change] = member.asked
    assert change.asked.new_isr_with_epochs == tuple(BrokerState(each, EPOCHS[each]) for each in (1, 2, 3))
    member.append()
    member.fetch(led, 2, 1)
    assert member.log.high_watermark == 0  # broker 3 counts from when it was asked for
    member.leaders.settled(change, AlteredPartition(ErrorCode.INELIGIBLE_REPLICA))
    member.now_ms += LAG_MS + 1
    member.leaders.check(member.now_ms)
    assert member.log.high_watermark == 1


def test_a_change_that_cannot_be_asked_for_is_given_up(member: Member) -> None:
    member.takes_changes = False
    led = member.lead(state(1, 2))
    member.fetch(led, 3, 0)
    assert len(member.asked) == 1
    assert led.state.pending is None


def test_a_silent_follower_leaves_and_records_are_committed_without_it(member: Member) -> None:
    led = member.lead(state(1, 2, 3))
    end = member.append()
    wait = member.wait_for((led, end))
    member.fetch(led, 2, end)
    member.now_ms += LAG_MS + 1
    member.fetch(led, 2, end)
    member.leaders.check(member.now_ms)
    [change] = member.asked
    assert [each.broker_id for each in change.asked.new_isr_with_epochs] == [1, 2]
    assert not member.woken  # not before the controller has said yes
    member.leaders.settled(change, AlteredPartition(0, 5, (1, 2), 21))
    member.leaders.log_changed(member.log)
    assert member.woken == [wait]
    assert led.acknowledgement(end) == 0


def test_fewer_replicas_than_the_setting_refuse_acks_all(member: Member) -> None:
    led = member.lead(state(1))
    assert led.state.append_refusal() == ErrorCode.NOT_ENOUGH_REPLICAS
    member.append()
    assert member.log.high_watermark == 0
    member.min_isr = 1
    member.leaders.settings_changed()
    assert led.state.append_refusal() == 0
    assert member.log.high_watermark == 1


def test_a_log_that_another_thread_changes_does_not_stop_the_handlers(member: Member) -> None:
    led = member.lead(state(1, 2))
    end = member.append()
    wait = member.wait_for((led, end))
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with member.log.lock:
            held.set()
            done.wait()

    other = threading.Thread(target=hold)
    other.start()
    held.wait()
    member.fetch(led, 2, end)
    assert member.log.high_watermark == 0
    assert led.acknowledgement(end) is None  # readers would not see it yet
    assert not member.woken
    done.set()
    other.join()
    [raise_it] = member.elsewhere
    raise_it()
    member.leaders.log_changed(member.log)
    assert (member.log.high_watermark, member.woken) == (1, [wait])


def test_a_high_watermark_that_comes_late_does_not_count_after_the_end_of_the_term(member: Member) -> None:
    led = member.lead(state(1, 2))
    member.append()
    with member.log.lock:
        thread = threading.Thread(target=member.fetch, args=(led, 2, 1))
        thread.start()
        thread.join()
    member.leaders.depose(A)
    [raise_it] = member.elsewhere
    raise_it()
    assert member.log.high_watermark == 0


def test_waits_that_are_over_are_forgotten(member: Member) -> None:
    led = member.lead(state(1, 2))
    end = member.append()
    over, stays = member.wait_for((led, end)), member.wait_for((led, end))
    over.is_over = True
    member.leaders.check(member.now_ms)
    assert led.take_all() == [stays]


def test_followers_read_what_was_appended_and_what_they_have_missed(member: Member) -> None:
    led = member.lead(state(1, 2, 3))
    ends = [member.append(count) for count in (1, 2, 3)]
    for offset in (0, *ends):
        for max_bytes in (1 << 20, 100):
            found = led.read(offset, max_bytes, at_least_one=True)
            expected = member.log.read(offset, max_bytes, isolation=Isolation.LOG_END, at_least_one=True)
            assert (found.records, found.next_offset) == (expected.records, expected.next_offset)
    assert (
        led.read(ends[1], 1 << 20, at_least_one=True).records
        == member.log.read(ends[1], 1 << 20, isolation=Isolation.LOG_END).records
    )
