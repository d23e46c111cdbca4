"""The demo's records. Nothing depends on the clock or on chance, so that every run shows the same."""

from __future__ import annotations

from typing import Final

from octavo.records import BatchBuilder, Codec, Record, end_transaction_marker
from octavo.records.record import Header

TIME_MS: Final = 1_700_000_000_000
PRODUCER_ID: Final = 42
CODECS: Final = {
    0: (Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4),
    1: (Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4),
    2: tuple(Codec),
}

# From the third of Kafka's octavo notebooks, 1917: the sixteenth of what was later called the Zürau aphorisms.
CAGE: Final = "Ein Käfig ging einen Vogel suchen."


def orders(count: int, first: int = 0) -> list[Record]:
    """Make orders of a small stationery shop, one per second."""
    return [
        Record(
            offset=n,
            timestamp_ms=TIME_MS + 1000 * n,
            key=f"order-{n}".encode(),
            value=f'{{"order":{n},"item":"notebook","format":"octavo","pages":{80 + n % 3 * 16}}}'.encode(),
        )
        for n in range(first, first + count)
    ]


def build(magic: int, codec: Codec, records: list[Record], base_offset: int = 0) -> bytes:
    """Build one batch; for magic 0 and 1, messages."""
    builder = BatchBuilder(magic, codec=codec, base_offset=base_offset)
    for record in records:
        builder.append(record.key, record.value, timestamp_ms=record.timestamp_ms)
    return builder.build()


def notebook_batch(codec: Codec = Codec.NONE, base_offset: int = 1917) -> bytes:
    """Build a batch with a bit of everything: a header, a tombstone, a transactional producer."""
    builder = BatchBuilder(
        codec=codec,
        base_offset=base_offset,
        leader_epoch=8,
        producer_id=PRODUCER_ID,
        producer_epoch=0,
        base_sequence=0,
        transactional=True,
    )
    builder.append(b"no. 16", CAGE.encode(), timestamp_ms=TIME_MS, headers=[Header("lang", b"de")])
    builder.append(b"no. 17", None, timestamp_ms=TIME_MS + 1000)
    return builder.build()


def segment() -> list[bytes]:
    """Build the batches of a log that has every format."""
    batches: list[bytes] = []
    offset = 0
    for magic, codecs in CODECS.items():
        for codec in codecs:
            batches.append(build(magic, codec, orders(3), offset))
            offset += 3
    batches.append(notebook_batch(Codec.ZSTD, offset))
    batches.append(
        end_transaction_marker(
            True,
            offset=offset + 2,
            timestamp_ms=TIME_MS + 2000,
            producer_id=PRODUCER_ID,
            producer_epoch=0,
            coordinator_epoch=1,
            leader_epoch=8,
        )
    )
    return batches
