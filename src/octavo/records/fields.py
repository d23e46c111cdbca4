"""Check what a caller puts into a batch: the rules of Kafka's builder, and the ranges of the fields."""

from __future__ import annotations

from octavo.choices import chosen
from octavo.errors import FormatError, InvalidInput
from octavo.records.control_key import ControlType, read_control_type
from octavo.records.layout import (
    CODEC_WORDS,
    MAX_INT16,
    MAX_INT32,
    MAX_INT64,
    MAX_SEQUENCE,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    TIMESTAMP_TYPE_WORDS,
    Buffer,
    Codec,
    TimestampType,
)


def codec_of(given: Codec | str) -> Codec:
    """Return the codec that a caller means. Raises `InvalidInput`."""
    return chosen("codec", given, Codec, CODEC_WORDS)


def timestamp_type_of(given: TimestampType | str) -> TimestampType:
    """Return the type of timestamps that a caller means. Raises `InvalidInput`."""
    return chosen("timestamp_type", given, TimestampType, TIMESTAMP_TYPE_WORDS)


def bytes_of(what: str, content: Buffer | None) -> Buffer | None:
    """Return `content` in a form whose `len` is its number of bytes, whatever the size of its items.

    Copies only content that is not laid out as plain bytes. Raises `InvalidInput` if `content` is not bytes-like.
    """
    if content is None or isinstance(content, (bytes, bytearray)):
        return content
    try:
        view = memoryview(content)
    except TypeError:
        raise InvalidInput(f"{what} must be bytes or None, not {type(content).__name__}") from None
    return view if view.format == "B" and view.ndim == 1 and view.contiguous else view.tobytes()


def check_range(name: str, number: int, lowest: int, highest: int) -> None:
    """Raises `InvalidInput` if a field is outside its range."""
    if not lowest <= number <= highest:
        raise InvalidInput(f"{name} is {number}, it must lie between {lowest} and {highest}")


def check_fields(
    leader_epoch: int, producer_id: int, producer_epoch: int, base_sequence: int, transactional: bool, control: bool
) -> None:
    """Raises `InvalidInput` if fields of a batch of magic 2 are out of range or contradict each other."""
    check_range("leader_epoch", leader_epoch, NO_LEADER_EPOCH, MAX_INT32)
    check_range("producer_id", producer_id, NO_PRODUCER_ID, MAX_INT64)
    check_range("producer_epoch", producer_epoch, NO_PRODUCER_EPOCH, MAX_INT16)
    check_range("base_sequence", base_sequence, NO_SEQUENCE, MAX_SEQUENCE)
    if producer_id == NO_PRODUCER_ID:
        if transactional:
            raise InvalidInput("a transactional batch needs a producer id")
        return
    if producer_epoch == NO_PRODUCER_EPOCH:
        raise InvalidInput("a producer id needs a producer epoch")
    if base_sequence == NO_SEQUENCE and not control:
        raise InvalidInput("a producer's records need a sequence number")


def check_control_key(key: Buffer | None) -> None:
    """Raises `InvalidInput` if `key` is not the key of a control record of a known type."""
    try:
        type_id = read_control_type(key)
    except FormatError as error:
        raise InvalidInput(error.rule) from None
    if ControlType(type_id) == ControlType.UNKNOWN:
        raise InvalidInput(f"there is no control record of type {type_id}")
