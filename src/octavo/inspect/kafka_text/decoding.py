"""Texts of keys and values: the decoder classes and the decoders of internal topics that Kafka's tool has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from octavo.errors import BadRecord
from octavo.inspect.kafka_text.messages import TextMessage
from octavo.inspect.kafka_text.options import STRING_DECODER, RecordDecoder, TextOptions
from octavo.inspect.kafka_text.records import TextRecord
from octavo.inspect.kafka_text.throwables import RUNTIME, UNDERFLOW, Throwable
from octavo.records.text import read_text


class Parser(Protocol):
    """Turns the key and the value of a record into text."""

    @property
    def is_plain(self) -> bool:
        """Whether keys and values are printed as they are, in UTF-8."""

    def parse(self, record: TextRecord | TextMessage) -> tuple[str | None, str | None]:
        """Return the texts of key and value, None for one that is not printed. Raises what Kafka's tool throws."""


class ClassParser:
    """Decodes key and value each with a decoder class."""

    def __init__(self, key: Callable[[bytes], str], value: Callable[[bytes], str]) -> None:
        self._key = key
        self._value = value
        self.is_plain: Final = key is read_text and value is read_text

    def parse(self, record: TextRecord | TextMessage) -> tuple[str | None, str | None]:
        key = record.key
        key_text = None if key is None else self._key(key)
        value = record.value
        return key_text, None if value is None else self._value(value)


class TopicParser:
    """Decodes the records of one of Kafka's internal topics."""

    is_plain: Final = False

    def __init__(self, decoder: RecordDecoder) -> None:
        from octavo.inspect.kafka_json import RECORD_DECODERS

        self._decode = RECORD_DECODERS[decoder.value]
        self._has_keys = decoder not in (RecordDecoder.CLUSTER_METADATA, RecordDecoder.REMOTE_LOG_METADATA)
        self._where = "" if decoder is RecordDecoder.CLUSTER_METADATA else "offset "

    def parse(self, record: TextRecord | TextMessage) -> tuple[str | None, str | None]:
        try:
            key = record.key if self._has_keys else None
            value = record.value
        except Throwable as error:  # a damaged message of magic 0 or 1, for which no exception ends the tool
            text = f"Error at {self._where}{record.offset}, skipping. {error.message or 'null'}"
            return (text, None) if self._has_keys else (None, text)
        try:
            return self._decode(record.offset, key, value)
        except BadRecord as error:
            raise Throwable(RUNTIME, error.rule) from None


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
        return TopicParser(options.decoder)
    value = _of_class(options.value_decoder_class or STRING_DECODER)
    return ClassParser(_of_class(options.key_decoder_class or STRING_DECODER), value)


def _of_class(name: str) -> Callable[[bytes], str]:
    decoder = _CLASSES.get(name)
    if decoder is not None:
        return decoder
    raise Throwable(RUNTIME, "Failed to load decoder class", Throwable("java.lang.ClassNotFoundException", name))
