"""The matrix as a page: docs/compatibility.md."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Final

from tests.clients.cells import Cell
from tests.clients.clients import CLIENTS
from tests.clients.features import FEATURES

DOCUMENT: Final = Path(__file__).parents[2] / "docs" / "compatibility.md"
_HEAD: Final = """\
# Which clients work with the broker

Each cell is a test, which has the client do what the row says, and then reads the broker's files or asks another client
to see that it was done. The same tests pass against Apache Kafka 4.3, but for what is named at the end.
`python -m tests.clients` writes this page.

**yes**: it works. A number: it does not, for the reason at the end. A number in *italics* is Octavo's fault, the others
are the client's own.
"""
_NOT_SERVED: Final = """\
## What is not served

- **Share groups** (`ShareConsumer` of confluent-kafka and of Java, `kafka-share-groups`): ShareGroupHeartbeat,
  ShareGroupDescribe, ShareFetch, ShareAcknowledge and the APIs for their offsets are not in the answer to ApiVersions.
  The `ShareConsumer` of confluent-kafka says nothing of it: `poll` gives an empty list again and again, and the broker
  cannot tell it from any other client. Use a `Consumer` with a `group.id`.
- **Streams groups** (`group.protocol=streams`, `kafka-streams-groups`): StreamsGroupHeartbeat and StreamsGroupDescribe
  are not in it either. Kafka Streams runs with its classic protocol, which is its default.
"""


def render() -> str:
    """Return the page."""
    return "\n".join([_HEAD, *_versions(), "", *_matrix(), ""])


def _versions() -> Iterator[str]:
    yield "| client | version |"
    yield "|---|---|"
    for client in CLIENTS.values():
        yield f"| {client.name} | {client.version()} |"


def _matrix() -> Iterator[str]:
    notes: dict[str, int] = {}
    for group, rows in groupby(FEATURES.values(), key=lambda row: row.group):
        yield f"## {group}"
        yield ""
        features = list(rows)
        yield f"| | {' | '.join(CLIENTS)} |"
        yield f"|---|{'---|' * len(CLIENTS)}"
        for feature in features:
            cells = [_cell(Cell(client, feature), notes) for client in CLIENTS.values()]
            yield f"| {feature.name} | {' | '.join(cells)} |"
        yield ""
        yield from (f"- **{feature.name}**: {feature.meaning}" for feature in features)
        yield ""
    yield "## What does not work"
    yield ""
    for note, number in notes.items():
        yield f"{number}. {note}"
    yield ""
    yield from _NOT_SERVED.splitlines()
    yield ""
    yield "## What may fail with Apache Kafka"
    yield ""
    for client in CLIENTS.values():
        yield from (f"- {client.name}, {name}: {reason}" for name, reason in client.not_on_kafka.items())


def _cell(cell: Cell, notes: dict[str, int]) -> str:
    if cell.excuse is None:
        return "yes"
    number = notes.setdefault(cell.excuse, len(notes) + 1)
    return f"*{number}*" if cell.is_missing else str(number)
