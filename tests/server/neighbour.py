"""A well-behaved client beside those that misbehave: it has to get its answers all the time, and lose nothing."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace
from typing import Final

from octavo.broker.wire import api_keys
from octavo.log import DataDirectory
from octavo.log.reading.read_view import ReadResult
from octavo.records import read_batches
from tests.server.child import ChildBroker
from tests.server.conversation import Conversation
from tests.server.question import Question
from tests.server.questions import batch
from tests.server.requests import create, delete, fetch, produce

TOPIC: Final = "of-the-neighbour"
_DELETED_AT_ONCE: Final = 50
_PAUSE_S: Final = 0.005  # leaves time for the others
_ADMIN_PATIENCE_S: Final = 600  # somebody may have asked for ten thousand partitions, which comes first


class Neighbour:
    """Produces and fetches in a thread of its own until `stop`. A request without an answer fails in `stop`."""

    def __init__(self, broker: ChildBroker) -> None:
        self._talk: Final = Conversation(broker.address)
        self._admin: Final = Conversation(broker.address, _ADMIN_PATIENCE_S)
        self._is_over: Final = threading.Event()
        self._failure: Exception | None = None
        self.acknowledged: Final[dict[int, bytes]] = {}  # values by their offsets
        self.longest_s = 0.0
        self.most_partitions = 0  # of the others, when they were swept
        self._ask(create(TOPIC))
        self._thread: Final = threading.Thread(target=self._run)
        self._thread.start()

    def _ask(self, question: Question) -> SimpleNamespace:
        begin = time.monotonic()
        answer = self._talk.raw_answer(*question)
        self.longest_s = max(self.longest_s, time.monotonic() - begin)
        return answer

    def _run(self) -> None:
        try:
            while not self._is_over.wait(_PAUSE_S):
                self._take_turn()
        except Exception as error:
            self._failure = error

    def _take_turn(self) -> None:
        self._ask(Question(api_keys.API_VERSIONS, 2, {}))
        value = b"value %d" % len(self.acknowledged)
        produced = self._ask(produce(TOPIC, batch(value)))
        (result,) = produced.responses[0].partition_responses
        assert result.error_code == 0, result
        assert result.base_offset not in self.acknowledged
        self.acknowledged[result.base_offset] = value
        fetched = self._ask(fetch(TOPIC, result.base_offset, max_bytes=1000))
        (found,) = fetched.responses[0].partitions
        assert found.error_code == 0, found
        assert value in found.records

    def sweep(self) -> None:
        """Delete the topics of the others."""
        told = self._admin.raw_answer(api_keys.METADATA, 4, {"topics": None, "allow_auto_topic_creation": False})
        others = [each for each in told.topics if each.name != TOPIC]
        self.most_partitions = max(self.most_partitions, sum(len(each.partitions) for each in others))
        names = [each.name for each in others]
        for begin in range(0, len(names), _DELETED_AT_ONCE):
            self._admin.raw_answer(*delete(*names[begin : begin + _DELETED_AT_ONCE]))

    def stop(self) -> None:
        """Stop, and raise what has gone wrong."""
        self._is_over.set()
        self._thread.join()
        for each in (self._talk, self._admin):
            each.__exit__(None, None, None)
        if self._failure is not None:
            raise self._failure

    @property
    def is_well(self) -> bool:
        """Whether it got all its answers until now."""
        return self._failure is None

    def lost(self, data: DataDirectory) -> list[int]:
        """The offsets of records that were acknowledged, and are not in the directory."""
        log = data.log(TOPIC, 0)
        found: dict[int, bytes] = {}
        position = 0
        while position < log.end_offset:
            result: ReadResult = log.read(position, 1 << 20)
            for each in read_batches(result.records):
                found |= {record.offset: bytes(record.value or b"") for record in each}
            position = result.next_offset
        return [offset for offset, value in self.acknowledged.items() if found.get(offset) != value]
