"""Read and write Kafka's message formats, one record at a time or a million at once.

    read_batches     walk the batches of a buffer, and the records of a batch as objects
    BatchBuilder     build one batch from records
    to_arrow         read all records of a buffer as Arrow columns, in chunks
    ArrowDecoder     the same for many buffers, one after another
    from_arrow       write Arrow columns as batches
    convert          convert batches to another magic or codec
    read_control     decode a control record

The package uses no sockets, no clocks and no files, with one exception: the code that Numba compiles is cached in a
folder of the user (`octavo.records.kernels.compilation.cache`). That happens only once `to_arrow`, `from_arrow` or
`convert` have much to do. Importing the package imports neither pyarrow nor Numba; those three import what they
need on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from octavo.on_demand import on_demand
from octavo.records.batch import Batch
from octavo.records.builder import BatchBuilder, empty_batch
from octavo.records.control import (
    Control,
    ControlType,
    Endpoint,
    EndTransactionMarker,
    KRaftVersion,
    KRaftVoter,
    KRaftVoters,
    LeaderChange,
    QuorumVoter,
    SnapshotFooter,
    SnapshotHeader,
    UnknownControl,
    control_batch,
    end_transaction_marker,
    read_control,
    write_control,
)
from octavo.records.layout import Attributes, BatchHeader, Buffer, Codec, MessageV1, TimestampType
from octavo.records.partition import murmur2, partition_for_key
from octavo.records.reader import BatchReader, Damage, read_batches
from octavo.records.record import Header, Record
from octavo.records.sequence import decrement_sequence, increment_sequence
from octavo.records.v2 import HeaderLike

if TYPE_CHECKING:
    from octavo.records.arrow.decoder import ArrowDecoder, to_arrow
    from octavo.records.arrow.reader import ArrowReader
    from octavo.records.arrow.writer import from_arrow
    from octavo.records.conversion import Converted, Lost, convert

__all__ = [
    "read_batches",
    "BatchReader",
    "Damage",
    "Batch",
    "BatchHeader",
    "MessageV1",
    "Attributes",
    "Codec",
    "TimestampType",
    "Record",
    "Header",
    "HeaderLike",
    "Buffer",
    "BatchBuilder",
    "empty_batch",
    "to_arrow",
    "ArrowReader",
    "ArrowDecoder",
    "from_arrow",
    "convert",
    "Converted",
    "Lost",
    "read_control",
    "write_control",
    "control_batch",
    "end_transaction_marker",
    "Control",
    "ControlType",
    "EndTransactionMarker",
    "LeaderChange",
    "QuorumVoter",
    "SnapshotHeader",
    "SnapshotFooter",
    "KRaftVersion",
    "KRaftVoters",
    "KRaftVoter",
    "Endpoint",
    "UnknownControl",
    "murmur2",
    "partition_for_key",
    "increment_sequence",
    "decrement_sequence",
]

if not TYPE_CHECKING:  # otherwise type checkers would accept every name as exported
    __getattr__, __dir__ = on_demand(
        globals(),
        {
            "arrow.decoder": ("ArrowDecoder", "to_arrow"),
            "arrow.reader": ("ArrowReader",),
            "arrow.writer": ("from_arrow",),
            "conversion": ("Converted", "Lost", "convert"),
        },
    )
