"""Make records of the lines that `octavo produce` reads: `LineReader`."""

from __future__ import annotations

import argparse
import json
from base64 import b64decode
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from octavo.errors import InvalidInput
from octavo.records.record import Header


class Line(NamedTuple):
    """A record to be sent."""

    key: bytes | None
    value: bytes | None
    headers: Sequence[Header]
    timestamp_ms: int | None = None  # None: now
    partition: int | None = None  # None: by the key's hash


class LineReader:
    """Reads lines in the form that the options say.

    left_out: how many lines of JSON were no records, by what they were
    """

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._separator: Final[bytes | None] = arguments.key_separator
        self._key: Final = None if arguments.key is None else arguments.key.encode("utf-8", "surrogateescape")
        self._headers: Final = [_header(each) for each in arguments.header]
        self._partition: Final[int | None] = arguments.partition
        self._null: Final[bool] = arguments.null
        self._json: Final[bool] = arguments.json
        self._keeps: Final[bool] = arguments.keep_partitions
        self._decode: Final = _DECODERS[arguments.binary]
        self._number = 0
        self.left_out: Final[Counter[str]] = Counter()

    def read(self, line: bytes) -> Line | None:
        """Return the record of a line, or None if it is none. Raises `InvalidInput` if it is not what it should be."""
        self._number += 1
        if self._json:
            return self._of_json(line)
        key, value = self._key, line
        if self._separator is not None:
            before, separator, after = line.partition(self._separator)
            if separator:
                key, value = before, after
        if self._null:
            return Line(key or None, value or None, self._headers, partition=self._partition)
        return Line(key, value, self._headers, partition=self._partition)

    def _of_json(self, line: bytes) -> Line | None:
        try:
            given = json.loads(line)
            if not isinstance(given, dict):
                raise ValueError("it is no object")
            other = _what_else(given)
            if other is not None:
                self.left_out[other] += 1
                return None
            headers = [Header(_name(name), self._bytes(value)) for name, value in given.get("headers") or ()]
            timestamp_ms = _integer(given.get("timestamp"))
            partition = _integer(given.get("partition")) if self._keeps else None
            return Line(
                self._key if "key" not in given else self._bytes(given["key"]),
                self._bytes(given.get("value")),
                [*headers, *self._headers],
                None if timestamp_ms is None or timestamp_ms < 0 else timestamp_ms,
                self._partition if partition is None else partition,
            )
        except (ValueError, TypeError, RecursionError) as error:
            raise InvalidInput(f"line {self._number} is no record in JSON: {error}") from None

    def _bytes(self, value: Any) -> bytes | None:
        """Return a key or value: text, null, or {"hex": "ff00"} for what is not UTF-8. Other JSON is kept as JSON."""
        if value is None:
            return None
        if isinstance(value, str):
            return self._decode(value)
        if isinstance(value, dict) and set(value) == {"hex"} and isinstance(value["hex"], str):
            return bytes.fromhex(value["hex"])
        return json.dumps(value, ensure_ascii=False).encode()


def _what_else(given: dict[str, Any]) -> str | None:
    """Return what a line of `octavo dump` is if it is not that of a record to send; None if it is."""
    kind = given.get("kind")
    if isinstance(kind, str):
        return f"of {kind}"
    if given.get("isControl") is True:
        return "of control records"
    return None if {"key", "value"} & given.keys() else "without key and value"


def _header(text: str) -> Header:
    name, separator, value = text.partition("=")
    if not name:
        raise InvalidInput(f"-H {text}: it must be NAME=VALUE")
    return Header(name, value.encode("utf-8", "surrogateescape") if separator else None)


def _name(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"the name of a header is text, not {value!r}")
    return value


def _integer(value: Any) -> int | None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
        raise TypeError(f"{value!r} is no whole number")
    return value


def _base64(text: str) -> bytes:
    return b64decode(text, validate=True)


_DECODERS: Final[dict[str, Callable[[str], bytes]]] = {"text": str.encode, "hex": bytes.fromhex, "base64": _base64}
