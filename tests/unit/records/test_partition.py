from __future__ import annotations

import pytest

from octavo.errors import InvalidInput
from octavo.records.partition import murmur2, partition_for_key


@pytest.mark.parametrize(
    ("key", "hashed"),  # from the tests of Apache Kafka
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_murmur2_is_kafkas(key: bytes, hashed: int) -> None:
    assert murmur2(key) == hashed
    assert murmur2(memoryview(key)) == hashed


def test_a_key_has_the_partition_of_its_positive_hash() -> None:
    assert partition_for_key(b"foobar", 1000) == (-790332482 & 0x7FFFFFFF) % 1000
    assert partition_for_key(b"", 1) == 0


def test_a_topic_without_partitions_is_refused() -> None:
    with pytest.raises(InvalidInput):
        partition_for_key(b"", 0)
