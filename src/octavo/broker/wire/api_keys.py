"""The APIs that are served, with the versions that Apache Kafka 4.3 serves."""

from __future__ import annotations

from typing import Final, NamedTuple

NEVER: Final = 1 << 15  # no version is flexible

PRODUCE: Final = 0
FETCH: Final = 1
LIST_OFFSETS: Final = 2
METADATA: Final = 3
API_VERSIONS: Final = 18
CREATE_TOPICS: Final = 19
DELETE_TOPICS: Final = 20
DELETE_RECORDS: Final = 21
INIT_PRODUCER_ID: Final = 22
OFFSET_FOR_LEADER_EPOCH: Final = 23
DESCRIBE_CONFIGS: Final = 32
ALTER_CONFIGS: Final = 33
ALTER_REPLICA_LOG_DIRS: Final = 34
DESCRIBE_LOG_DIRS: Final = 35
CREATE_PARTITIONS: Final = 37
ELECT_LEADERS: Final = 43
INCREMENTAL_ALTER_CONFIGS: Final = 44
ALTER_PARTITION_REASSIGNMENTS: Final = 45
LIST_PARTITION_REASSIGNMENTS: Final = 46
DESCRIBE_CLIENT_QUOTAS: Final = 48
ALTER_CLIENT_QUOTAS: Final = 49
DESCRIBE_QUORUM: Final = 55
DESCRIBE_CLUSTER: Final = 60
DESCRIBE_PRODUCERS: Final = 61
LIST_CONFIG_RESOURCES: Final = 74
DESCRIBE_TOPIC_PARTITIONS: Final = 75


class Api(NamedTuple):
    """An API: its name in Kafka, the versions that are served, and the first version that is flexible."""

    name: str
    first: int
    last: int
    flexible: int
    listed_from: int  # the first version in the answer to ApiVersions


def _api(name: str, first: int, last: int, flexible: int, listed_from: int | None = None) -> Api:
    return Api(name, first, last, flexible, first if listed_from is None else listed_from)


APIS: Final[dict[int, Api]] = {
    # librdkafka wants Produce to be listed from version 0, although nobody serves that any more.
    PRODUCE: _api("Produce", 3, 13, 9, listed_from=0),
    FETCH: _api("Fetch", 4, 18, 12),
    LIST_OFFSETS: _api("ListOffsets", 1, 11, 6),
    METADATA: _api("Metadata", 0, 13, 9),
    API_VERSIONS: _api("ApiVersions", 0, 4, 3),
    CREATE_TOPICS: _api("CreateTopics", 2, 7, 5),
    DELETE_TOPICS: _api("DeleteTopics", 1, 6, 4),
    DELETE_RECORDS: _api("DeleteRecords", 0, 2, 2),
    INIT_PRODUCER_ID: _api("InitProducerId", 0, 5, 2),
    OFFSET_FOR_LEADER_EPOCH: _api("OffsetForLeaderEpoch", 2, 4, 4),
    DESCRIBE_CONFIGS: _api("DescribeConfigs", 1, 4, 4),
    ALTER_CONFIGS: _api("AlterConfigs", 0, 2, 2),
    DESCRIBE_LOG_DIRS: _api("DescribeLogDirs", 1, 5, 2),
    CREATE_PARTITIONS: _api("CreatePartitions", 0, 3, 2),
    ELECT_LEADERS: _api("ElectLeaders", 0, 2, 2),
    INCREMENTAL_ALTER_CONFIGS: _api("IncrementalAlterConfigs", 0, 1, 1),
    ALTER_PARTITION_REASSIGNMENTS: _api("AlterPartitionReassignments", 0, 1, 0),
    LIST_PARTITION_REASSIGNMENTS: _api("ListPartitionReassignments", 0, 0, 0),
    DESCRIBE_CLUSTER: _api("DescribeCluster", 0, 2, 0),
    DESCRIBE_PRODUCERS: _api("DescribeProducers", 0, 0, 0),
    DESCRIBE_TOPIC_PARTITIONS: _api("DescribeTopicPartitions", 0, 0, 0),
}
