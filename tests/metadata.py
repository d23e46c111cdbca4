"""Records of metadata to test with: made up from a seed, of every kind and version; and Kafka's JSON for them."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import MISSING, fields
from random import Random
from typing import Any, Final, get_args, get_type_hints
from uuid import UUID

from octavo.log.files.meta_properties import write_uuid
from octavo.schemas.metadata.record import MetadataRecord
from octavo.schemas.metadata.serde import KINDS

_NUMBERS: Final = {"int8": 7, "int16": 15, "int32": 31, "int64": 63}
_TEXT: Final = "abc-_.äß☃🗝"


def generate(seed: int, rounds: int) -> Iterator[tuple[MetadataRecord, int]]:
    """Records with the version to write them in; each round has every version of every kind."""
    random = Random(seed)
    for _ in range(rounds):
        for kind in KINDS.values():
            for version in kind.VERSIONS:
                yield make(kind, random, version), version


def make(kind: type[Any], random: Random, version: int) -> Any:
    """A structure with random contents, all of which `version` has a place for."""
    hints = get_type_hints(kind)
    values: dict[str, Any] = {}
    for each in fields(kind):
        if version < each.metadata["since"] or (each.default is not MISSING and random.random() < 0.3):
            continue
        if each.metadata["nullable"] and random.random() < 0.3:
            values[each.name] = None
        else:
            values[each.name] = _value(each.metadata["kafka_type"], hints[each.name], random, version)
    return kind(**values)


def _value(kafka_type: str, hint: Any, random: Random, version: int) -> Any:
    if kafka_type.startswith("[]"):
        count = random.choice((0, 1, 3, 130))
        if kafka_type == "[]":
            item = item_type(hint)
            return tuple(make(item, random, version) for _ in range(count % 10))
        return tuple(_value(kafka_type[2:], None, random, version) for _ in range(count))
    if kafka_type in _NUMBERS:
        most = 1 << _NUMBERS[kafka_type]
        return random.choice((-most, -1, 0, 1, most - 1, random.randrange(-most, most)))
    simple: dict[str, Any] = {
        "bool": random.random() < 0.5,
        "uint16": random.choice((0, 9092, 65535)),
        "float64": random.choice((0.0, -1.5, 1e300, random.random())),
        "uuid": UUID(int=random.choice((0, 1, random.getrandbits(128)))),
        "string": "".join(random.choices(_TEXT, k=random.choice((0, 1, 126, 127, 300)))),
        "bytes": random.randbytes(random.choice((0, 1, 126, 127))),
    }
    return simple[kafka_type]


def item_type(hint: Any) -> Any:
    """Of `tuple[X, ...]`, or of that or None."""
    if type(None) in get_args(hint):
        hint = next(each for each in get_args(hint) if each is not type(None))
    return get_args(hint)[0]


def as_json(value: Any, version: int) -> dict[str, Any]:
    """A structure in the words of Kafka's own converter, which leaves out tagged fields that have their default."""
    told = {}
    for each in fields(value):
        content = getattr(value, each.name)
        if version >= each.metadata["since"] and (each.metadata["tag"] is None or content != each.default):
            told[camel(each.name)] = _content(each.metadata["kafka_type"], content, version)
    return told


def _content(kafka_type: str, content: Any, version: int) -> Any:
    if content is None:
        return None
    if kafka_type == "[]":
        return [as_json(item, version) for item in content]
    if kafka_type.startswith("[]"):
        return [_content(kafka_type[2:], item, version) for item in content]
    if kafka_type == "uuid":
        return write_uuid(content)
    if kafka_type == "bytes":
        return base64.b64encode(content).decode()
    return content


def camel(name: str) -> str:
    """`topic_id` as Kafka spells it: topicId."""
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)
