"""The decoder classes that Kafka ships, by their names in Java."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from octavo.errors import InvalidInput
from octavo.inspect.kafka_json.texts import JavaException, RecordDecoder, Texts
from octavo.records.text import read_text

_PACKAGE: Final = "org.apache.kafka.tools.api."


def _number(size: int) -> Callable[[bytes], str]:
    def decode(data: bytes) -> str:
        if len(data) < size:
            raise JavaException("java.nio.BufferUnderflowException", None)
        return str(int.from_bytes(data[:size], signed=True))

    return decode


DECODER_CLASSES: Final[dict[str, Callable[[bytes], str]]] = {
    _PACKAGE + "StringDecoder": read_text,
    _PACKAGE + "IntegerDecoder": _number(4),
    _PACKAGE + "LongDecoder": _number(8),
    _PACKAGE + "DefaultDecoder": bytes.hex,  # Kafka prints where the bytes were in its memory
}
DEFAULT_CLASS: Final = _PACKAGE + "StringDecoder"


def class_decoder(key_class: str = DEFAULT_CLASS, value_class: str = DEFAULT_CLASS) -> RecordDecoder:
    """Return the decoder that uses one class for keys and one for values. Raises `InvalidInput` for other classes."""
    key_text, value_text = _function(key_class), _function(value_class)

    def decode(offset: int, key: bytes | None, value: bytes | None) -> Texts:
        return Texts(None if key is None else key_text(key), None if value is None else value_text(value))

    return decode


def _function(name: str) -> Callable[[bytes], str]:
    known = DECODER_CLASSES.get(name)
    if known is None:
        raise InvalidInput(f"there is no decoder class {name}; there are {', '.join(DECODER_CLASSES)}")
    return known
