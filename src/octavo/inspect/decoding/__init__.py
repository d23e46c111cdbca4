"""Decode the keys and values of records for dumps, besides their bytes.

    record_decoding.py   RecordDecoding: what of a record is decoded; decoding_of: what a file's name says about that
    internal_topics.py   the records of Kafka's internal topics
    value_formats.py     format_decoder: keys or values of a format: JSON, Avro, Protobuf, text, or that of a plug-in

What is decoded becomes JSON. What cannot be decoded spoils no other record, and has a reason. Importing the package
imports neither pyarrow nor the declarations of records.
"""

from __future__ import annotations

from octavo.inspect.decoding.record_decoding import DecodedRecord, RecordDecoding, decoding_of
from octavo.inspect.decoding.value_formats import format_decoder

__all__ = ["DecodedRecord", "RecordDecoding", "decoding_of", "format_decoder"]
