"""A single batch of a leader is checked by a shortcut, which judges as the check of many batches does."""

from __future__ import annotations

import random

import pytest
from crc32c import crc32c

from octavo.errors import AppendRefused
from octavo.log.append import follower
from octavo.records.layout import BATCH_HEADER, HEADER_SIZE
from tests.unit.log.logs import make_batch

MAX_EPOCH = 5
CRC_AT = BATCH_HEADER.at("crc")
COVERED_FROM = BATCH_HEADER.at("attributes")


def changed_batch(chance: random.Random) -> bytes:
    """A batch of which up to two bytes of the header are others, mostly with the checksum for that."""
    data = bytearray(make_batch(3))
    at = BATCH_HEADER.at("leader_epoch")
    data[at : at + 4] = (3).to_bytes(4)
    for _ in range(chance.randrange(3)):
        data[chance.randrange(HEADER_SIZE)] = chance.choice((0, 1, 2, 3, 5, 6, 127, 128, 255))
    if chance.random() < 0.9:
        data[CRC_AT : CRC_AT + 4] = crc32c(bytes(data[COVERED_FROM:])).to_bytes(4)
    return bytes(data)


def judgement(data: bytes) -> object:
    try:
        found = follower.check_batches(data, 0, MAX_EPOCH, max_size=1000)
    except AppendRefused as error:
        return str(error)
    return b"".join(found.parts), found[1:]


def test_the_shortcut_judges_as_the_check_of_many_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(18)
    batches = [changed_batch(chance) for _ in range(500)]
    judged = [judgement(each) for each in batches]
    monkeypatch.setattr(follower, "_only_batch", lambda *_: None)
    assert [judgement(each) for each in batches] == judged
    assert 100 < sum(isinstance(each, tuple) for each in judged) < 480
