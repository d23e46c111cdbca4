"""What a reader of committed data asks, and what it sees: `read_ask` and `shown`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from octavo.broker.wire.api_keys import FETCH
from octavo.broker.wire.messages import Struct
from octavo.client.receiving import _Aborted  # what a client shows of aborted transactions is tested with it
from octavo.records.reader import read_batches
from tests.simulation.wire import Ask


def read_ask(partitions: Mapping[str, int]) -> Ask:
    """Return the request for everything that is committed in some topics, given how many partitions they have."""
    topics = [
        {"topic": name, "partitions": [_wanted(each) for each in range(count)]} for name, count in partitions.items()
    ]
    content = {
        "replica_id": -1,
        "max_wait_ms": 0,
        "min_bytes": 1,
        "max_bytes": 1 << 20,
        "isolation_level": 1,
        "session_id": 0,
        "session_epoch": -1,
        "topics": topics,
        "forgotten_topics_data": [],
        "rack_id": "",
    }
    return Ask(FETCH, 12, content)


def _wanted(partition: int) -> dict[str, int]:
    return {"partition": partition, "fetch_offset": 0, "log_start_offset": -1, "partition_max_bytes": 1 << 20}


def shown(part: Struct) -> Iterator[str]:
    """Return the values of a fetched partition that a client shows."""
    aborted = _Aborted()
    aborted.expect(part.aborted_transactions or ())
    for batch in read_batches(part.records or b""):
        if aborted.shows(batch):
            for record in batch:
                yield (record.value or b"").decode()
