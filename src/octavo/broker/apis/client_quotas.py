"""DescribeClientQuotas (48), AlterClientQuotas (49): limits for users, client ids and addresses.

Quotas are kept in the metadata as Kafka keeps them. An entity is a user, a client id, both, or an IP address; the name
null stands for everybody who has no quota of their own. Version 1 is flexible.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from octavo.broker.answers import Later, Parts
from octavo.broker.refused import Refused
from octavo.broker.request import Request
from octavo.broker.troubles import reason, storage_error
from octavo.broker.wire.api_keys import ALTER_CLIENT_QUOTAS, DESCRIBE_CLIENT_QUOTAS
from octavo.broker.wire.messages import Struct, write_response
from octavo.errors import ErrorCode, OctavoError
from octavo.log.metadata.image import QuotaEntity, quota_entity
from octavo.records.layout import MAX_INT32, MAX_INT64
from octavo.schemas.metadata.access import ClientQuotaRecord, EntityData
from octavo.schemas.metadata.record import MetadataRecord

if TYPE_CHECKING:
    from octavo.broker.broker import Broker

_USER: Final = "user"
_CLIENT: Final = "client-id"
_IP: Final = "ip"
_TYPES: Final = (_CLIENT, _USER, _IP)  # in the order in which Kafka prints them

# How a component of a filter matches.
_EXACT: Final = 0
_DEFAULT: Final = 1
_ANY: Final = 2

_LARGE: Final = {MAX_INT32: "an INT", MAX_INT64: "a LONG"}
# The quotas of each kind of entity, with the largest value of those that are whole numbers.
_OF_CLIENTS: Final[dict[str, int | None]] = {
    "producer_byte_rate": MAX_INT64,
    "consumer_byte_rate": MAX_INT64,
    "request_percentage": None,
    "controller_mutation_rate": None,
}
_OF_ADDRESSES: Final[dict[str, int | None]] = {"connection_creation_rate": MAX_INT32}
_LABEL: Final = r"[A-Za-z0-9](?:[A-Za-z0-9\-]*[A-Za-z0-9])?"
_HOST: Final = re.compile(rf"{_LABEL}(?:\.{_LABEL})*\.?")
_FRACTION: Final = 1e-6  # less than this is taken for a rounding error


# ------------------------------------------------------------------------------------------------------------- describe


def describe_client_quotas(broker: Broker, request: Request) -> Parts:
    """Answer a DescribeClientQuotas request."""
    asked = request.read()
    content: dict[str, Any] = {"throttle_time_ms": 0, "error_code": 0, "error_message": "", "entries": []}
    try:
        matches = _filter(asked)
    except Refused as refused:
        content |= {"error_code": refused.code, "error_message": refused.message, "entries": None}
    else:
        content["entries"] = [
            {
                "entity": _entity_content(entity),
                "values": [{"key": key, "value": value} for key, value in sorted(quotas.items())],
            }
            for entity, quotas in broker.image.quotas.items()
            if matches(dict(entity))
        ]
    return [write_response(DESCRIBE_CLIENT_QUOTAS, request.version, content)]


def _filter(asked: Struct) -> Callable[[dict[str, str | None]], bool]:
    """Return the function that tells whether an entity is asked for. Raises `Refused`."""
    exact: dict[str, str | None] = {}
    others: set[str] = set()
    for each in asked.components:
        kind = each.entity_type
        _check_component(each, {*exact, *others})
        if each.match_type == _ANY:
            others.add(kind)
        else:
            exact[kind] = each.match
    named = {*exact, *others}
    if _IP in named and len(named) > 1:
        raise Refused(
            ErrorCode.INVALID_REQUEST,
            "Invalid entity filter component combination. IP filter component should not be used with user or clientId "
            "filter component.",
        )

    def matches(entity: dict[str, str | None]) -> bool:
        if asked.strict and entity.keys() != named:
            return False
        return named <= entity.keys() and all(entity[kind] == name for kind, name in exact.items())

    return matches


def _check_component(each: Struct, before: set[str]) -> None:
    kind = each.entity_type
    if not kind:
        raise Refused(ErrorCode.INVALID_REQUEST, "Invalid empty entity type.")
    if kind in before:
        why = f"Entity type {kind} cannot appear more than once in the filter."
        raise Refused(ErrorCode.INVALID_REQUEST, why)
    if kind not in _TYPES:
        raise Refused(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}")
    if each.match_type not in (_EXACT, _DEFAULT, _ANY):
        raise Refused(ErrorCode.INVALID_REQUEST, f"Unknown match type {each.match_type}")
    if each.match_type == _EXACT and each.match is None:
        why = "Request specified MATCH_TYPE_EXACT, but set match string to null."
        raise Refused(ErrorCode.INVALID_REQUEST, why)
    if each.match_type != _EXACT and each.match is not None:
        name = "MATCH_TYPE_DEFAULT" if each.match_type == _DEFAULT else "MATCH_TYPE_SPECIFIED"
        raise Refused(ErrorCode.INVALID_REQUEST, f"Request specified {name}, but also specified a match string.")


def _entity_content(entity: QuotaEntity) -> list[dict[str, str | None]]:
    return [{"entity_type": kind, "entity_name": name} for kind, name in entity]


# ---------------------------------------------------------------------------------------------------------------- alter


class _Outcome(NamedTuple):
    code: int
    message: str | None


def alter_client_quotas(broker: Broker, request: Request) -> Later:
    """Answer an AlterClientQuotas request."""
    asked, version = request.read(), request.version

    def work() -> Parts:
        entries = [
            {"error_code": code, "error_message": message, "entity": _entity_content(entity)}
            for entity, (code, message) in _alter(broker, asked).items()
        ]
        return [write_response(ALTER_CLIENT_QUOTAS, version, {"throttle_time_ms": 0, "entries": entries})]

    return Later(work)


def _alter(broker: Broker, asked: Struct) -> dict[QuotaEntity, _Outcome]:
    """Change quotas, and return what became of each entity.

    An entity that appears twice is refused, and yet its first entry counts: so does Kafka.
    """
    records: list[MetadataRecord] = []
    outcomes: dict[QuotaEntity, _Outcome] = {}
    for entry in asked.entries:
        entity = quota_entity((each.entity_type, each.entity_name) for each in entry.entity)
        keys = [operation.key for operation in entry.ops]
        try:
            if entity in outcomes or len(set(keys)) < len(keys):
                raise Refused(ErrorCode.INVALID_REQUEST, f"Ignoring duplicate entity {_text(entity)}")
            records += _changes(broker, entity, entry.ops)
            outcomes[entity] = _Outcome(0, None)
        except Refused as refused:
            outcomes[entity] = _Outcome(refused.code, refused.message)
    if not asked.validate_only:
        try:
            broker.change_cluster(records)
        except (OctavoError, OSError) as error:
            broker.troubles.failed("quotas could not be changed", error)
            return dict.fromkeys(outcomes, _Outcome(storage_error(error), reason(error)))
    return outcomes


def _changes(broker: Broker, entity: QuotaEntity, operations: list[Struct]) -> list[MetadataRecord]:
    """Return the records of the changes for one entity. Raises `Refused`."""
    limits = _limits(entity)
    present = broker.image.quotas.get(entity, {})
    parts = tuple(EntityData(entity_type=kind, entity_name=name) for kind, name in entity)
    records: list[MetadataRecord] = []
    for each in operations:
        if each.remove:
            if each.key in present:
                records.append(ClientQuotaRecord(entity=parts, key=each.key, value=0.0, remove=True))
            continue
        _check_value(limits, each.key, each.value)
        if present.get(each.key) != each.value:
            records.append(ClientQuotaRecord(entity=parts, key=each.key, value=each.value, remove=False))
    return records


def _limits(entity: QuotaEntity) -> dict[str, int | None]:
    """Return the quotas that an entity can have. Raises `Refused`."""
    if not entity:
        raise Refused(ErrorCode.INVALID_REQUEST, "Invalid empty client quota entity")
    for kind, name in entity:
        if kind not in _TYPES:
            raise Refused(ErrorCode.INVALID_REQUEST, f"Unhandled client quota entity type: {kind}")
        if name == "":
            raise Refused(ErrorCode.INVALID_REQUEST, f"Empty {kind} not supported")
    parts = dict(entity)
    if _IP not in parts:
        return _OF_CLIENTS
    if len(parts) > 1:
        why = "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId"
        raise Refused(ErrorCode.INVALID_REQUEST, why)
    address = parts[_IP]
    if address is not None and not _is_address(address):
        raise Refused(ErrorCode.INVALID_REQUEST, f"{address} is not a valid IP or resolvable host.")
    return _OF_ADDRESSES


def _is_address(text: str) -> bool:
    """Return whether a text is an IP address, or can be the name of a host. Names are not looked up."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return _HOST.fullmatch(text) is not None
    return True


def _check_value(limits: dict[str, int | None], key: str, value: float) -> None:
    if key not in limits:
        raise Refused(ErrorCode.INVALID_REQUEST, f"Invalid configuration key {key}")
    if value <= 0:
        raise Refused(ErrorCode.INVALID_REQUEST, f"Quota {key} must be greater than 0")
    limit = limits[key]
    if limit is None:
        return
    if value > float(limit):
        raise Refused(ErrorCode.INVALID_REQUEST, f"Proposed value for {key} is too large for {_LARGE[limit]}.")
    if value % 1.0 > _FRACTION:
        raise Refused(ErrorCode.INVALID_REQUEST, f"{key} cannot be a fractional value.")


def _text(entity: QuotaEntity) -> str:
    """Return an entity as Kafka prints it."""
    parts = dict(entity)
    kinds = sorted(parts, key=lambda kind: _TYPES.index(kind) if kind in _TYPES else -1)
    entries = ", ".join(f"{kind}={'null' if parts[kind] is None else parts[kind]}" for kind in kinds)
    return f"ClientQuotaEntity(entries={{{entries}}})"
