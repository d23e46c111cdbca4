"""OffsetFetch responses, which are written by hand, agree with kio in every version."""

from __future__ import annotations

from datetime import timedelta
from random import Random
from typing import Any

import pytest

from octavo.broker.wire.api_keys import APIS, OFFSET_FETCH
from octavo.broker.wire.offset_fetch import GROUPS, GroupOffsets, write_offset_fetch
from tests.unit.broker.wire.entities import declared, plain, random_message, written


def group_of(group: dict[str, Any]) -> GroupOffsets:
    topics = [
        (
            topic["topic_id"] if "topic_id" in topic else topic["name"],
            [
                (
                    each["partition_index"],
                    each["committed_offset"],
                    each.get("committed_leader_epoch", -1),
                    each["metadata"],
                    each["error_code"],
                )
                for each in topic["partitions"]
            ],
        )
        for topic in group["topics"]
    ]
    return GroupOffsets(group.get("group_id", ""), group.get("error_code", 0), topics)


@pytest.mark.parametrize("version", range(APIS[OFFSET_FETCH].first, APIS[OFFSET_FETCH].last + 1))
@pytest.mark.parametrize("seed", range(30))
def test_a_response_is_written_as_kio_writes_it(version: int, seed: int) -> None:
    fixed: dict[str, Any] = {"throttle_time": timedelta()} | ({"metadata": ""} if seed % 2 else {})
    message = random_message(declared(OFFSET_FETCH, version, response=True), Random(seed), fixed)
    content = plain(message)
    groups = content["groups"] if version >= GROUPS else [content]
    assert write_offset_fetch(version, [group_of(each) for each in groups]) == written(message)
