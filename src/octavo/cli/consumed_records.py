"""Print records for `octavo consume`."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from json.encoder import encode_basestring
from typing import Final

from octavo.cli.delimiters import unescape
from octavo.cli.printable import printable
from octavo.errors import InvalidInput
from octavo.inspect.descriptions import TIMESTAMP_TYPES
from octavo.inspect.record_lines import text_as_json
from octavo.records.batch import Batch
from octavo.records.record import Record

Printer = Callable[[int, Batch, Record], bytes]  # partition, batch, record

_NULL: Final = b"NULL"
_TOKEN: Final = re.compile(rb"%(.)", re.DOTALL)
_TOKENS: Final = b"skhtpoTSK%"


def printer(arguments: argparse.Namespace, *, is_terminal: bool) -> Printer:
    """Return the function that prints a record as the options say. Raises `InvalidInput`."""
    topic: str = arguments.topic
    if arguments.json:
        return lambda partition, batch, record: _json(topic, partition, batch, record)
    null = _NULL if arguments.null else b""
    shown = _harmless if is_terminal else bytes
    if arguments.format is not None:
        return _formatted(unescape(arguments.format), topic, null, shown)
    separator: bytes | None = arguments.key_separator
    end: bytes = arguments.delimiter

    def plain(partition: int, batch: Batch, record: Record) -> bytes:
        value = null if record.value is None else shown(record.value)
        if separator is None:
            return value + end
        key = null if record.key is None else shown(record.key)
        return key + separator + value + end

    return plain


def _json(topic: str, partition: int, batch: Batch, record: Record) -> bytes:
    """Return a record as a line of JSON, with the names that `octavo dump --format jsonl` has for its fields."""
    key, value = ("null" if data is None else text_as_json(data) for data in (record.key, record.value))
    headers = ",".join(
        f"[{encode_basestring(name)},{'null' if data is None else text_as_json(data)}]" for name, data in record.headers
    )
    return (
        f'{{"topic":"{topic}","partition":{partition},"offset":{record.offset},"timestamp":{record.timestamp_ms},'
        f'"timestampType":"{TIMESTAMP_TYPES[batch.timestamp_type]}","key":{key},"value":{value},"headers":[{headers}]}}\n'
    ).encode()


def _formatted(form: bytes, topic: str, null: bytes, shown: Callable[[bytes], bytes]) -> Printer:
    """Return a function that prints records in a format of kcat's."""
    for token in _TOKEN.findall(form):
        if token not in _TOKENS:
            raise InvalidInput(f"-f: there is no %{printable(token.decode('utf-8', 'replace'))}")
    if form.count(b"%") != sum(len(each.group()) - (each[1] != b"%") for each in _TOKEN.finditer(form)):
        raise InvalidInput("-f: a percent sign is %%")

    def of(record: Record, partition: int) -> Callable[[re.Match[bytes]], bytes]:
        def replaced(token: re.Match[bytes]) -> bytes:
            return _FIELDS[token[1]](record, topic, partition, null, shown)

        return replaced

    return lambda partition, batch, record: _TOKEN.sub(of(record, partition), form)


_Field = Callable[[Record, str, int, bytes, Callable[[bytes], bytes]], bytes]


def _size(data: bytes | None) -> bytes:
    return b"-1" if data is None else str(len(data)).encode()


def _headers(record: Record, shown: Callable[[bytes], bytes]) -> bytes:
    return b",".join(
        shown(name.encode()) + b"=" + (_NULL if value is None else shown(value)) for name, value in record.headers
    )


_FIELDS: Final[dict[bytes, _Field]] = {
    b"s": lambda record, topic, partition, null, shown: null if record.value is None else shown(record.value),
    b"k": lambda record, topic, partition, null, shown: null if record.key is None else shown(record.key),
    b"h": lambda record, topic, partition, null, shown: _headers(record, shown),
    b"t": lambda record, topic, partition, null, shown: topic.encode(),
    b"p": lambda record, topic, partition, null, shown: str(partition).encode(),
    b"o": lambda record, topic, partition, null, shown: str(record.offset).encode(),
    b"T": lambda record, topic, partition, null, shown: str(record.timestamp_ms).encode(),
    b"S": lambda record, topic, partition, null, shown: _size(record.value),
    b"K": lambda record, topic, partition, null, shown: _size(record.key),
    b"%": lambda record, topic, partition, null, shown: b"%",
}


def _harmless(data: bytes) -> bytes:
    """Return data as a terminal may print them."""
    return printable(data.decode("utf-8", "backslashreplace")).encode()
