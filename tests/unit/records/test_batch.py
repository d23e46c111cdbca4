"""What all batches have in common."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import pytest

from octavo.errors import ChecksumMismatch
from octavo.records import Batch, BatchBuilder, Record, read_batches
from octavo.records.legacy import Message
from octavo.records.v2 import BatchV2


def test_what_differs_between_the_magics_is_left_open() -> None:
    left_open = {"__iter__", "base_offset", "last_offset", "base_timestamp_ms", "max_timestamp_ms"}
    assert Batch.__abstractmethods__ == left_open
    assert not inspect.isabstract(BatchV2)
    assert not inspect.isabstract(Message)


def test_a_batch_of_no_kind_cannot_be_made() -> None:
    class Half(Batch):
        def __iter__(self) -> Iterator[Record]:
            return iter(())

    kinds: tuple[type, ...] = (Batch, Half)
    for kind in kinds:
        with pytest.raises(TypeError, match="abstract"):
            kind()


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_a_batch_holds_no_more_than_its_fields(magic: int) -> None:
    (batch,) = read_batches(one(magic))
    assert not hasattr(batch, "__dict__")


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_a_batch_is_valid_where_verifying_passes(magic: int) -> None:
    data = bytearray(one(magic))
    for is_valid in (True, False):
        (batch,) = read_batches(data, verify=False)
        assert batch.is_valid == is_valid
        if not is_valid:
            with pytest.raises(ChecksumMismatch):
                batch.verify()
        data[-1] ^= 1


def one(magic: int) -> bytes:
    builder = BatchBuilder(magic)
    builder.append(b"k", b"v", timestamp_ms=0)
    return builder.build()
