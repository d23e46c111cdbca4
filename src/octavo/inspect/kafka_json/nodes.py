"""The JSON that Kafka's generated converters make of a message."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import fields
from typing import Any

from octavo.log.files.meta_properties import write_uuid


def message_json(message: Any, version: int) -> dict[str, Any]:
    """Return a message of `octavo.schemas` as JSON, with the fields that `version` has, in their order.

    Names are in camel case, uuids and bytes are text in base64. A tagged field that has its default is left out.
    """
    node = {}
    for each in fields(message):
        content = getattr(message, each.name)
        since, until = each.metadata["since"], each.metadata["until"]
        if (since and version < since) or (until is not None and version > until):
            continue
        if each.metadata["tag"] is None or content != each.default:
            node[camel_case(each.name)] = _content(each.metadata["kafka_type"], content, version)
    return node


def camel_case(name: str) -> str:
    """Return the name of a field as Kafka spells it: topicId for `topic_id`."""
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def _content(kafka_type: str, content: Any, version: int) -> Any:
    if content is None:
        return None
    if kafka_type == "struct":
        return message_json(content, version)
    if kafka_type == "[]":
        return [message_json(item, version) for item in content]
    if kafka_type.startswith("[]"):
        return [_content(kafka_type[2:], item, version) for item in content]
    if kafka_type == "uuid":
        return write_uuid(content)
    if kafka_type == "bytes":
        return b64encode(content).decode()
    return content
