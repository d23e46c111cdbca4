"""The options of Kafka's `kafka-dump-log`."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum
from typing import Final

from octavo.records.layout import MAX_INT32

STRING_DECODER: Final = "org.apache.kafka.tools.api.StringDecoder"


class RecordDecoder(Enum):
    """Kafka's internal topics, by the option that decodes their records. If several are given, the first one counts."""

    OFFSETS = "offsets-decoder"
    TRANSACTION_LOG = "transaction-log-decoder"
    CLUSTER_METADATA = "cluster-metadata-decoder"
    REMOTE_LOG_METADATA = "remote-log-metadata-decoder"
    SHARE_GROUP_STATE = "share-group-state-decoder"


@dataclass(frozen=True, slots=True, kw_only=True)
class TextOptions:
    """The options, under Kafka's names, with Kafka's defaults."""

    print_data_log: bool = False
    deep_iteration: bool = False
    skip_record_metadata: bool = False
    verify_index_only: bool = False
    index_sanity_check: bool = False
    max_bytes: int = MAX_INT32
    max_message_size: int = 5 << 20
    decoders: Collection[RecordDecoder] = ()
    key_decoder_class: str | None = None  # None if the option was not given, empty if it was given without a class
    value_decoder_class: str | None = None

    @property
    def decoder(self) -> RecordDecoder | None:
        """The decoder that is used."""
        return next((decoder for decoder in RecordDecoder if decoder in self.decoders), None)

    @property
    def prints_data(self) -> bool:
        """Whether keys and values are printed: any option that decodes them implies it."""
        return (
            self.print_data_log
            or bool(self.decoders)
            or self.key_decoder_class is not None
            or self.value_decoder_class is not None
        )

    @property
    def iterates_deeply(self) -> bool:
        """Whether records are read, and not only the headers of batches."""
        return self.deep_iteration or self.prints_data
