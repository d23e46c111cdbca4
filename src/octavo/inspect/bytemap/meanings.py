"""Say what each field is for, in one sentence, and which role it has.

A name alone does not say which field is meant: batches, records and headers all have lengths and keys. So a field is
looked up by its own name and by the name of the group that it lies in.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Role(StrEnum):
    """What a field is for. Fields of the same role have the same colour."""

    GROUP = "group"
    OFFSET = "offset"  # offsets and positions
    LENGTH = "length"  # lengths and counts
    CONTROL = "control"  # magic, attributes, versions, checksums
    TIME = "time"
    PRODUCER = "producer"  # producers and leader epochs
    KEY = "key"
    VALUE = "value"
    PACKED = "packed"  # compressed bytes
    UNREAD = "unread"  # bytes that nobody reads, or that cannot be read


Meaning = tuple[Role, str]

_KEY_LENGTH: Final = (Role.LENGTH, "Bytes of the key; a negative number means that there is no key.")
_KEY: Final = (Role.KEY, "The key: it chooses the partition, and compaction keeps the last record of each key.")
_VALUE_LENGTH: Final = (
    Role.LENGTH,
    "Bytes of the value; a negative number means null, which tells compaction to forget the key.",
)
_VALUE: Final = (Role.VALUE, "The value: what the producer sent.")
_RECORD: Final = (Role.GROUP, "One record, with lengths in as few bytes as they need.")
_MESSAGE: Final = (Role.GROUP, "One message of the formats before 0.11.")
_NOT_SHOWN: Final = (Role.UNREAD, "Records that are not shown one by one. All of them are walked through.")
_UNREADABLE: Final = (Role.UNREAD, "Bytes that cannot be read as what they should be.")

_OF_A_MESSAGE: Final[dict[str, Meaning]] = {
    "offset": (Role.OFFSET, "The offset. Inside a wrapper of magic 1 it counts from the wrapper's first message."),
    "length": (Role.LENGTH, "Bytes that follow this field. The checksum does not cover it."),
    "crc": (Role.CONTROL, "CRC-32 of everything that follows it."),
    "magic": (Role.CONTROL, "The version of the format: 0 until 0.9, 1 for 0.10, which has timestamps."),
    "attributes": (Role.CONTROL, "The codec, and from magic 1 on the type of the timestamp."),
    "timestamp_ms": (Role.TIME, "Milliseconds since 1970: when the message was made, or appended."),
    "key_length": _KEY_LENGTH,
    "key": _KEY,
    "value_length": _VALUE_LENGTH,
    "value": _VALUE,
    "unread": (Role.UNREAD, "Bytes behind the last field. Nobody reads them."),
    "unreadable": _UNREADABLE,
}

_OF_AN_INDEX: Final[dict[str, Meaning]] = {
    "relative_offset": (Role.OFFSET, "An offset, counted from the one that the file is named after."),
    "position": (Role.OFFSET, "The byte of the segment file at which the batch begins."),
    "timestamp_ms": (Role.TIME, "The largest timestamp of the segment up to that offset."),
}
_OF_A_TRANSACTION: Final[dict[str, Meaning]] = {
    "version": (Role.CONTROL, "The version of the entry's format."),
    "producer_id": (Role.PRODUCER, "The producer whose transaction it was."),
    "first_offset": (Role.OFFSET, "The first offset of the transaction, which may be in an earlier segment."),
    "last_offset": (Role.OFFSET, "The offset of the marker that aborted it."),
    "last_stable_offset": (Role.OFFSET, "How far committed data could be read when the marker was written."),
}
_OF_A_PRODUCER: Final[dict[str, Meaning]] = {
    "producer_id": (Role.PRODUCER, "The producer, one that is idempotent or transactional."),
    "epoch": (Role.PRODUCER, "The producer's epoch: a later one fences it."),
    "last_sequence": (Role.PRODUCER, "The sequence number of its last record; -1 if there is none."),
    "last_offset": (Role.OFFSET, "The last offset of its last batch; -1 if there is none."),
    "offset_delta": (Role.OFFSET, "Last offset minus first offset of its last batch."),
    "timestamp_ms": (Role.TIME, "When it last wrote; a producer that is silent for long is forgotten."),
    "coordinator_epoch": (Role.PRODUCER, "The epoch of the transaction coordinator that wrote its last marker."),
    "txn_first_offset": (Role.OFFSET, "Where its open transaction begins; -1 if none is open."),
}

_MEANINGS: Final[dict[str, dict[str, Meaning]]] = {
    "": {
        "batch": (Role.GROUP, "Records that were appended, checked and compressed together."),
        "message": _MESSAGE,
        "wrapper": (Role.GROUP, "A message whose value is other messages, compressed."),
        "start": (Role.GROUP, "The fields before the entries."),
        "entry": (Role.GROUP, "One entry of an index; all of them are equally long."),
        "transaction": (Role.GROUP, "A transaction that was aborted by a marker in this segment."),
        "producer": (Role.GROUP, "What is known of one producer at the offset that the file is named after."),
        "entries": (Role.UNREAD, "Entries that are not shown one by one."),
        "version": (Role.CONTROL, "The version of the file's format."),
        "count": (Role.LENGTH, "How many lines follow."),
        "line": (Role.VALUE, "One setting, or a comment."),
        "epoch": (Role.VALUE, "A leader epoch, and the first offset that its leader wrote or would write."),
        "offset": (Role.VALUE, "A topic, a partition of it, and an offset."),
        "zeros": (
            Role.UNREAD,
            "Room that Kafka has set aside for what is to come. It is cut when the segment is sealed.",
        ),
        "rest": (Role.UNREAD, "Fewer bytes than an entry has."),
        "lines": (Role.UNREAD, "Lines that are not shown one by one."),
        "unreadable": _UNREADABLE,
    },
    "start": {
        "version": (Role.CONTROL, "The version of the file's format."),
        "crc": (Role.CONTROL, "CRC-32C of everything that follows it."),
        "entry_count": (Role.LENGTH, "How many entries follow."),
    },
    "entry": _OF_AN_INDEX,
    "transaction": _OF_A_TRANSACTION,
    "producer": _OF_A_PRODUCER,
    "batch": {
        "base_offset": (
            Role.OFFSET,
            "The first offset. The broker assigns it in place, so the checksum does not cover it.",
        ),
        "length": (Role.LENGTH, "Bytes that follow this field. The checksum does not cover it."),
        "leader_epoch": (
            Role.PRODUCER,
            "The epoch of the leader that appended the batch. A log is cut by it after an election.",
        ),
        "magic": (Role.CONTROL, "The version of the format; at this position in all of them."),
        "crc": (Role.CONTROL, "CRC-32C of everything that follows it."),
        "attributes": (
            Role.CONTROL,
            "Codec (3 bits), type of the timestamps, and whether it is transactional, a control batch, "
            "or has a delete horizon.",
        ),
        "last_offset_delta": (
            Role.OFFSET,
            "Last offset minus first. Compaction leaves it alone, so it is no count of records.",
        ),
        "base_timestamp_ms": (Role.TIME, "What the timestamps of the records are counted from."),
        "max_timestamp_ms": (Role.TIME, "The largest timestamp, or the time of the append."),
        "producer_id": (Role.PRODUCER, "Who sent the batch, if the producer is idempotent or transactional."),
        "producer_epoch": (Role.PRODUCER, "The producer's epoch: a later one fences it."),
        "base_sequence": (Role.PRODUCER, "The number of the first record among all that the producer sent here."),
        "record_count": (Role.LENGTH, "How many records the batch has. Compaction makes it smaller."),
        "records": (Role.PACKED, "All records, compressed as one stream."),
        "more records": _NOT_SHOWN,
        "record": _RECORD,
        "unread": (Role.UNREAD, "Bytes behind the last field. Nobody reads them."),
        "unreadable": _UNREADABLE,
    },
    "record": {
        "length": (Role.LENGTH, "Bytes of the record that follow this field."),
        "attributes": (Role.CONTROL, "Nothing yet: no version of Kafka uses it."),
        "timestamp_delta": (Role.TIME, "Milliseconds after the batch's base timestamp."),
        "offset_delta": (Role.OFFSET, "Offset minus the batch's base offset."),
        "key_length": _KEY_LENGTH,
        "key": _KEY,
        "value_length": _VALUE_LENGTH,
        "value": _VALUE,
        "header_count": (Role.LENGTH, "How many headers follow."),
        "more headers": (Role.UNREAD, "Headers that are not shown one by one. All of them are walked through."),
        "header": (Role.GROUP, "A name and a value that travel with the record."),
        "unreadable": _UNREADABLE,
    },
    "header": {
        "key_length": (Role.LENGTH, "Bytes of the header's name, which cannot be null."),
        "key": (Role.KEY, "The header's name."),
        "value_length": (Role.LENGTH, "Bytes of the header's value; a negative number means null."),
        "value": (Role.VALUE, "The header's value."),
    },
    "value": {  # of the end of a transaction
        "version": (Role.CONTROL, "The version of the control record's value."),
        "coordinator_epoch": (Role.PRODUCER, "The epoch of the transaction coordinator that wrote the marker."),
        "unread": (Role.UNREAD, "Bytes behind the last field. Nobody reads them."),
    },
    "key": {  # of a control record
        "version": (Role.CONTROL, "The version of the control record's key."),
        "type": (
            Role.CONTROL,
            "What the control record does: commit or abort a transaction, or a matter of the quorum.",
        ),
        "unread": (Role.UNREAD, "Bytes behind the type. Nobody reads them."),
    },
    "message": _OF_A_MESSAGE,
    "wrapper": _OF_A_MESSAGE
    | {
        "offset": (Role.OFFSET, "The offset of the last message inside."),
        "value": (Role.PACKED, "Other messages, compressed as one stream."),
        "message": _MESSAGE,
        "wrapper": (Role.GROUP, "A message that is called compressed, inside another. Kafka writes none."),
        "messages": (Role.PACKED, "The messages inside."),
        "more messages": _NOT_SHOWN,
        "unread": (Role.UNREAD, "A message that is not all there. Old brokers cut batches so; readers pass it over."),
    },
}


def meaning_of(group: str, name: str) -> Meaning:
    """Return the role and the meaning of a field by its name and that of its group, both without numbers."""
    return _MEANINGS.get(group, {}).get(name, (Role.UNREAD, ""))
