"""What the operator is told of a coordinator whose records cannot be written."""

from __future__ import annotations

from typing import Any

import pytest

from octavo.errors import ErrorCode
from octavo.log import Log
from octavo.log.names import CONSUMER_OFFSETS
from octavo.server.serving import serve
from tests.server.group_client import GroupClient
from tests.server.test_groups import alone
from tests.server.test_transactions import Transactional, prepare

CONFIG = {"group.initial.rebalance.delay.ms": "0"}


def test_what_still_works_is_no_sign_that_records_can_be_written_again(monkeypatch: pytest.MonkeyPatch) -> None:
    really = Log.append

    def append(log: Log, *arguments: Any, **options: Any) -> Any:
        if log.partition.topic == CONSUMER_OFFSETS:
            raise OSError(28, "No space left on device")
        return really(log, *arguments, **options)

    said: list[str] = []
    with serve(config=CONFIG, say=said.append) as server, GroupClient(server.bootstrap_servers) as client:
        prepare(server)
        member_id, generation = alone(client)
        producer = Transactional(server.bootstrap_servers, "id")
        with producer.client, monkeypatch.context() as patch:
            patch.setattr(Log, "append", append)
            said.clear()
            for number in range(3):
                assert client.commit("t", number, member_id, generation) == ErrorCode.NOT_COORDINATOR
                assert client.heartbeat(member_id, generation) == ErrorCode.NONE
                assert producer.init() == ErrorCode.NONE
            [only] = said
            assert "the state in __consumer_offsets-0 could not be written: No space left on device" in only
        assert client.commit("t", 5, member_id, generation) == ErrorCode.NONE
        assert "the state in __consumer_offsets-0 can be written again" in said[-1]
