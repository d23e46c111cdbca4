"""The metadata of a data directory, in Kafka's own records: topics, ids, partitions, configurations.

MetadataStore    reads and changes the metadata of a directory of Octavo or Kafka
handover         prepares a directory so that a stock Apache Kafka can serve it
"""

from __future__ import annotations

from octavo.log.metadata.handover import Handover, handover
from octavo.log.metadata.image import PartitionState, Topic
from octavo.log.metadata.server_properties import ChangedSetting
from octavo.log.metadata.store import MetadataStore

__all__ = ["ChangedSetting", "Handover", "MetadataStore", "PartitionState", "Topic", "handover"]
