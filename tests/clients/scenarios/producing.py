"""Codecs, acknowledgements and idempotent producers."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Final, get_args

from tests.clients.driver import PATIENCE_S, Acks, ProduceSettings, Record
from tests.clients.features import Stage, feature
from tests.clients.stored import stored_batches

_GROUP: Final = "Producing"
RECORDS: Final = [Record(key=b"%d" % number, value=b"value " * 100) for number in range(50)]


def _contents(records: list[Record]) -> list[tuple[bytes | None, bytes | None]]:
    return [(record.key, record.value) for record in records]


def _produce_and_consume(stage: Stage, settings: ProduceSettings) -> None:
    topic = stage.new_topic()
    assert stage.client.produce(topic, RECORDS, settings) in (list(range(len(RECORDS))), [-1] * len(RECORDS))
    # Consumed first: without acknowledgements nobody else tells when they are there.
    consumed = list(stage.client.consume(topic, 0, "earliest", len(RECORDS), {}))
    assert [record.offset for record in consumed] == list(range(len(RECORDS)))
    assert _contents(consumed) == _contents(stage.stored()) == _contents(RECORDS)


def _add_codec(name: str) -> None:
    how = "that are not compressed" if name == "none" else f"compressed with {name}"

    @feature(_GROUP, f"codec {name}", f"Batches {how} are stored as they are, and consumed again.")
    def codec(stage: Stage) -> None:
        settings: ProduceSettings = {"compression": name}  # type: ignore[typeddict-item]  # one of the names below
        _produce_and_consume(stage, settings)
        batches = stored_batches(stage.broker.folder, stage.name)
        assert {batch.codec.name.lower() for batch in batches} == {name}


def _add_acks(acks: Acks) -> None:
    @feature(_GROUP, f"acks={acks}", f"Records produced with acks={acks} are there, in order.")
    def acknowledged(stage: Stage) -> None:
        _produce_and_consume(stage, {"acks": acks, "idempotence": False})


for _codec in ("none", "gzip", "snappy", "lz4", "zstd"):
    _add_codec(_codec)
for _acks in get_args(Acks):
    _add_acks(_acks)


@feature(_GROUP, "idempotence", "Batches of an idempotent producer have its id and sequence numbers without a gap.")
def idempotent(stage: Stage) -> None:
    topic = stage.new_topic()
    stage.client.produce(topic, RECORDS, {"idempotence": True, "acks": "all", "batch_bytes": 1000})
    batches = stored_batches(stage.broker.folder, topic)
    (producer_id,) = {batch.producer_id for batch in batches}
    assert producer_id >= 0
    sequences = [sequence for batch in batches for sequence in range(batch.base_sequence, batch.last_sequence + 1)]
    assert sequences == list(range(len(RECORDS)))
    assert _contents(stage.stored()) == _contents(RECORDS)


@feature(
    _GROUP,
    "idempotence over a kill",
    "The broker is killed (SIGKILL) after it appended a batch and before the producer heard of it, and started again: "
    "every record is there once, in order.",
)
def idempotent_over_a_kill(stage: Stage) -> None:
    stage = stage.strict()
    topic = stage.new_topic()
    stage.proxy.lose_answer(after=3)
    settings: ProduceSettings = {"idempotence": True, "acks": "all", "batch_bytes": 1000}
    with ThreadPoolExecutor(1) as threads:
        produced = threads.submit(stage.client.produce, topic, RECORDS, settings)
        try:
            assert stage.proxy.wait_until_lost(PATIENCE_S)
            stage.broker.kill()
            stage.broker.start()
        finally:
            stage.proxy.resume()
        produced.result()
    assert _contents(stage.stored()) == _contents(RECORDS)
