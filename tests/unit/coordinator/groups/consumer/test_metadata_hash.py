"""XXH3 as Kafka has it, and what it keeps of the topics of a group."""

from __future__ import annotations

from uuid import UUID

import pytest

from octavo.coordinator.groups.consumer.metadata_hash import metadata_hash
from octavo.coordinator.groups.consumer.xxh3 import xxh3_64
from octavo.coordinator.groups.topics import NoTopics, Topic

BY_HASH4J = {  # which is what Kafka uses; by the number of bytes
    0: 0x2D06800538D394C2,
    1: 0xE12EF9D2EB86CEEB,
    2: 0xE406C97925067F24,
    3: 0x5C83885A0FB5D516,
    4: 0x244F36DE481E7522,
    5: 0x7B9EBB96E74CF5A8,
    7: 0x1ECDCA8DB6A5BB3,
    8: 0x96CC97A6768FD7A9,
    9: 0x4781D83B8E99D495,
    12: 0x88FB0A593142536C,
    16: 0x913BD4A8038027A7,
    17: 0x2BF6F66973A6179D,
    31: 0xD3E1646C0BAD5F21,
    32: 0x5D503B89AE6F56C6,
    33: 0xB192963EDE5ED5AB,
    48: 0x21C9A73051F333E7,
    63: 0x627EE118A072EC8A,
    64: 0x13886553E7DC3FA3,
    65: 0x1C6516CC715D0A0E,
    80: 0xD670AE3F717ED145,
    96: 0xDF49263B54999FCD,
    97: 0x74F3D6FF540707B9,
    100: 0x985C0AA35F523FE6,
    128: 0xC4399C7829D0628F,
    129: 0x8433489056750B32,
    144: 0xD917ECABC86549B2,
    150: 0x3E6D35725DF70EA0,
    200: 0x70D27115FAAB301E,
    239: 0x860862326046D50,
    240: 0x3C0BB96864E543A1,
    241: 0xBFF7215089202D8F,
    255: 0x1729EAA78DF50A51,
    256: 0xC03402B5DCE3DBFA,
    257: 0xFF91D34061444094,
    512: 0xF25F9CCB460BC87E,
    1000: 0xFE35E25E5366A470,
    1023: 0x60BB7337EFF80653,
    1024: 0x33BA39360EC01521,
    1025: 0xA786915585C6BF1B,
    1088: 0xE569B884290C10A6,
    2048: 0xE31BBE25E5C5311E,
    2049: 0x25BADEBDEC1EBF98,
    5000: 0x36FA60DA341C25B2,
    10007: 0xC5881564752A6ADF,
}


@pytest.mark.parametrize(("size", "expected"), BY_HASH4J.items())
def test_every_length_is_hashed_as_by_kafka(size: int, expected: int) -> None:
    assert xxh3_64(bytes((number * 7 + (number >> 8) * 13 + 1) & 0xFF for number in range(size))) == expected


class OneTopic(NoTopics):
    topic = Topic("topic-é", UUID(int=0x0102030405060708_1112131415161718), 3, (("r1",), (), ()))

    def by_name(self, name: str) -> Topic | None:
        return self.topic if name == self.topic.name else None


def test_the_hash_of_topics_is_that_of_their_hashes() -> None:
    names = ["topic-é", "unknown"]
    of_topic = 0x4F447ED3302B4DF5  # by hash4j
    expected = int.from_bytes(xxh3_64(of_topic.to_bytes(8, "little")).to_bytes(8), signed=True)
    assert metadata_hash(names, OneTopic()) == expected
    assert metadata_hash(["unknown"], OneTopic()) == 0
