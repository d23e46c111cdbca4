"""Convert batches to other magics and codecs, and show what is lost."""

from __future__ import annotations

from octavo.cli.demo.samples import notebook_batch
from octavo.cli.demo.stage import Stage, table
from octavo.records import Codec, convert


def show(stage: Stage) -> None:
    """Convert one batch to older and newer magics, and to another codec."""
    stage.chapter("Convert: by Kafka's own rules, and what is lost is said")
    data = notebook_batch(Codec.ZSTD)
    drawn = table("from", "to", "bytes", "lost on the way", right=("bytes",))
    drawn.add_row("(built)", "magic 2, zstd", str(len(data)), "")
    lz4 = convert(data, codec=Codec.LZ4)
    drawn.add_row("magic 2, zstd", "magic 2, lz4", str(len(lz4.data)), str(lz4.lost))
    one = convert(lz4.data, magic=1)
    drawn.add_row("magic 2, lz4", "magic 1, lz4", str(len(one.data)), str(one.lost))
    zero = convert(one.data, magic=0, codec=Codec.NONE)
    drawn.add_row("magic 1, lz4", "magic 0, none", str(len(zero.data)), str(zero.lost))
    two = convert(zero.data, magic=2)
    drawn.add_row("magic 0, none", "magic 2, none", str(len(two.data)), str(two.lost))
    stage.show(drawn)
    stage.code("data, lost = convert(data, magic=1)")
