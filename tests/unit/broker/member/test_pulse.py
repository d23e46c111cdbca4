"""Heartbeats that are repeated while the reactor's thread is held up, and when they are not."""

from __future__ import annotations

import threading

import pytest

from octavo.broker.member.pulse import LATE_MS, LONGEST_MS, Beat, Pulse
from octavo.cluster.messages import Endpoint

BEAT = Beat(Endpoint("controller", 1), 2, b"heartbeat")
INTERVAL_MS = 2000


def _running() -> Pulse:
    """One whose last heartbeat was sent at 0, and whose reactor has come round then."""
    pulse = Pulse(INTERVAL_MS)
    pulse.turn(0)
    pulse.keep(BEAT, 0)
    return pulse


def _repeats(pulse: Pulse, now_ms: float) -> bool:
    sent: list[Beat] = []
    is_repeated = pulse.repeat(now_ms, sent.append)
    assert sent == [BEAT] * is_repeated
    return is_repeated


def test_while_the_reactor_is_held_up_the_heartbeat_is_repeated_at_its_interval() -> None:
    pulse = _running()
    repeated = [now_ms for now_ms in range(0, 10_000, 500) if _repeats(pulse, now_ms)]
    assert repeated == [2000, 4000, 6000, 8000]


def test_a_reactor_that_comes_round_sends_its_own() -> None:
    pulse = _running()
    for now_ms in range(0, 10_000, 500):
        pulse.turn(now_ms)
        assert not _repeats(pulse, now_ms + LATE_MS - 1)


def test_a_broker_that_answers_nobody_is_fenced_in_the_end() -> None:
    pulse = _running()
    assert _repeats(pulse, LONGEST_MS)
    assert not _repeats(pulse, LONGEST_MS + INTERVAL_MS)


def test_nothing_is_repeated_before_a_broker_serves_or_after_it_was_refused() -> None:
    pulse = Pulse(INTERVAL_MS)
    pulse.turn(0)
    assert not _repeats(pulse, 5000)
    pulse = _running()
    pulse.keep(None, 0)
    assert not _repeats(pulse, 5000)


def test_a_broker_that_shuts_down_waits_for_the_heartbeat_that_is_being_repeated() -> None:
    """If it came after those that ask to shut down, the controller would let the broker in again."""
    pulse, is_sent, is_answered, is_stopped = _running(), threading.Event(), threading.Event(), threading.Event()

    def send(_: Beat) -> None:
        is_sent.set()
        assert is_answered.wait(60)

    def stop() -> None:
        pulse.stop()
        is_stopped.set()

    repeating = threading.Thread(target=pulse.repeat, args=(5000, send))
    repeating.start()
    assert is_sent.wait(60)
    stopping = threading.Thread(target=stop)
    stopping.start()
    assert not is_stopped.is_set()
    is_answered.set()
    stopping.join()
    repeating.join()
    assert not _repeats(pulse, 10_000)


def test_a_controller_that_does_not_answer_does_not_keep_the_lock() -> None:
    pulse = _running()

    def send(_: Beat) -> None:
        raise TimeoutError

    with pytest.raises(TimeoutError):
        pulse.repeat(5000, send)
    pulse.stop()
