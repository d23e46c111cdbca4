"""What a data directory says of itself, in Kafka's own records: topics, ids, partitions, configurations.

MetadataStore    reads them, in a directory of ours or of Kafka's, and adds to them
handover         makes sure that a stock Apache Kafka serves a directory
"""

from __future__ import annotations

from octavo.log.metadata.handover import Handover, handover
from octavo.log.metadata.image import PartitionState, Topic
from octavo.log.metadata.store import MetadataStore

__all__ = ["Handover", "MetadataStore", "PartitionState", "Topic", "handover"]
