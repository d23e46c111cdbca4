"""Texts of keys and values: the decoder classes and the decoders of internal topics that Kafka's tool has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from octavo.inspect.kafka_text.messages import TextMessage
from octavo.inspect.kafka_text.options import STRING_DECODER, RecordDecoder, TextOptions
from octavo.inspect.kafka_text.records import TextRecord
from octavo.inspect.kafka_text.throwables import RUNTIME, UNDERFLOW, Throwable
from octavo.records.text import read_text


class Parser(Protocol):
    """Turns the key and the value of a record into text."""

    def parse(self, record: TextRecord | TextMessage) -> tuple[str | None, str | None]:
        """Return the texts of key and value, None for one that is not printed. Raises what Kafka's tool throws."""


class ClassParser:
    """Decodes key and value each with a decoder class."""

    def __init__(self, key: Callable[[bytes], str], value: Callable[[bytes], str]) -> None:
        self._key = key
        self._value = value

    def parse(self, record: TextRecord | TextMessage) -> tuple[str | None, str | None]:
        key = record.key
        key_text = None if key is None else self._key(key)
        value = record.value
        return key_text, None if value is None else self._value(value)


def _integer(data: bytes) -> str:
    return _number(data, 4)


def _long(data: bytes) -> str:
    return _number(data, 8)


def _number(data: bytes, size: int) -> str:
    if len(data) < size:
        raise Throwable(UNDERFLOW)
    return str(int.from_bytes(data[:size], "big", signed=True))


def _array(data: bytes) -> str:
    return "[B@0"  # Java prints the identity of the array, which differs from run to run


_PACKAGE: Final = "org.apache.kafka.tools.api."
_CLASSES: Final[dict[str, Callable[[bytes], str]]] = {
    STRING_DECODER: read_text,
    _PACKAGE + "IntegerDecoder": _integer,
    _PACKAGE + "LongDecoder": _long,
    _PACKAGE + "DefaultDecoder": _array,
}


def parser_of(options: TextOptions) -> Parser:
    """Return what the options ask for. Raises what Kafka's tool throws for a class that it does not have."""
    if options.decoder is not None:
        return _of_topic(options.decoder)
    value = _of_class(options.value_decoder_class or STRING_DECODER)
    return ClassParser(_of_class(options.key_decoder_class or STRING_DECODER), value)


def _of_topic(decoder: RecordDecoder) -> Parser:
    raise NotImplementedError(decoder)


def _of_class(name: str) -> Callable[[bytes], str]:
    decoder = _CLASSES.get(name)
    if decoder is not None:
        return decoder
    raise Throwable(RUNTIME, "Failed to load decoder class", Throwable("java.lang.ClassNotFoundException", name))
