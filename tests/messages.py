"""Messages of Kafka to test with: made up from a seed, of every kind and version."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, replace
from random import Random
from typing import Any, Final, TypeVar, get_type_hints
from uuid import UUID

from octavo.schemas.consumer_offsets.classic_groups import GroupMetadataValue
from octavo.schemas.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from octavo.schemas.entity import structure_type
from octavo.schemas.framed import FramedRecord
from octavo.schemas.versioned import CoordinatorKey, CoordinatorValue, write_value

R = TypeVar("R", bound=FramedRecord)

_NUMBERS: Final = {"int8": 7, "int16": 15, "int32": 31, "int64": 63}
_TEXT: Final = 'abc-_.äß☃🗝"\\/\x00\x1f\n\x7f'


def framed_records(kinds: Mapping[int, type[R]], seed: int, rounds: int) -> Iterator[tuple[R, int]]:
    """Records with the version to write them in; each round has every version of every kind."""
    random = Random(seed)
    for _ in range(rounds):
        for kind in kinds.values():
            for version in kind.VERSIONS:
                yield make(kind, random, version), version


def coordinator_records(
    kinds: Mapping[int, type[CoordinatorKey[Any]]], seed: int, rounds: int
) -> Iterator[tuple[CoordinatorKey[Any], CoordinatorValue, int]]:
    """Keys, values and the version to write these in; each round has every version of every kind."""
    random = Random(seed)
    for _ in range(rounds):
        for kind in kinds.values():
            for version in kind.VALUE.VERSIONS:
                value = make(kind.VALUE, random, version)
                if isinstance(value, GroupMetadataValue) and random.random() < 0.7:
                    value = _of_consumers(value, random)
                yield make(kind, random, 0), value, version


def make(kind: type[Any], random: Random, version: int) -> Any:
    """A structure with random contents, all of which `version` has a place for."""
    hints = get_type_hints(kind)
    values: dict[str, Any] = {}
    for each in fields(kind):
        since, until = each.metadata["since"], each.metadata["until"]
        in_version = since <= version and (until is None or version <= until)
        if not in_version or (each.default is not MISSING and random.random() < 0.3):
            continue
        if each.metadata["nullable"] and random.random() < 0.3:
            values[each.name] = None
        else:
            values[each.name] = _value(each.metadata["kafka_type"], hints[each.name], random, version)
    return kind(**values)


def _of_consumers(group: GroupMetadataValue, random: Random) -> GroupMetadataValue:
    """The same group, whose members are consumers; some have sent what is no message of consumers."""
    members = []
    for member in group.members:
        subscription, assignment = (
            write_value(make(kind, random, version), version) if random.random() < 0.8 else random.randbytes(9)
            for kind in (ConsumerProtocolSubscription, ConsumerProtocolAssignment)
            for version in [random.choice(kind.VERSIONS)]
        )
        members.append(replace(member, subscription=subscription, assignment=assignment))
    return replace(group, protocol_type="consumer", members=tuple(members))


def _value(kafka_type: str, hint: Any, random: Random, version: int) -> Any:
    if kafka_type == "struct":
        return make(structure_type(hint), random, version)
    if kafka_type.startswith("[]"):
        count = random.choice((0, 1, 3, 130))
        if kafka_type == "[]":
            item = structure_type(hint)
            return tuple(make(item, random, version) for _ in range(count % 10))
        return tuple(_value(kafka_type[2:], None, random, version) for _ in range(count))
    if kafka_type in _NUMBERS:
        most = 1 << _NUMBERS[kafka_type]
        return random.choice((-most, -1, 0, 1, most - 1, random.randrange(-most, most)))
    simple: dict[str, Any] = {
        "bool": random.random() < 0.5,
        "uint16": random.choice((0, 9092, 65535)),
        "float64": random.choice((0.0, -1.5, 1e300, 1048576.25, 0.0009765625, random.randrange(1000) / 8)),
        "uuid": UUID(int=random.choice((0, 1, random.getrandbits(128)))),
        "string": "".join(random.choices(_TEXT, k=random.choice((0, 1, 126, 127, 300)))),
        "bytes": random.randbytes(random.choice((0, 1, 126, 127))),
    }
    return simple[kafka_type]
