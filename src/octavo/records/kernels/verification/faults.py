"""What can be wrong with a batch, as numbers. `octavo.inspect.verify` has a rule with a name for each."""

from __future__ import annotations

OK = 0

# Batches of any magic.
LENGTH = 1  # the length field is too small for any batch, or for one of magic 2
MAGIC = 2
CRC = 3  # (stored, computed)
OFFSET = 4  # negative, or the last offset wraps around
ORDER = 5  # (last offset before it)
EPOCH = 6
EPOCH_ORDER = 7  # (epoch before it)
GAP = 8  # (last offset before it)

# Headers of magic 2.
ATTRIBUTES = 10  # (attributes)
CODEC = 11  # (codec)
LAST_OFFSET_DELTA = 12  # (delta)
COUNT = 13  # (count, offsets)
EMPTY = 14  # (bytes after the header)
TIMESTAMP = 15  # (largest timestamp)
MAX_TIMESTAMP = 16  # (stored, computed)
HORIZON = 17  # (base timestamp)
PRODUCER = 18  # (producer id, epoch)
SEQUENCE = 19  # (sequence)
TRANSACTIONAL = 20
CONTROL_COUNT = 21  # (count)
CONTROL_KEY = 22
CONTROL_TYPE = 23  # (type)
CONTROL_VALUE = 24  # (type, length of the value)
CONTROL_CODEC = 25  # (codec)

# Records of magic 2. Each comes with the record's place among the decompressed bytes, and its number.
VARINT = 30
RECORD_LENGTH = 31
RECORD_ATTRIBUTES = 32
RECORD_TIMESTAMP = 33
OFFSET_DELTA = 34
KEY_LENGTH = 35
VALUE_LENGTH = 36
NULL_LENGTH = 37
HEADER_COUNT = 38
HEADER_KEY = 39
HEADER_VALUE = 40
NOT_FILLED = 41
MISSING = 42
LEFT_OVER = 43

# Messages of magic 0 and 1.
MESSAGE_ATTRIBUTES = 50  # (attributes)
MESSAGE_TIMESTAMP = 51  # (timestamp)
MESSAGE_KEY = 52
MESSAGE_VALUE = 53
MESSAGE_NOT_FILLED = 54
WRAPPER_NULL = 55
WRAPPER_EMPTY = 56
WRAPPER_NESTED = 57
WRAPPER_OFFSET = 58  # (last inner offset)
WRAPPER_TIMESTAMP = 59  # (largest inner timestamp)
INNER_LENGTH = 60
INNER_MAGIC = 61
INNER_CRC = 62
INNER_ORDER = 63
