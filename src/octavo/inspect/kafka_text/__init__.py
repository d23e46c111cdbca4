"""Print files as Apache Kafka 4.3's `kafka-dump-log` prints them, byte for byte, standard error included.

    print_files    print several files; the one function that the command calls
    TextOptions    the options of Kafka's tool
    RecordDecoder  which of Kafka's internal topics the records are from

What differs, and why, is listed in `docs/dump.md`.
"""

from __future__ import annotations

from octavo.inspect.kafka_text.files import print_files
from octavo.inspect.kafka_text.options import RecordDecoder, TextOptions

__all__ = ["RecordDecoder", "TextOptions", "print_files"]
