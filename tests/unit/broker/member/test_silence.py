"""Nodes that do not answer: the operator is told once, and once more when it is over."""

from __future__ import annotations

import math

from octavo.broker.member.silence import PATIENCE_MS, Silence


def test_one_sentence_is_said_and_another_when_it_is_over() -> None:
    said: list[str] = []
    silence = Silence(said.append, "broker 3")
    assert silence.poll(0) == math.inf
    silence.asked(1000)
    assert silence.poll(2000) == 1000 + PATIENCE_MS
    silence.asked(3000)  # the first one has failed
    assert silence.poll(1000 + PATIENCE_MS - 1) == 1000 + PATIENCE_MS
    assert not said
    for now_ms in range(6000, 60_000, 1000):
        silence.asked(now_ms)
        silence.poll(now_ms)
    assert said == ["broker 3 has not answered for 5 s"]
    silence.heard(61_000)
    assert said[1:] == ["broker 3 answers, after 60 s without an answer"]
    assert silence.poll(70_000) == math.inf


def test_nothing_is_said_of_a_node_that_answers_in_time_or_was_never_known() -> None:
    said: list[str] = []
    silence = Silence(said.append)
    silence.asked(0)
    assert silence.poll(60_000) == math.inf
    silence.who = "broker 3"
    silence.heard(60_000)
    for now_ms in range(60_000, 90_000, 4000):
        silence.asked(now_ms)
        silence.poll(now_ms + 4000)
        silence.heard(now_ms + 4000)
    assert not said
