"""Show how damage is reported, and how reading continues after it."""

from __future__ import annotations

from typing import Final

from rich.table import Table
from rich.text import Text

from octavo.cli.bytemap import draw
from octavo.cli.demo.samples import build, orders
from octavo.cli.demo.stage import Stage, table
from octavo.errors import FormatError
from octavo.inspect import explain
from octavo.records import BatchReader, Codec, read_batches

DAMAGED: Final = 2  # the index of the damaged batch: the third one
BATCHES: Final = 6


def show(stage: Stage) -> None:
    """Read a damaged log, first up to the damage, then with `resync` past it."""
    stage.chapter("Damage: named where it stands, and got over")
    data, position = damaged_log()
    stage.say(
        f"A log of {BATCHES} batches. In the third a bit has flipped, in the last the writer died. "
        "Reading stops at the damage:"
    )
    stage.code("for batch in read_batches(log): ...")
    try:
        for _ in read_batches(data):
            pass
    except FormatError as error:
        stage.show(f"[bold red]{type(error).__name__}[/] {error}")
    stage.say("The map shows it too:")
    stage.show_wide(draw(explain(data, position)[:7], bytes_a_line=8))
    stage.say("With [bold]resync[/] the walk goes on with the next batch whose checksum is right:")
    stage.code("reader = read_batches(log, resync=True)")
    stage.show(_walk(data))


def damaged_log() -> tuple[bytes, int]:
    """Build a log with a damaged batch and an incomplete last one. Return it with the position of the damaged batch."""
    batches = [build(2, Codec.LZ4, orders(50), 50 * n) for n in range(BATCHES)]
    position = sum(map(len, batches[:DAMAGED]))
    data = bytearray(b"".join(batches))
    data[position + 100] ^= 0x10
    return bytes(data[:-60]), position


def _walk(data: bytes) -> Table:
    reader = read_batches(data, resync=True)
    drawn = table("at byte", "bytes", "what", right=("at byte", "bytes"))
    told = 0
    for batch in reader:
        told = _tell_damage(drawn, reader, told)
        what = f"offsets {batch.base_offset} to {batch.last_offset}"
        drawn.add_row(str(batch.position), str(batch.size), Text(f"{what}, {batch.count} records", style="green"))
    _tell_damage(drawn, reader, told)
    if reader.torn_tail is not None:
        text = Text("a torn tail, no error: the last batch is not all there", style="yellow")
        drawn.add_row(str(reader.torn_tail), str(len(data) - reader.torn_tail), text)
    return drawn


def _tell_damage(drawn: Table, reader: BatchReader, told: int) -> int:
    for position, size, error in reader.damage[told:]:
        drawn.add_row(str(position), str(size), Text(f"passed over: {error.rule}", style="bold red"))
    return len(reader.damage)
