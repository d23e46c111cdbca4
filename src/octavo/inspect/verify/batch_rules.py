"""The rules for batches, records and messages, and which fault of the kernels breaks which."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from octavo.inspect.verify.problem import Problem, Rule
from octavo.inspect.verify.repairs import READABLE, SALVAGE, SALVAGE_MESSAGES
from octavo.records.kernels.verification import faults

Numbers = Callable[[int, int], str]  # the text for the two numbers that come with a fault


class Fault(NamedTuple):
    """A rule that a kernel checks."""

    rule: Rule
    numbers: Numbers

    def at(self, file: str, position: int, offset: int | None, first: int, second: int) -> Problem:
        """Return the problem for what the kernel has found."""
        return self.rule.broken(file, position=position, offset=offset, found=self.numbers(first, second))


def _batch(name: str, means: str, numbers: Numbers, repair: str = SALVAGE) -> Fault:
    return Fault(Rule.declare(name, "batch", means=means, repair=repair), numbers)


def _record(name: str, means: str, repair: str = SALVAGE) -> Fault:
    return Fault(Rule.declare(name, "record", means=means, repair=repair), _place)


def _message(name: str, means: str, numbers: Numbers, repair: str = SALVAGE_MESSAGES) -> Fault:
    return Fault(Rule.declare(name, "message", means=means, repair=repair), numbers)


def _nothing(_first: int, _second: int) -> str:
    return ""


def _number(text: str) -> Numbers:
    return lambda first, _: text.format(first)


def _both(text: str) -> Numbers:
    return lambda first, second: text.format(first, second)


def _place(number: int, at: int) -> str:
    return f"record {number} of the batch, byte {at} of its records"


FAULTS: Final[dict[int, Fault]] = {
    faults.LENGTH: _batch(
        "batch-length",
        "The length of a batch is smaller than any batch, or leads beyond the end of its file: readers stop here.",
        _number("length {}"),
    ),
    faults.MAGIC: _batch(
        "batch-magic", "The magic byte is none of 0, 1 and 2: no reader knows this format.", _number("magic {}")
    ),
    faults.CRC: _batch(
        "batch-crc",
        "The checksum of a batch does not match its bytes: consumers refuse the batch and stop.",
        lambda stored, computed: f"stored {stored:08x}, computed {computed:08x}",
    ),
    faults.OFFSET: _batch(
        "batch-offset", "The offset of a batch is negative, or too high for its records.", _number("base offset {}")
    ),
    faults.ORDER: _batch(
        "batch-offset-order",
        "The offsets of a batch do not follow those of the batch before: readers skip records or get them twice.",
        _both("{1} after {0}"),
    ),
    faults.EPOCH: _batch(
        "batch-leader-epoch", "The leader epoch of a batch is negative, and not -1 for none.", _number("epoch {}")
    ),
    faults.EPOCH_ORDER: _batch(
        "batch-leader-epoch-order",
        "The leader epoch is lower after a batch with a higher one: a follower would truncate at the wrong offset.",
        _both("epoch {1} after {0}"),
    ),
    faults.GAP: _batch(
        "batch-gap",
        "Offsets are missing in the log of the cluster's metadata, which is never compacted: records were lost.",
        _both("offset {1} after {0}"),
        "Remove the folder's contents on this node, so that the leader of the quorum sends everything again.",
    ),
    faults.ATTRIBUTES: _batch(
        "batch-attributes",
        "Bits of the attributes are set that have no meaning: a writer of another format was here.",
        lambda attributes, _: f"attributes {attributes & 0xFFFF:#06x}",
        READABLE,
    ),
    faults.CODEC: _batch(
        "batch-codec", "The codec is none that Kafka has for this magic: nobody can decompress it.", _number("codec {}")
    ),
    faults.LAST_OFFSET_DELTA: _batch(
        "batch-last-offset-delta", "The last offset of a batch is lower than its first one.", _number("delta {}")
    ),
    faults.COUNT: _batch(
        "batch-count", "A batch counts fewer than no records, or more than it has offsets.", _number("{} records")
    ),
    faults.EMPTY: _batch(
        "batch-not-empty", "A batch counts no records, but bytes follow its header.", _number("{} bytes")
    ),
    faults.TIMESTAMP: _batch(
        "batch-timestamp",
        "The largest timestamp is negative, and not -1 for none.",
        _number("timestamp {}"),
        repair=READABLE,
    ),
    faults.MAX_TIMESTAMP: _batch(
        "batch-max-timestamp",
        "The largest timestamp in the header is not that of the records: lookups by time and retention go wrong.",
        _both("stored {}, computed {}"),
        repair=READABLE,
    ),
    faults.HORIZON: _batch(
        "batch-delete-horizon",
        "A batch is marked to have a delete horizon, but has no time for it or no records.",
        _number("horizon {}"),
        repair=READABLE,
    ),
    faults.PRODUCER: _batch(
        "batch-producer",
        "A producer id is lower than -1, or has no epoch.",
        _both("producer {}, epoch {}"),
        repair=READABLE,
    ),
    faults.SEQUENCE: _batch(
        "batch-sequence",
        "A batch of an idempotent producer has no sequence number, or a control batch has one.",
        _number("sequence {}"),
        repair=READABLE,
    ),
    faults.TRANSACTIONAL: _batch(
        "batch-transactional", "A batch belongs to a transaction, but to no producer.", _nothing, repair=READABLE
    ),
    faults.CONTROL_COUNT: _batch(
        "control-count", "The end of a transaction is one record, and this batch has more.", _number("{} records")
    ),
    faults.CONTROL_KEY: _batch(
        "control-key", "The key of a control record is too short, or its version negative.", _number("{} bytes")
    ),
    faults.CONTROL_TYPE: _batch(
        "control-type",
        "A control record has an unknown type, or one for the quorum in a transaction, or the other way round.",
        _number("type {}"),
    ),
    faults.CONTROL_VALUE: _batch(
        "control-value", "The value of a control record is missing, too short, or of no version.", _number("{} bytes")
    ),
    faults.CONTROL_CODEC: _batch(
        "control-codec", "A control batch is compressed, which brokers never do.", _number("codec {}")
    ),
    faults.VARINT: _record("record-varint", "A number does not end inside its record: the record cannot be read."),
    faults.RECORD_LENGTH: _record(
        "record-length", "The length of a record is too small, or passes the end of its batch."
    ),
    faults.RECORD_ATTRIBUTES: _record(
        "record-attributes", "The attributes of a record are not zero, and have no use.", repair=READABLE
    ),
    faults.RECORD_TIMESTAMP: _record(
        "record-timestamp",
        "The timestamp of a record is negative, and not -1 for none: compaction would fail.",
        repair=READABLE,
    ),
    faults.OFFSET_DELTA: _record(
        "record-offset", "The offset of a record is not after the one before it, or beyond those of its batch."
    ),
    faults.KEY_LENGTH: _record("record-key-length", "The length of a key passes the end of its record."),
    faults.VALUE_LENGTH: _record("record-value-length", "The length of a value passes the end of its record."),
    faults.NULL_LENGTH: _record("record-null", "A length is negative, and not -1 for null."),
    faults.HEADER_COUNT: _record(
        "record-header-count", "The count of headers is negative, or more than the record has room for."
    ),
    faults.HEADER_KEY: _record(
        "record-header-key", "The length of a header's key is negative, or passes the end of its record."
    ),
    faults.HEADER_VALUE: _record("record-header-value", "The length of a header's value passes the end of its record."),
    faults.NOT_FILLED: _record("record-not-filled", "The fields of a record end before its length says."),
    faults.MISSING: _record("records-missing", "A batch has fewer records than it counts."),
    faults.LEFT_OVER: _record("records-left-over", "Bytes are left after the last record that a batch counts."),
    faults.MESSAGE_ATTRIBUTES: _message(
        "message-attributes",
        "Bits of an old message's attributes are set that have no meaning.",
        _number("{:#04x}"),
        repair=READABLE,
    ),
    faults.MESSAGE_TIMESTAMP: _message(
        "message-timestamp",
        "The timestamp of an old message is negative, and not -1 for none.",
        _number("{}"),
        repair=READABLE,
    ),
    faults.MESSAGE_KEY: _message(
        "message-key-length", "The length of an old message's key passes its end.", _number("length {}")
    ),
    faults.MESSAGE_VALUE: _message(
        "message-value-length", "The length of an old message's value passes its end.", _number("length {}")
    ),
    faults.MESSAGE_NOT_FILLED: _message(
        "message-not-filled", "Bytes are left after the value of an old message.", _number("{} bytes")
    ),
    faults.WRAPPER_NULL: _message("wrapper-null", "A compressed message of the old format has no value.", _nothing),
    faults.WRAPPER_EMPTY: _message("wrapper-empty", "No message is inside a compressed message.", _nothing),
    faults.WRAPPER_NESTED: _message(
        "wrapper-nested", "A message inside a compressed message is itself compressed.", _number("codec {}")
    ),
    faults.WRAPPER_OFFSET: _message(
        "wrapper-offset",
        "The offset of a compressed message is not that of the last message inside: readers get wrong offsets.",
        _number("last offset inside {}"),
    ),
    faults.WRAPPER_TIMESTAMP: _message(
        "wrapper-timestamp",
        "A timestamp inside a compressed message is larger than its own: lookups by time and retention go wrong.",
        _number("{}"),
        repair=READABLE,
    ),
    faults.INNER_LENGTH: _message(
        "inner-length", "The length of a message inside a compressed one is wrong.", _number("length {}")
    ),
    faults.INNER_MAGIC: _message(
        "inner-magic", "The magic byte inside a compressed message is neither 0 nor 1.", _number("magic {}")
    ),
    faults.INNER_CRC: _message(
        "inner-crc",
        "The checksum of a message inside a compressed one does not match its bytes: consumers refuse it.",
        _number("stored {:08x}"),
    ),
    faults.INNER_ORDER: _message(
        "inner-offset-order", "The offsets inside a compressed message do not increase.", _number("offset {}")
    ),
}

COMPRESSION: Final = Rule.declare(
    "batch-compression",
    "batch",
    means="The compressed records of a batch do not decompress: consumers fail here.",
    repair=SALVAGE,
)
TOO_LARGE: Final = Rule.declare(
    "batch-size",
    "batch",
    means="A batch, or what it decompresses to, takes more than 256 MiB: its records were not checked.",
    repair="Read the batch with a consumer that has enough memory; keep it if that succeeds.",
)
SEQUENCE_ORDER: Final = Rule.declare(
    "batch-sequence-order",
    "batch",
    means="A sequence number of a producer goes back: the log holds records of an idempotent producer twice.",
    repair="Nothing on the disk has to be repaired: drop the duplicates where the records are used.",
)
