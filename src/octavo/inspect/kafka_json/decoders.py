"""The decoders of records, by the options of `kafka-dump-log`, without the dashes before them."""

from __future__ import annotations

from typing import Final

from octavo.inspect.kafka_json.coordinator import coordinator_decoder, group_value_json
from octavo.inspect.kafka_json.framed import cluster_metadata, remote_log_metadata
from octavo.inspect.kafka_json.texts import RecordDecoder
from octavo.schemas.consumer_offsets.serde import KINDS as GROUP_KINDS
from octavo.schemas.share_group_state import KINDS as SHARE_KINDS
from octavo.schemas.transaction_state import KINDS as TRANSACTION_KINDS

RECORD_DECODERS: Final[dict[str, RecordDecoder]] = {  # if several options are given, Kafka uses the first of these
    "offsets-decoder": coordinator_decoder(GROUP_KINDS, group_value_json),
    "transaction-log-decoder": coordinator_decoder(TRANSACTION_KINDS),
    "cluster-metadata-decoder": cluster_metadata,
    "remote-log-metadata-decoder": remote_log_metadata,
    "share-group-state-decoder": coordinator_decoder(SHARE_KINDS),
}
