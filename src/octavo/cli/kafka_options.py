"""The options of Kafka's `kafka-dump-log`, under their own names."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from octavo.inspect.kafka_text import TextOptions


def add_kafka_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of Kafka's tool to the parser."""
    group = parser.add_argument_group("options of Kafka's kafka-dump-log, which imply --format kafka")
    group.add_argument("--files", action="append", metavar="A,B", help="the files to print, with commas between them")
    group.add_argument("--print-data-log", action="store_true", help="print records with keys and values")
    group.add_argument("--deep-iteration", action="store_true", help="print records, and not only batches")
    group.add_argument("--skip-record-metadata", action="store_true", help="print only keys and values of records")
    group.add_argument("--verify-index-only", action="store_true", help="check indexes without printing them")
    group.add_argument("--index-sanity-check", action="store_true", help="check only the size of indexes")
    group.add_argument("--max-bytes", metavar="N", type=_number, help="read only the first N bytes of a segment")
    group.add_argument("--max-message-size", metavar="N", type=_number, help="the largest batch (default: 5242880)")
    group.add_argument("--key-decoder-class", metavar="NAME", nargs="?", const="", help="one of Kafka's own decoders")
    group.add_argument("--value-decoder-class", metavar="NAME", nargs="?", const="", help="one of Kafka's own decoders")
    for name, topic in _DECODERS.items():
        group.add_argument(f"--{name}", action="store_true", help=f"decode the records of {topic}")


_DECODERS: Final = {
    "offsets-decoder": "__consumer_offsets",
    "transaction-log-decoder": "__transaction_state",
    "cluster-metadata-decoder": "__cluster_metadata",
    "remote-log-metadata-decoder": "__remote_log_metadata",
    "share-group-state-decoder": "__share_group_state",
}


def kafka_options(arguments: argparse.Namespace) -> list[str]:
    """Return the options of Kafka's tool that were given."""
    names = (
        "files",
        "print-data-log",
        "deep-iteration",
        "skip-record-metadata",
        "verify-index-only",
        "index-sanity-check",
        "max-bytes",
        "max-message-size",
        "key-decoder-class",
        "value-decoder-class",
        *_DECODERS,
    )
    return [f"--{name}" for name in names if _value(arguments, name) not in (None, False)]


def _value(arguments: argparse.Namespace, name: str) -> object:
    value: object = getattr(arguments, name.replace("-", "_"))
    return value


def text_options(arguments: argparse.Namespace) -> TextOptions:
    """Return the options of Kafka's tool."""
    from octavo.inspect.kafka_text import RecordDecoder, TextOptions

    defaults = TextOptions()
    return TextOptions(
        print_data_log=arguments.print_data_log,
        deep_iteration=arguments.deep_iteration,
        skip_record_metadata=arguments.skip_record_metadata,
        verify_index_only=arguments.verify_index_only,
        index_sanity_check=arguments.index_sanity_check,
        max_bytes=defaults.max_bytes if arguments.max_bytes is None else arguments.max_bytes,
        max_message_size=(
            defaults.max_message_size if arguments.max_message_size is None else arguments.max_message_size
        ),
        decoders=tuple(decoder for decoder in RecordDecoder if _value(arguments, decoder.value)),
        key_decoder_class=arguments.key_decoder_class,
        value_decoder_class=arguments.value_decoder_class,
    )


def _number(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = -1
    if number < 0 or number > 2**31 - 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of bytes, up to {2**31 - 1}")
    return number
