"""Golden files read, object by object, to what Kafka says is in them."""

from __future__ import annotations

import base64
import re
from typing import Any
from uuid import UUID

import pytest

from octavo.records.control import Control, EndTransactionMarker, read_control, write_control
from octavo.records.reader import read_batches
from tests.batches import assert_agrees
from tests.golden import files


@pytest.mark.parametrize("name", files.names())
def test_a_golden_file_reads_to_what_kafka_says(name: str) -> None:
    golden = files.load(name)
    reader = read_batches(golden.data)
    batches = list(reader)
    assert reader.position == sum(batch.size for batch in golden.batches)
    assert reader.torn_tail == (None if reader.position == len(golden.data) else reader.position)
    assert len(batches) == len(golden.batches)
    for batch, told in zip(batches, golden.batches, strict=True):
        assert_agrees(batch, told)


@pytest.mark.parametrize("name", [name for name in files.names() if any(r.control for r in files.load(name).records)])
def test_control_records_of_a_golden_file_say_what_kafka_says(name: str) -> None:
    golden = files.load(name)
    records = [record for batch in read_batches(golden.data) if batch.is_control for record in batch]
    told = [record for record in golden.records if record.control_type is not None]
    for record, expected in zip(records, told, strict=True):
        control = read_control(record)
        assert control.type.name == expected.control_type
        assert _told(control) == expected.control
        assert write_control(control) == (record.key, record.value)


def _told(control: Control) -> Any:
    """What a control record says, in Kafka's JSON."""
    if isinstance(control, EndTransactionMarker):
        return {"coordinatorEpoch": control.coordinator_epoch}
    return _json(control)


_NAMES = {
    "id": "voterId",
    "directory_id": "voterDirectoryId",
    "last_contained_log_timestamp_ms": "lastContainedLogTimestamp",
    "kraft_version": "kRaftVersion",
}


def _json(thing: Any) -> Any:
    if isinstance(thing, tuple):
        return [_json(item) for item in thing]
    if isinstance(thing, UUID):
        return base64.urlsafe_b64encode(thing.bytes).decode().rstrip("=")
    if not hasattr(thing, "__dataclass_fields__"):
        return thing
    fields = {}
    for name in thing.__dataclass_fields__:
        if name == "type":
            continue
        camel = re.sub("_([a-z])", lambda match: match[1].upper(), name)
        fields[_NAMES.get(name, camel)] = _json(getattr(thing, name))
    versions = {name: fields.pop(name) for name in list(fields) if name.endswith("SupportedVersion")}
    if versions:
        fields["kRaftVersionFeature"] = versions
    if "voterId" in fields and not versions:
        fields.pop("voterDirectoryId")  # of a leader change, which Kafka writes in version 0
    return fields
