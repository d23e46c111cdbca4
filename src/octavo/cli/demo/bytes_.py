"""Show one batch byte by byte, and as records."""

from __future__ import annotations

from octavo.cli.bytemap import draw
from octavo.cli.demo.samples import notebook_batch
from octavo.cli.demo.stage import Stage, table
from octavo.inspect import explain
from octavo.inspect.descriptions import time_of
from octavo.records import read_batches


def show(stage: Stage) -> None:
    """Draw the map of a batch, and decode its records."""
    data = notebook_batch()
    stage.chapter("Look: every byte of a batch has a name")
    stage.say(f"Two records of a transaction, {len(data)} bytes:")
    stage.show_wide(draw(explain(data), bytes_a_line=16 if stage.is_wide else 8))
    stage.chapter("Decode: the same bytes as records")
    stage.code("for batch in read_batches(data):\n    for record in batch:\n        print(record)")
    drawn = table("offset", "timestamp (UTC)", "key", "value", "headers", "sequence", right=("offset", "sequence"))
    drawn.columns[1].no_wrap = True
    for batch in read_batches(data):
        for record in batch:
            drawn.add_row(
                str(record.offset),
                time_of(record.timestamp_ms),
                _text(record.key),
                _text(record.value),
                ", ".join(f"{key}={_text(value)}" for key, value in record.headers) or "-",
                str(record.sequence),
            )
    stage.show(drawn)
    stage.say(
        "No value at all is a tombstone: it tells compaction to forget the key. An empty value would be another thing."
    )


def _text(data: bytes | None) -> str:
    return "[dim]null[/]" if data is None else data.decode()
