"""Kafka reads, and would write, the records of metadata as we do; and its own definitions are ours."""

from __future__ import annotations

import json
import re
import zipfile
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, fields
from random import Random
from typing import Any, get_type_hints

from octavo.errors import FormatError
from octavo.schemas.metadata.serde import KINDS, UnknownRecord, read_metadata, write_metadata
from tests.kafka.judge import Judge
from tests.metadata import as_json, camel, generate, item_type


def ask(judge: Judge, buffers: Sequence[bytes]) -> Iterator[dict[str, Any]]:
    for begin in range(0, len(buffers), 1000):
        part = [b64encode(buffer).decode() for buffer in buffers[begin : begin + 1000]]
        yield from judge.ask("metadata", buffers=part)


def test_kafka_reads_and_writes_every_record_in_every_version_as_we_do(kafka_broker: Judge) -> None:
    records = list(generate(11, 25))
    written = [write_metadata(record, version=version) for record, version in records]
    for (record, version), data, told in zip(records, written, ask(kafka_broker, written), strict=True):
        assert "error" not in told, (record, told)
        assert (told["type"], told["version"]) == (record.TYPE, version)
        assert told["data"] == as_json(record, version)
        assert b64decode(told["bytes"]) == data


def test_kafka_and_we_agree_on_bytes_that_are_damaged(kafka_broker: Judge) -> None:
    random = Random(12)
    damaged = []
    for record, version in generate(13, 2):
        data = write_metadata(record, version=version)
        damaged += [data[: random.randrange(len(data))] for _ in range(5)]
        for _ in range(30):
            at = random.randrange(len(data))
            damaged.append(data[:at] + bytes([random.randrange(256)]) + data[at + 1 :])
    for data, told in zip(damaged, ask(kafka_broker, damaged), strict=True):
        try:
            read = read_metadata(data)
        except FormatError:
            assert "error" in told, (data, told)
            continue
        # Of a kind that never had but one version Kafka reads any as that one; here it is unknown.
        if not isinstance(read, UnknownRecord):
            assert "error" not in told, (data, read, told)
            assert json.dumps(told["data"]) == json.dumps(as_json(read, told["version"]))


def test_the_declarations_are_those_of_kafka(kafka_broker: Judge) -> None:
    definitions = _definitions(kafka_broker)
    assert definitions.keys() == KINDS.keys()
    for number, definition in definitions.items():
        kind = KINDS[number]
        assert kind.__name__ == definition["name"]
        assert _versions(definition["validVersions"]) == kind.VERSIONS
        assert definition["flexibleVersions"] == "0+"
        _check_fields(kind, definition["fields"])


def _check_fields(kind: type[Any], definitions: list[dict[str, Any]]) -> None:
    hints = get_type_hints(kind)
    declared = fields(kind)
    assert [camel(each.name) for each in declared] == [_lower_first(d["name"]) for d in definitions]
    for each, definition in zip(declared, definitions, strict=True):
        is_structure = "fields" in definition
        assert each.metadata["kafka_type"] == ("[]" if is_structure else definition["type"])
        assert each.metadata["since"] == _versions(definition["versions"]).start
        assert each.metadata["tag"] == definition.get("tag")
        assert each.metadata["nullable"] == ("nullableVersions" in definition)
        if "default" in definition:
            assert str(each.default).lower() == definition["default"].replace("null", "none")
        elif each.default is not MISSING:
            assert not each.default or each.default.int == 0  # what Java has where nothing is said
        if is_structure:
            _check_fields(item_type(hints[each.name]), definition["fields"])


def _definitions(judge: Judge) -> dict[int, dict[str, Any]]:
    [jar] = [jar for jar in judge.release.jars if re.match(r"kafka-metadata-\d", jar.name)]
    definitions = {}
    with zipfile.ZipFile(jar) as archive:
        for name in archive.namelist():
            if re.fullmatch(r"common/metadata/\w+\.json", name):
                text = re.sub(r"^\s*//.*$", "", archive.read(name).decode(), flags=re.MULTILINE)
                definition = json.loads(text)
                definitions[definition["apiKey"]] = definition
    return definitions


def _versions(text: str) -> range:
    first, _, last = text.removesuffix("+").partition("-")
    return range(int(first), int(last or first) + 1)


def _lower_first(name: str) -> str:
    return name[:1].lower() + name[1:]
