"""Build the same records in every format that Kafka ever stored."""

from __future__ import annotations

from typing import Final

from octavo.cli.demo.samples import CODECS, build, orders
from octavo.cli.demo.stage import Stage, table
from octavo.records import Codec

COUNT: Final = 100
_SINCE: Final = {0: "Kafka 0.8, 2013", 1: "Kafka 0.10, 2016", 2: "Kafka 0.11, 2017"}


def show(stage: Stage) -> None:
    """Build the same records in all formats, and compare their sizes."""
    stage.chapter("Build: the same records in every format")
    records = orders(COUNT)
    size = sum(len(record.key or b"") + len(record.value or b"") for record in records)
    stage.say(f"{COUNT} orders, {size:,} bytes of keys and values, take so many bytes in each format:")
    names = [codec.name.lower() for codec in Codec]
    drawn = table("magic", "since", *names, right=tuple(names))
    for magic, since in _SINCE.items():
        sizes = [len(build(magic, codec, records)) if codec in CODECS[magic] else None for codec in Codec]
        drawn.add_row(str(magic), since, *("-" if size is None else f"{size:,}" for size in sizes))
    stage.show(drawn)
    stage.code(
        "builder = BatchBuilder(magic=2, codec=Codec.ZSTD)\n"
        'builder.append(b"order-0", b"...", timestamp_ms=1_700_000_000_000)\n'
        "data = builder.build()"
    )
