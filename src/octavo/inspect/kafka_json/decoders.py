"""The decoders of records, by the options of `kafka-dump-log`, without the dashes before them.

Each loads the records of its topic when it is first used.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Final

from octavo.inspect.kafka_json.texts import RecordDecoder, Texts


def _offsets() -> RecordDecoder:
    from octavo.inspect.kafka_json.coordinator import coordinator_decoder
    from octavo.inspect.kafka_json.groups import group_value_json
    from octavo.schemas.consumer_offsets.serde import KINDS

    return coordinator_decoder(KINDS, group_value_json)


def _transactions() -> RecordDecoder:
    from octavo.inspect.kafka_json.coordinator import coordinator_decoder
    from octavo.schemas.transaction_state import KINDS

    return coordinator_decoder(KINDS)


def _share_groups() -> RecordDecoder:
    from octavo.inspect.kafka_json.coordinator import coordinator_decoder
    from octavo.schemas.share_group_state import KINDS

    return coordinator_decoder(KINDS)


def _cluster_metadata() -> RecordDecoder:
    from octavo.inspect.kafka_json.metadata import cluster_metadata

    return cluster_metadata


def _remote_log_metadata() -> RecordDecoder:
    from octavo.inspect.kafka_json.remote import remote_log_metadata

    return remote_log_metadata


def _on_demand(make: Callable[[], RecordDecoder]) -> RecordDecoder:
    made = cache(make)

    def decode(offset: int, key: bytes | None, value: bytes | None) -> Texts:
        return made()(offset, key, value)

    return decode


RECORD_DECODERS: Final[dict[str, RecordDecoder]] = {  # if several options are given, Kafka uses the first of these
    "offsets-decoder": _on_demand(_offsets),
    "transaction-log-decoder": _on_demand(_transactions),
    "cluster-metadata-decoder": _on_demand(_cluster_metadata),
    "remote-log-metadata-decoder": _on_demand(_remote_log_metadata),
    "share-group-state-decoder": _on_demand(_share_groups),
}
