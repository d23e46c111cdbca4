"""What the tasks have to know of the topics that they write to: `SinkTopics`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from octavo.errors import BadDirectory, OthersDecide
from octavo.log.config.broker_defaults import BrokerDefaults
from octavo.log.config.log_config import LogConfig
from octavo.log.metadata import MetadataStore
from octavo.log.partition_folders import check_data_folder, check_place, find_partitions
from octavo.log.storage import DISK
from octavo.spark.sink.options import SinkOptions

_ADDED: Final = 64  # what compression adds to bytes that cannot be compressed: its header, and
_OF_EACH: Final = 128  # less than one byte to so many


class SinkTopic(NamedTuple):
    """A topic that exists, or the kind that the sink creates."""

    partitions: int
    max_batch: int  # bytes of the largest batch that it takes

    @classmethod
    def of(cls, partitions: int, config: LogConfig) -> SinkTopic:
        """Return what matters of a topic's configuration."""
        return cls(partitions, min(config.max_message_bytes, config.segment_bytes))

    def batch_size(self, wanted: int) -> int:
        """Return how large batches are before compression: as `wanted`, or smaller if the topic takes no such ones."""
        return min(wanted, max(1, self.max_batch - self.max_batch // _OF_EACH - _ADDED))


class SinkTopics(NamedTuple):
    """The topics of a directory, as they are when a query begins."""

    known: Mapping[str, SinkTopic]
    new: SinkTopic

    @classmethod
    def read(cls, options: SinkOptions) -> SinkTopics:
        """Read what the metadata say. Raises `BadDirectory` if the directory cannot be written to."""
        new = SinkTopic.of(options.partitions, LogConfig.from_properties(options.topic_config))
        check_place(options.path)
        check_data_folder(options.path)
        if not options.path.exists():
            return cls({}, new)
        metadata = MetadataStore.open([options.path], storage=DISK, read_only=True)
        try:
            metadata.check_charge()
        except OthersDecide as error:
            raise BadDirectory(
                error.path, f'{error.problem}. Write to topics of a cluster with format("kafka")'
            ) from None
        defaults = BrokerDefaults(metadata)
        known = {
            name: SinkTopic.of(len(topic.partitions), defaults.config_of(topic).config)
            for name, topic in metadata.topics.items()
        }
        for name, partition in find_partitions(options.path):
            there = known.get(name, SinkTopic.of(0, LogConfig()))
            known[name] = there._replace(partitions=max(there.partitions, partition + 1))
        return cls(known, new)

    def of(self, name: str) -> SinkTopic:
        """Return the topic of this name, or what the sink would create."""
        return self.known.get(name, self.new)

    @property
    def most_partitions(self) -> int:
        """The number of partitions of the topic that has most."""
        return max((topic.partitions for topic in self.known.values()), default=self.new.partitions)
