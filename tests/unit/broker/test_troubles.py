"""The operator is told once of what fails, and once when it works again."""

from __future__ import annotations

import errno
import os

import pytest

from octavo.broker.notices import Notices
from octavo.broker.troubles import Troubles, reason, storage_error
from octavo.errors import ErrorCode, InvalidInput, UnknownPartition

FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/data/x")


class Told:
    """Troubles, with a clock that stands still, and what the operator hears."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.now = 1000.0
        self.troubles = Troubles(Notices(self.said.append, lambda: self.now), lambda: self.now)


def test_what_fails_again_and_again_is_said_once() -> None:
    told = Told()
    for _ in range(500):
        told.troubles.failed("this cannot be written", FULL)
        told.now += 1
    assert told.said == ["this cannot be written: No space left on device: /data/x"]


def test_what_works_again_is_said_once_and_then_failures_are_news() -> None:
    told = Told()
    told.troubles.is_over("this", "this works again")
    for _ in range(2):
        told.troubles.failed("this", FULL)
        told.now += 2
        for _ in range(2):
            told.troubles.is_over("this", "this works again")
    assert [line.partition(":")[0] for line in told.said] == ["this", "this works again"] * 2


def test_what_fails_seldom_is_said_each_time() -> None:
    told = Told()
    for _ in range(3):
        told.troubles.failed("this", FULL)
        told.now += 300
    assert len(told.said) == 3


def test_clients_cannot_make_it_grow() -> None:
    told = Told()
    for number in range(5000):
        told.troubles.failed(f"topic {number}", FULL)
    assert len(told.troubles.present) == 1000


@pytest.mark.parametrize(
    ("error", "code", "why"),
    [
        (FULL, ErrorCode.KAFKA_STORAGE_ERROR, "No space left on device: /data/x"),
        (OSError("odd"), ErrorCode.KAFKA_STORAGE_ERROR, "odd"),
        (UnknownPartition("gone"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "gone"),
        (InvalidInput("bad"), ErrorCode.UNKNOWN_SERVER_ERROR, "bad"),
    ],
)
def test_a_failure_has_a_code_and_a_reason(error: Exception, code: ErrorCode, why: str) -> None:
    assert (storage_error(error), reason(error)) == (code, why)
