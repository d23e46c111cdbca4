"""Read bytes as Kafka's generated readers do, which read versions that they do not know, and say why they refuse.

`read_as_kafka` reads what Kafka reads. A reader of Kafka does not check the version of a message. It takes those after
the last for the last, up to the first structure inside, which does check it. `read_entity` finds out that bytes are
malformed, but has words of its own for it. So where it refuses, a second walk over the bytes finds Kafka's words.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Final, TypeVar, get_type_hints

from octavo.errors import BadRecord, FormatError
from octavo.inspect.kafka_json.nodes import camel_case
from octavo.schemas.entity import read_entity, structure_type
from octavo.schemas.lengths import as_int32
from octavo.schemas.primitives import MAX_STRING

_SIZES: Final = {"bool": 1, "int8": 1, "int16": 2, "uint16": 2, "int32": 4, "int64": 8, "float64": 8, "uuid": 16}
_VARINT_SIZE: Final = 5

T = TypeVar("T")


def refused(message: str | None) -> BadRecord:
    """Return an error whose rule is the message of Kafka's exception; Java joins null to texts if there is none."""
    return BadRecord(0, "null" if message is None else message)


def read_as_kafka(
    kind: type[T], data: bytes, position: int, version: int, *, versions: range, first_flexible: int
) -> tuple[T, int]:
    """Read a message as Kafka's reader does; returns it and the position after it.

    versions: the versions that Kafka 4.3 knows

    Raises `BadRecord` with Kafka's words.
    """
    known = min(max(version, versions[0]), versions[-1])
    flexible = known >= first_flexible
    if version > versions[-1]:
        _Walk(data, position, version, versions[-1], flexible).message(kind)
    try:
        return read_entity(kind, data, position, known, flexible=flexible)
    except FormatError:
        _Walk(data, position, version, versions[-1], flexible).message(kind)
        raise  # the two disagree


class _Walk:
    """A walk over one message, which raises `BadRecord` where Kafka would refuse it."""

    def __init__(self, data: bytes, position: int, version: int, last: int, flexible: bool) -> None:
        self._data = data
        self._at = position
        self._version = version
        self._last = last
        self._flexible = flexible

    def message(self, kind: type[Any]) -> None:
        hints = get_type_hints(kind)
        tagged = {}
        for each in fields(kind):
            if each.metadata["tag"] is not None:
                tagged[each.metadata["tag"]] = each
            elif self._holds(each):
                self._field(each, hints[each.name])
        if not self._flexible:
            return
        for _ in range(as_int32(self._varint())):
            tag, size = self._varint(), as_int32(self._varint())
            if tag not in tagged:
                self._array(size)
            elif self._holds(tagged[tag]):
                self._field(tagged[tag], hints[tagged[tag].name])
            else:
                raise refused(f"Tag {tag} is not valid for version {self._version}")

    def _holds(self, each: Any) -> bool:
        since, until = each.metadata["since"], each.metadata["until"]
        return (not since or bool(self._version >= since)) and (until is None or bool(self._version <= until))

    def _field(self, each: Any, hint: Any) -> None:
        kafka_type, name = each.metadata["kafka_type"], camel_case(each.name)
        nullable = each.metadata["nullable"]
        if kafka_type == "struct":
            if nullable and self._is_null_structure(tagged=each.metadata["tag"] is not None):
                return
            self._structure(structure_type(hint))
        elif kafka_type.startswith("[]"):
            self._items(kafka_type[2:], name, nullable, hint)
        else:
            self._primitive(kafka_type, name, nullable)

    def _is_null_structure(self, *, tagged: bool) -> bool:
        if tagged:
            return as_int32(self._varint()) <= 0
        return self._number(1) < 0

    def _structure(self, kind: type[Any]) -> None:
        if self._version > self._last:
            name = getattr(kind, "NAME", kind.__name__)
            raise refused(f"Can't read version {self._version} of {name}")
        self.message(kind)

    def _items(self, kafka_type: str, name: str, nullable: bool, hint: Any) -> None:
        count = self._length(4)
        if count < 0:
            self._null(name, nullable)
            return
        left = len(self._data) - self._at
        if count > left:
            raise refused(f"Tried to allocate a collection of size {count}, but there are only {left} bytes remaining.")
        for _ in range(count):
            if kafka_type:
                self._primitive(kafka_type, f"{name} element", False)
            else:
                self._structure(structure_type(hint))

    def _primitive(self, kafka_type: str, name: str, nullable: bool) -> None:
        size = _SIZES.get(kafka_type)
        if size is not None:
            for _ in range(2 if kafka_type == "uuid" else 1):
                self._number(size // 2 if kafka_type == "uuid" else size)
            return
        length = self._length(2 if kafka_type == "string" else 4)
        if length < 0:
            self._null(name, nullable)
        elif kafka_type == "string" and length > MAX_STRING:
            raise refused(f"string field {name} had invalid length {length}")
        else:
            self._array(length)

    def _null(self, name: str, nullable: bool) -> None:
        if not nullable:
            raise refused(f"non-nullable field {name} was serialized as null")

    def _length(self, old_size: int) -> int:
        return as_int32(self._varint() - 1) if self._flexible else self._number(old_size)

    def _number(self, size: int) -> int:
        if size > len(self._data) - self._at:
            raise refused(None)
        self._at += size
        return int.from_bytes(self._data[self._at - size : self._at], signed=True)

    def _varint(self) -> int:
        number = 0
        for index in range(_VARINT_SIZE):
            byte = self._number(1) & 0xFF
            last = index == _VARINT_SIZE - 1
            number |= (byte if last else byte & 0x7F) << 7 * index
            if byte < 0x80:
                return number & 0xFFFFFFFF
        raise refused(
            "Varint is too long, the most significant bit in the 5th byte is set, "
            f"converted value: {number & 0xFFFFFFFF:x}"
        )

    def _array(self, size: int) -> None:
        left = len(self._data) - self._at
        if size > left:
            raise refused(f"Error reading byte array of {size} byte(s): only {left} byte(s) available")
        if size < 0:
            raise refused(str(size))  # Java's NegativeArraySizeException
        self._at += size
