"""Kafka's own definitions of messages, which its jars have as JSON, and whether ours are the same."""

from __future__ import annotations

import json
import re
import zipfile
from dataclasses import MISSING, astuple, fields
from typing import Any, get_type_hints
from uuid import UUID

from octavo.inspect.kafka_json.nodes import camel_case
from octavo.schemas.entity import structure_type
from tests.kafka.releases import Release


def read_definitions(release: Release, jar: str, folder: str) -> dict[str, dict[str, Any]]:
    """The definitions of messages in a folder of a jar, by their names."""
    [path] = [path for path in release.jars if re.match(jar + r"-\d", path.name)]
    definitions = {}
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if re.fullmatch(folder + r"/\w+\.json", name):
                text = re.sub(r"^\s*//.*$", "", archive.read(name).decode(), flags=re.MULTILINE)
                definition = json.loads(text)
                definitions[definition["name"]] = definition
    return definitions


def check_message(kind: type[Any], definition: dict[str, Any], versions: range, first_flexible: int | None) -> None:
    """Whether a declared message is Kafka's; without `first_flexible` it has no flexible versions."""
    assert kind.__name__ == definition["name"]
    assert versions_of(definition["validVersions"]) == versions
    assert definition["flexibleVersions"] == ("none" if first_flexible is None else f"{first_flexible}+")
    structures = {each["name"]: each["fields"] for each in definition.get("commonStructs", ())}
    check_fields(kind, definition["fields"], structures, single=len(versions) == 1)


def check_fields(
    kind: type[Any], definitions: list[dict[str, Any]], structures: dict[str, Any], *, single: bool
) -> None:
    hints = get_type_hints(kind)
    declared = fields(kind)
    assert [camel_case(each.name) for each in declared] == [_lower_first(d["name"]) for d in definitions]
    for each, definition in zip(declared, definitions, strict=True):
        inner = definition.get("fields") or structures.get(definition["type"].removeprefix("[]"))
        array = definition["type"].startswith("[]")
        assert each.metadata["kafka_type"] == (("[]" if array else "struct") if inner else definition["type"])
        text = definition.get("versions") or definition["taggedVersions"]
        versions = versions_of(text)
        assert each.metadata["since"] == versions.start
        assert each.metadata["until"] == (None if text.endswith("+") or single else versions[-1])
        assert each.metadata["tag"] == definition.get("tag")
        assert each.metadata["nullable"] == ("nullableVersions" in definition)
        if definition.get("default") is not None:  # Kafka takes null for nothing, and "null" for null
            assert str(each.default).lower() == str(definition["default"]).lower().replace("null", "none")
        elif each.default is not MISSING:  # what Java has where nothing is said
            assert not each.default or each.default == UUID(int=0) or not any(astuple(each.default))
        if inner:
            structure = structure_type(hints[each.name])
            name = definition["type"].removeprefix("[]")
            assert getattr(structure, "NAME", structure.__name__) == name
            check_fields(structure, inner, structures, single=single)


def versions_of(text: str) -> range:
    """The versions that Kafka writes as 0-4, 3+ or 7; of those without an end only the first counts."""
    first, _, last = text.removesuffix("+").partition("-")
    return range(int(first), int(last or first) + 1)


def _lower_first(name: str) -> str:
    return name[:1].lower() + name[1:]
