"""The answer to a request that failed as a whole, in the form that its API has for that.

Kafka's requests each make such an answer (`getErrorResponse`), and nearly all follow one rule: the error stands
wherever the response has a place for one, and the lists of the response repeat what the request named. The rule is
applied to kio's declarations here, so that an API needs nothing of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, Final

from octavo.broker.wire.api_keys import DESCRIBE_LOG_DIRS, FETCH, PRODUCE
from octavo.broker.wire.messages import Struct, declaration, default_of, name_of, type_of
from octavo.errors import ErrorCode

# The response names no items from this version on: the error of the whole is enough.
_WITHOUT_ITEMS: Final = {FETCH: 13, DESCRIBE_LOG_DIRS: 0}

# What requests and responses call the same thing.
_PARTITION: Final = ("partition_index", "partition", "index", "partition_id")
_REPEATED: Final = frozenset({"name", "topic", "topic_id", "resource_type", "resource_name", "session_id"})
_EMPTY: Final = frozenset({"configs"})  # settings are told only if all went well
_OFFSETS_AND_TIMES: Final = ("int64", "datetime_i64")
_UNKNOWN: Final = -1


def error_content(
    api_key: int, version: int, request: Struct, code: ErrorCode, message: str | None = None
) -> dict[str, Any]:
    """Return the content of the response to a request that failed with `code`."""
    if api_key == PRODUCE:
        request = _merged(request)
    items = () if version >= _WITHOUT_ITEMS.get(api_key, version + 1) else _items(request)
    items = [each for each in items if isinstance(each, Struct | str)]
    return _mirrored(declaration(api_key, version, "response"), request, items, code, message)


def _merged(request: Struct) -> Struct:
    """Return a Produce request that names each topic and each partition once, as its answers do."""
    topics: dict[tuple[str, bytes], dict[int, Struct]] = {}
    for topic in request.topic_data:
        several = topics.setdefault((getattr(topic, "name", ""), getattr(topic, "topic_id", b"")), {})
        several |= {each.index: each for each in topic.partition_data}
    data = tuple(
        Struct(name=name, topic_id=topic_id, partition_data=tuple(several.values()))
        for (name, topic_id), several in topics.items()
    )
    return Struct(topic_data=data)


def _items(asked: object) -> Iterable[Any]:
    """Return what a request, or a part of it, names: the items of its first list of structures, or of any list."""
    lists = [each for each in vars(asked).values() if isinstance(each, tuple)] if isinstance(asked, Struct) else []
    of_structures = [each for each in lists if each and isinstance(each[0], Struct)]
    return next((each for each in of_structures or lists if each), ())


def _mirrored(declared: Any, asked: Any, items: Iterable[Any], code: ErrorCode, message: str | None) -> dict[str, Any]:
    content: dict[str, Any] = {}
    repeating = _repeating(declared)
    for each in fields(declared):
        name = name_of(each)
        if name == "error_code":
            content[name] = code
        elif name == "error_message":
            content[name] = message
        elif name in _EMPTY:
            content[name] = []
        elif each is repeating:
            structure = type_of(each.type)[0]
            content[name] = [_mirrored(structure, item, _items(item), code, message) for item in items]
        elif each.metadata.get("tag") is None:
            content[name] = _value(each, name, asked)
    return content


def _repeating(declared: Any) -> Any:
    """Return the list of a response that repeats what a request names: one with a place for errors, or the first."""
    lists = [each for each in fields(declared) if type_of(each.type)[1] and is_dataclass(type_of(each.type)[0])]
    with_errors = [each for each in lists if _has_error(type_of(each.type)[0])]
    return next(iter(with_errors or lists), None)


def _has_error(declared: Any) -> bool:
    """Return whether a structure has a place for an error, or one that it holds."""
    inside = (type_of(each.type)[0] for each in fields(declared))
    return any(each.name == "error_code" for each in fields(declared)) or any(
        is_dataclass(each) and _has_error(each) for each in inside
    )


def _value(declared: Any, name: str, asked: Any) -> Any:
    if name in _PARTITION:
        if isinstance(asked, int):
            return asked
        return next((getattr(asked, each) for each in _PARTITION if hasattr(asked, each)), _UNKNOWN)
    if name in _REPEATED:
        given = asked if isinstance(asked, str) else getattr(asked, name, None)
        return given if given is not None else default_of(declared) or ""
    if declared.metadata.get("kafka_type") == "records":
        return b""
    if declared.metadata.get("kafka_type") in _OFFSETS_AND_TIMES and declared.default in (MISSING, None):
        return _UNKNOWN
    return default_of(declared)
