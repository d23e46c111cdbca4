"""The signal that a part of an admin request is refused: a topic, or the settings of a resource."""

from __future__ import annotations

from octavo.errors import ErrorCode
from octavo.errors.root import Signal


class Refused(Signal):
    """This part is refused with `code`, and with `message`, if there is one."""

    def __init__(self, code: ErrorCode, message: str | None) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message


def check_time(timeout_ms: int) -> None:
    """Refuse a change that has no time at all: Kafka's controller does not begin with it. Raises `Refused`."""
    if timeout_ms <= 0:
        raise Refused(ErrorCode.REQUEST_TIMED_OUT, None)
