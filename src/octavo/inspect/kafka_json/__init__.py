"""The JSON and the texts that Apache Kafka 4.3 prints for records of its internal topics.

    nodes.py             message_json: what Kafka's generated converters make of a message
    jackson.py           to_text: JSON as Jackson prints it
    refusals.py          why Kafka's generated readers refuse some bytes, in Kafka's words
    coordinator.py       the texts for `__consumer_offsets`, `__transaction_state` and `__share_group_state`
    groups.py            what is inside the values of `__consumer_offsets`
    framed.py            records of metadata as JSON, for the next two
    metadata.py          the texts for `__cluster_metadata`
    remote.py            the texts for `__remote_log_metadata`
    decoders.py          all of these by the options of `kafka-dump-log`

A decoder takes the offset, key and value of a record, and returns the texts that `kafka-dump-log` prints behind `key:`
and `payload:`; None where it prints nothing:

    decode = RECORD_DECODERS["offsets-decoder"]
    key_text, payload_text = decode(record.offset, record.key, record.value)

A record that cannot be decoded gives Kafka's text about that. A decoder raises `BadRecord`, with the message of Java's
RuntimeException, only where Kafka's tool ends: at a record without a key, in the topics whose records have one. The
decoder classes that can be named on the command line are in `octavo.inspect.kafka_text`. Neither pyarrow nor Numba is
imported.
"""

from __future__ import annotations

from octavo.inspect.kafka_json.decoders import RECORD_DECODERS
from octavo.inspect.kafka_json.jackson import to_text
from octavo.inspect.kafka_json.nodes import message_json
from octavo.inspect.kafka_json.texts import RecordDecoder, Texts

__all__ = [
    "RECORD_DECODERS",
    "RecordDecoder",
    "Texts",
    "message_json",
    "to_text",
]
