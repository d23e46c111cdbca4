"""Errors for invalid arguments, options and configurations."""

from __future__ import annotations

from os import PathLike, fspath

from octavo.errors.root import ErrorCode, OctavoError


class InvalidInput(OctavoError, ValueError):
    """The caller asked for something that the format cannot express."""


class WrongCall(InvalidInput, TypeError):
    """A call has the form of another Kafka client or of an older Octavo; the message says what to write instead."""


class InvalidConfig(InvalidInput):
    """There is no configuration `name`, or it does not accept `value`; `allowed` says what is accepted.

    `value` is None if it does not matter, or must not be told.
    """

    code = ErrorCode.INVALID_CONFIG

    def __init__(self, name: str, value: object, allowed: str) -> None:
        super().__init__(name, value, allowed)
        self.name = name
        self.value = value
        self.allowed = allowed

    def __str__(self) -> str:
        said = self.name if self.value is None else f"{self.name} cannot be {self.value!r}"
        return f"{said}: {self.allowed}"


class RecordTooLarge(InvalidInput):
    """A record is too large for any batch of this producer. `size` is an upper bound of the record's size."""

    code = ErrorCode.MESSAGE_TOO_LARGE

    def __init__(self, size: int, limit: int, name: str) -> None:
        super().__init__(size, limit, name)
        self.size = size
        self.limit = limit
        self.name = name

    def __str__(self) -> str:
        return f"a record of up to {self.size:,} bytes is too large: {self.name} is {self.limit:,}"


class MissingPartitions(InvalidInput):
    """The options of a query name topics or partitions that do not exist, or leave out some that do."""


class SparkTooOld(InvalidInput):
    """Something needs a newer Spark than the one that runs, `running`. `needed` is the first version that has it."""

    def __init__(self, what: str, needed: str, running: str, instead: str = "") -> None:
        super().__init__(what, needed, running, instead)
        self.what = what
        self.needed = needed
        self.running = running
        self.instead = instead

    def __str__(self) -> str:
        return f"{self.what} needs Spark {self.needed} or later, and this is Spark {self.running}{self.instead}"


class Unreadable(OctavoError, OSError):
    """The file at `path` cannot be opened or read; `reason` says why."""

    def __init__(self, path: str | PathLike[str], reason: str) -> None:
        super().__init__(reason)
        self.args = (fspath(path), reason)
        self.path = fspath(path)
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.path}: cannot be read: {self.reason}"


class NoSuchFile(Unreadable, FileNotFoundError):
    """There is no file at `path`."""
