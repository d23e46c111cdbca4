"""The texts of Kafka's tool for the records of `__cluster_metadata`, which have no key."""

from __future__ import annotations

from octavo.errors import FormatError
from octavo.inspect.kafka_json.framed import framed_node
from octavo.inspect.kafka_json.jackson import to_text
from octavo.inspect.kafka_json.texts import Texts
from octavo.schemas.metadata.serde import KINDS


def cluster_metadata(offset: int, key: bytes | None, value: bytes | None) -> Texts:
    """Return the texts for a record of `__cluster_metadata`, whose key is not looked at."""
    try:
        return Texts(None, to_text(framed_node(KINDS, value)))
    except FormatError as error:
        return Texts(None, f"Error at {offset}, skipping. {error.rule}")
