"""Pages of topics and their partitions."""

from __future__ import annotations

from pathlib import Path

from octavo.broker.wire.api_keys import DESCRIBE_TOPIC_PARTITIONS
from octavo.errors import ErrorCode
from tests.unit.broker.member.member_broker import TOPIC, MemberBroker


def test_a_page_ends_also_before_a_topic_that_does_not_exist(tmp_path: Path) -> None:
    broker = MemberBroker(tmp_path)

    def ask(limit: int, *names: str) -> tuple[list[tuple[str, int, int]], str | None]:
        wanted = {"topics": [{"name": name} for name in names], "response_partition_limit": limit, "cursor": None}
        answer = broker.ask(DESCRIBE_TOPIC_PARTITIONS, 0, wanted).answer
        told = [(each.name, each.error_code, len(each.partitions)) for each in answer.topics]
        return told, answer.next_cursor and answer.next_cursor.topic_name

    missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert ask(2, TOPIC, "tz") == ([(TOPIC, 0, 2)], "tz")
    assert ask(3, TOPIC, "tz") == ([(TOPIC, 0, 2), ("tz", missing, 0)], None)
    assert ask(1, "a", TOPIC) == ([("a", missing, 0), (TOPIC, 0, 1)], TOPIC)
    broker.close()
