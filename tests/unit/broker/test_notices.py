"""Messages for the operator: one of a kind per second, and the number of the others."""

from __future__ import annotations

from octavo.broker.notices import VARIOUS, Notices


class Told:
    """Notices with a clock that stands still, and what they said."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.now = 100.0
        self.notices = Notices(self.said.append, lambda: self.now)


def test_the_first_of_each_kind_is_said_at_once() -> None:
    told = Told()
    for _ in range(1000):
        told.notices.say("a", "one")
        told.notices.say("b", "two")
    assert told.said == ["one", "two"]


def test_the_next_one_says_how_many_there_were_before() -> None:
    told = Told()
    for _ in range(5):
        told.notices.say("a", "one")
    told.now += 1
    told.notices.say("a", "another")
    assert told.said == ["one", "another (4 more like this before)"]


def test_what_was_held_back_is_said_after_a_second() -> None:
    told = Told()
    for number in range(3):
        told.notices.say("a", f"number {number}")
    told.notices.say_rest()
    assert told.said == ["number 0"]
    told.now += 1
    told.notices.say_rest()
    told.notices.say_rest()
    assert told.said == ["number 0", "number 2 (and 1 more like this)"]


def test_various_messages_are_said_ten_a_second() -> None:
    told = Told()
    for number in range(20):
        told.notices.say(VARIOUS, f"number {number}")
    assert told.said == [f"number {number}" for number in range(10)]
    told.now += 1
    told.notices.say_rest()
    assert told.said[10:] == ["number 19 (and 9 more like this)"]
