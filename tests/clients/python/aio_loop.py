"""The event loop of aiokafka, which runs in a thread, and its records: `Loop`, `consumed`."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

from aiokafka import ConsumerRecord
from aiokafka.errors import KafkaError

from tests.clients.driver import PATIENCE_S, ClientError, Record

_Result = TypeVar("_Result")


class Loop:
    """An event loop in a thread."""

    def __init__(self) -> None:
        self._loop: Final = asyncio.new_event_loop()
        self._thread: Final = threading.Thread(target=self._loop.run_forever)
        self._thread.start()

    def run(self, doing: Coroutine[Any, Any, _Result]) -> _Result:
        """Wait for something, and raise errors as all drivers do."""

        async def in_time() -> _Result:
            return await asyncio.wait_for(doing, PATIENCE_S)

        try:
            return asyncio.run_coroutine_threadsafe(in_time(), self._loop).result()
        except KafkaError as error:
            code = getattr(error, "errno", -1)  # its own errors have none
            raise ClientError(code if code >= 0 else None, repr(error)) from error
        except TimeoutError as error:
            raise ClientError(None, f"nothing came of it within {PATIENCE_S} s") from error

    def begin(self, doing: Coroutine[Any, Any, object]) -> None:
        """Have something done on the side."""
        asyncio.run_coroutine_threadsafe(doing, self._loop)

    def close(self) -> None:
        """End the thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


def consumed(record: ConsumerRecord) -> Record:
    """Return a record that aiokafka consumed."""
    return Record(
        key=record.key,
        value=record.value,
        headers=tuple(record.headers),
        timestamp_ms=record.timestamp,
        partition=record.partition,
        offset=record.offset,
        timestamp_type="LogAppendTime" if record.timestamp_type else "CreateTime",
    )
