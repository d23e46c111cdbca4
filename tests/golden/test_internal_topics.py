"""The records that a broker of Apache Kafka wrote to its internal topics are decoded, and written again to the byte."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from octavo.inspect.decoding import decoding_of
from octavo.records import Record, read_batches
from octavo.schemas.consumer_offsets.serde import KINDS as GROUP_KINDS
from octavo.schemas.metadata.serde import read_metadata, write_metadata
from octavo.schemas.share_group_state import KINDS as SHARE_KINDS
from octavo.schemas.transaction_state import KINDS as TRANSACTION_KINDS
from octavo.schemas.versioned import (
    CoordinatorKey,
    CoordinatorValue,
    UnknownKey,
    read_any_key,
    read_number,
    read_value_of,
    write_key,
    write_value,
)
from tests.golden.directories import unpack

SEGMENT: Final = "00000000000000000000.log"
COORDINATORS: Final[dict[str, Mapping[int, type[CoordinatorKey[Any]]]]] = {
    "__consumer_offsets-0": GROUP_KINDS,
    "__share_group_state-0": SHARE_KINDS,
    "__transaction_state-0": TRANSACTION_KINDS,
}


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a broker of 4.3 wrote, with groups of the classic, consumer and share protocols."""
    return unpack("dumped", tmp_path_factory.mktemp("internal"))


def records(path: Path) -> Iterator[Record]:
    for batch in read_batches(path.read_bytes()):
        if not batch.is_control:
            yield from batch


def test_all_of_them_are_decoded(directory: Path) -> None:
    kinds: set[str | None] = set()
    for path in sorted(directory.glob("__*/*")):
        decoding = decoding_of(path)
        if decoding is not None:
            found = list(records(path))
            for decoded in decoding.decode([record.key for record in found], [record.value for record in found]):
                assert decoded.error is None
                kinds.add(decoded.kind)
    assert {"OffsetCommit", "GroupMetadata", "ConsumerGroupCurrentMemberAssignment", "ShareGroupMetadata"} <= kinds
    assert {"ShareSnapshot", "ShareUpdate", "TransactionLog", "REGISTER_BROKER_RECORD", "PARTITION_RECORD"} <= kinds


@pytest.mark.parametrize("folder", COORDINATORS)
def test_coordinators_records_are_written_as_kafka_wrote_them(folder: str, directory: Path) -> None:
    count = 0
    for record in records(directory / folder / SEGMENT):
        assert record.key is not None
        key = read_any_key(COORDINATORS[folder], record.key)
        assert not isinstance(key, UnknownKey)
        assert write_key(key) == record.key
        if record.value is not None:
            value = read_value_of(key, record.value)
            assert isinstance(value, CoordinatorValue)
            assert write_value(value, read_number(record.value)) == record.value
        count += 1
    assert count


def test_metadata_are_written_as_kafka_wrote_them(directory: Path) -> None:
    for record in records(directory / "__cluster_metadata-0" / SEGMENT):
        assert record.value is not None
        assert write_metadata(read_metadata(record.value), version=record.value[2]) == record.value
