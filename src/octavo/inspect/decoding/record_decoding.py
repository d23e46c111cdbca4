"""Which parts of the records of a file are decoded, and the JSON that they become."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from octavo.errors import FormatError
from octavo.inspect.decoding.value_formats import Decode, to_json
from octavo.inspect.kinds import Kind, kind_of
from octavo.log.names import AsideFolder, TopicPartition
from octavo.records import Record

_AT_ONCE: Final = 512  # records that are decoded together

INTERNAL_TOPICS: Final = frozenset(
    {"__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata", "__remote_log_metadata"}
)


class DecodedRecord(NamedTuple):
    """The JSON of a record's key and value as text; None where there is none, and then perhaps the reason."""

    key: str | None
    value: str | None
    error: str | None
    kind: str | None = None  # in internal topics: what Kafka calls such a record

    @property
    def members(self) -> str:
        """The members of a JSON object that say this, each after a comma."""
        text = f',"decodedKey":{self.key or "null"},"decodedValue":{self.value or "null"}'
        return text if self.error is None else f'{text},"decodeError":{to_json(self.error)}'

    def for_people(self) -> tuple[str | None, str | None]:
        """Return short texts of key and value, for a table: kind and fields of a record of an internal topic."""
        if self.kind is None:
            return self.key, self.value
        key, value = (None if text is None else _fields(text) for text in (self.key, self.value))
        return f"{self.kind} {key or ''}".rstrip(), value


NOT_DECODED: Final = DecodedRecord(None, None, None)


class RecordDecoding:
    """Decodes keys, values or both, each with the decoder of a format."""

    def __init__(self, key: Decode | None, value: Decode | None) -> None:
        self._key: Final = key
        self._value: Final = value

    def decode(self, keys: Sequence[bytes | None], values: Sequence[bytes | None]) -> list[DecodedRecord]:
        """Decode the records of a batch, or of many."""
        key_texts, key_errors = _texts(self._key, keys, "key")
        value_texts, value_errors = _texts(self._value, values, "value")
        return [
            DecodedRecord(key, value, "; ".join(filter(None, (key_error, value_error))) or None)
            for key, value, key_error, value_error in zip(key_texts, value_texts, key_errors, value_errors, strict=True)
        ]


class InternalDecoding(RecordDecoding):
    """Decodes the records of one of Kafka's internal topics."""

    def __init__(self, topic: str) -> None:
        from octavo.inspect.decoding.internal_topics import topic_decoder

        super().__init__(None, None)
        self._decode: Final = topic_decoder(topic)

    def decode(self, keys: Sequence[bytes | None], values: Sequence[bytes | None]) -> list[DecodedRecord]:
        """Decode the records of a batch, or of many."""
        found = (self._decode(key, value) for key, value in zip(keys, values, strict=True))
        return [DecodedRecord(_text(key), _text(value), error, kind) for key, value, error, kind in found]


def decoded_records(decoding: RecordDecoding, records: Iterable[Record]) -> Iterator[tuple[Record, DecodedRecord]]:
    """Yield records with what is decoded of them, many of which are decoded at a time.

    Raises `FormatError` where `records` does, after all records before that.
    """
    some: list[Record] = []
    try:
        for record in records:
            some.append(record)
            if len(some) == _AT_ONCE:
                yield from _decoded(decoding, some)
                some = []
    except FormatError:
        yield from _decoded(decoding, some)
        raise
    yield from _decoded(decoding, some)


def _decoded(decoding: RecordDecoding, records: list[Record]) -> Iterable[tuple[Record, DecodedRecord]]:
    decoded = decoding.decode([record.key for record in records], [record.value for record in records])
    return zip(records, decoded, strict=True)


def decoding_of(path: Path, chosen: RecordDecoding | None = None) -> RecordDecoding | None:
    """Return how the records of a file are decoded: as chosen, else by its topic if that is an internal one."""
    if chosen is not None:
        return chosen
    topic = _topic_of(path)
    return InternalDecoding(topic) if topic in INTERNAL_TOPICS else None


def _topic_of(path: Path) -> str | None:
    """Return the topic of a file of records, also if the file was renamed or its folder set aside."""
    match kind_of(path):
        case Kind.METADATA_SNAPSHOT:
            return "__cluster_metadata"
        case Kind.SEGMENT:
            folder = path.absolute().parent.name
            aside = AsideFolder.parse(folder)
            partition = TopicPartition.parse(folder) if aside is None else aside.partition
            return None if partition is None else partition.topic
        case _:
            return None


def _texts(
    decode: Decode | None, contents: Sequence[bytes | None], name: str
) -> tuple[list[str | None], list[str | None]]:
    if decode is None:
        return [None] * len(contents), [None] * len(contents)
    texts, errors = decode(contents)
    return texts, [None if error is None else f"{name}: {error}" for error in errors]


def _fields(text: str) -> str:
    data = json.loads(text)["data"]
    shown = ((name, value if isinstance(value, str) else to_json(value)) for name, value in data.items())
    return " ".join(f"{name}={value}" for name, value in shown)


def _text(node: Any) -> str | None:
    return None if node is None else to_json(node)
