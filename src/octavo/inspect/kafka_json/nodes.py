"""The JSON that Kafka's generated converters make of a message."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from dataclasses import fields
from functools import lru_cache
from typing import Any, Final, NamedTuple

from octavo.log.files.meta_properties import write_uuid

_NO_DEFAULT: Final = object()  # which no content is equal to


class _Member(NamedTuple):
    """A field as a member of a JSON object."""

    field: str
    name: str
    left_out: object  # the content with which it is left out
    convert: Callable[[Any, int], Any] | None  # takes content and version; None if the content is JSON already


def message_json(message: Any, version: int) -> dict[str, Any]:
    """Return a message of `octavo.schemas` as JSON, with the fields that `version` has, in their order.

    Names are in camel case, uuids and bytes are text in base64. A tagged field that has its default is left out.
    """
    kind: Any = type(message)
    node = {}
    for field, name, left_out, convert in _members(kind, version):
        content = getattr(message, field)
        if left_out is _NO_DEFAULT or content != left_out:
            node[name] = content if convert is None or content is None else convert(content, version)
    return node


def camel_case(name: str) -> str:
    """Return the name of a field as Kafka spells it: topicId for `topic_id`."""
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


@lru_cache(maxsize=1024)  # there are fewer kinds and versions, unless versions are made up
def _members(kind: type[Any], version: int) -> tuple[_Member, ...]:
    members = []
    for each in fields(kind):
        since, until = each.metadata["since"], each.metadata["until"]
        if (since and version < since) or (until is not None and version > until):
            continue
        left_out = _NO_DEFAULT if each.metadata["tag"] is None else each.default
        members.append(_Member(each.name, camel_case(each.name), left_out, _converter(each.metadata["kafka_type"])))
    return tuple(members)


def _converter(kafka_type: str) -> Callable[[Any, int], Any] | None:
    if kafka_type.startswith("[]"):
        convert = message_json if kafka_type == "[]" else _converter(kafka_type[2:])
        if convert is None:
            return lambda items, version: list(items)
        return lambda items, version: [convert(item, version) for item in items]
    return _CONVERTERS.get(kafka_type)


_CONVERTERS: Final[dict[str, Callable[[Any, int], Any]]] = {
    "struct": message_json,
    "uuid": lambda uuid, version: write_uuid(uuid),
    "bytes": lambda data, version: b64encode(data).decode(),
}
