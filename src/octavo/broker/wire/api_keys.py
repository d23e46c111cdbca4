"""The APIs that are served, with the versions that Apache Kafka 4.3 serves."""

from __future__ import annotations

from typing import Final, NamedTuple

NEVER: Final = 1 << 15  # no version is flexible

PRODUCE: Final = 0
FETCH: Final = 1
LIST_OFFSETS: Final = 2
METADATA: Final = 3
OFFSET_COMMIT: Final = 8
OFFSET_FETCH: Final = 9
FIND_COORDINATOR: Final = 10
JOIN_GROUP: Final = 11
HEARTBEAT: Final = 12
LEAVE_GROUP: Final = 13
SYNC_GROUP: Final = 14
DESCRIBE_GROUPS: Final = 15
LIST_GROUPS: Final = 16
SASL_HANDSHAKE: Final = 17
API_VERSIONS: Final = 18
CREATE_TOPICS: Final = 19
DELETE_TOPICS: Final = 20
DELETE_RECORDS: Final = 21
INIT_PRODUCER_ID: Final = 22
OFFSET_FOR_LEADER_EPOCH: Final = 23
ADD_PARTITIONS_TO_TXN: Final = 24
ADD_OFFSETS_TO_TXN: Final = 25
END_TXN: Final = 26
WRITE_TXN_MARKERS: Final = 27
TXN_OFFSET_COMMIT: Final = 28
DESCRIBE_ACLS: Final = 29
CREATE_ACLS: Final = 30
DELETE_ACLS: Final = 31
DESCRIBE_CONFIGS: Final = 32
ALTER_CONFIGS: Final = 33
ALTER_REPLICA_LOG_DIRS: Final = 34
DESCRIBE_LOG_DIRS: Final = 35
SASL_AUTHENTICATE: Final = 36
CREATE_PARTITIONS: Final = 37
CREATE_DELEGATION_TOKEN: Final = 38
RENEW_DELEGATION_TOKEN: Final = 39
EXPIRE_DELEGATION_TOKEN: Final = 40
DESCRIBE_DELEGATION_TOKEN: Final = 41
DELETE_GROUPS: Final = 42
ELECT_LEADERS: Final = 43
INCREMENTAL_ALTER_CONFIGS: Final = 44
ALTER_PARTITION_REASSIGNMENTS: Final = 45
LIST_PARTITION_REASSIGNMENTS: Final = 46
OFFSET_DELETE: Final = 47
DESCRIBE_CLIENT_QUOTAS: Final = 48
ALTER_CLIENT_QUOTAS: Final = 49
DESCRIBE_USER_SCRAM_CREDENTIALS: Final = 50
ALTER_USER_SCRAM_CREDENTIALS: Final = 51
DESCRIBE_QUORUM: Final = 55
UPDATE_FEATURES: Final = 57
DESCRIBE_CLUSTER: Final = 60
DESCRIBE_PRODUCERS: Final = 61
UNREGISTER_BROKER: Final = 64
DESCRIBE_TRANSACTIONS: Final = 65
LIST_TRANSACTIONS: Final = 66
CONSUMER_GROUP_HEARTBEAT: Final = 68
CONSUMER_GROUP_DESCRIBE: Final = 69
LIST_CONFIG_RESOURCES: Final = 74
DESCRIBE_TOPIC_PARTITIONS: Final = 75

# Members of a cluster serve these, and have the controller answer them.
ADD_RAFT_VOTER: Final = 80
REMOVE_RAFT_VOTER: Final = 81

# Only controllers serve these: a member of a cluster asks them.
ALTER_PARTITION: Final = 56
ENVELOPE: Final = 58
FETCH_SNAPSHOT: Final = 59
BROKER_REGISTRATION: Final = 62
BROKER_HEARTBEAT: Final = 63
ALLOCATE_PRODUCER_IDS: Final = 67
ASSIGN_REPLICAS_TO_DIRS: Final = 73


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
    OFFSET_COMMIT: _api("OffsetCommit", 2, 10, 8),
    OFFSET_FETCH: _api("OffsetFetch", 1, 10, 6),
    FIND_COORDINATOR: _api("FindCoordinator", 0, 6, 3),
    JOIN_GROUP: _api("JoinGroup", 0, 9, 6),
    HEARTBEAT: _api("Heartbeat", 0, 4, 4),
    LEAVE_GROUP: _api("LeaveGroup", 0, 5, 4),
    SYNC_GROUP: _api("SyncGroup", 0, 5, 4),
    DESCRIBE_GROUPS: _api("DescribeGroups", 0, 6, 5),
    LIST_GROUPS: _api("ListGroups", 0, 5, 3),
    SASL_HANDSHAKE: _api("SaslHandshake", 0, 1, NEVER),
    API_VERSIONS: _api("ApiVersions", 0, 4, 3),
    CREATE_TOPICS: _api("CreateTopics", 2, 7, 5),
    DELETE_TOPICS: _api("DeleteTopics", 1, 6, 4),
    DELETE_RECORDS: _api("DeleteRecords", 0, 2, 2),
    INIT_PRODUCER_ID: _api("InitProducerId", 0, 5, 2),
    OFFSET_FOR_LEADER_EPOCH: _api("OffsetForLeaderEpoch", 2, 4, 4),
    ADD_PARTITIONS_TO_TXN: _api("AddPartitionsToTxn", 0, 5, 3),
    ADD_OFFSETS_TO_TXN: _api("AddOffsetsToTxn", 0, 4, 3),
    END_TXN: _api("EndTxn", 0, 5, 3),
    WRITE_TXN_MARKERS: _api("WriteTxnMarkers", 1, 2, 1),
    TXN_OFFSET_COMMIT: _api("TxnOffsetCommit", 0, 5, 3),
    DESCRIBE_ACLS: _api("DescribeAcls", 1, 3, 2),
    CREATE_ACLS: _api("CreateAcls", 1, 3, 2),
    DELETE_ACLS: _api("DeleteAcls", 1, 3, 2),
    DESCRIBE_CONFIGS: _api("DescribeConfigs", 1, 4, 4),
    ALTER_CONFIGS: _api("AlterConfigs", 0, 2, 2),
    ALTER_REPLICA_LOG_DIRS: _api("AlterReplicaLogDirs", 1, 2, 2),
    DESCRIBE_LOG_DIRS: _api("DescribeLogDirs", 1, 5, 2),
    SASL_AUTHENTICATE: _api("SaslAuthenticate", 0, 2, 2),
    CREATE_PARTITIONS: _api("CreatePartitions", 0, 3, 2),
    CREATE_DELEGATION_TOKEN: _api("CreateDelegationToken", 1, 3, 2),
    RENEW_DELEGATION_TOKEN: _api("RenewDelegationToken", 1, 2, 2),
    EXPIRE_DELEGATION_TOKEN: _api("ExpireDelegationToken", 1, 2, 2),
    DESCRIBE_DELEGATION_TOKEN: _api("DescribeDelegationToken", 1, 3, 2),
    DELETE_GROUPS: _api("DeleteGroups", 0, 2, 2),
    ELECT_LEADERS: _api("ElectLeaders", 0, 2, 2),
    INCREMENTAL_ALTER_CONFIGS: _api("IncrementalAlterConfigs", 0, 1, 1),
    ALTER_PARTITION_REASSIGNMENTS: _api("AlterPartitionReassignments", 0, 1, 0),
    LIST_PARTITION_REASSIGNMENTS: _api("ListPartitionReassignments", 0, 0, 0),
    OFFSET_DELETE: _api("OffsetDelete", 0, 0, NEVER),
    DESCRIBE_CLIENT_QUOTAS: _api("DescribeClientQuotas", 0, 1, 1),
    ALTER_CLIENT_QUOTAS: _api("AlterClientQuotas", 0, 1, 1),
    DESCRIBE_USER_SCRAM_CREDENTIALS: _api("DescribeUserScramCredentials", 0, 0, 0),
    ALTER_USER_SCRAM_CREDENTIALS: _api("AlterUserScramCredentials", 0, 0, 0),
    DESCRIBE_QUORUM: _api("DescribeQuorum", 0, 2, 0),
    UPDATE_FEATURES: _api("UpdateFeatures", 0, 2, 0),
    DESCRIBE_CLUSTER: _api("DescribeCluster", 0, 2, 0),
    DESCRIBE_PRODUCERS: _api("DescribeProducers", 0, 0, 0),
    UNREGISTER_BROKER: _api("UnregisterBroker", 0, 0, 0),
    DESCRIBE_TRANSACTIONS: _api("DescribeTransactions", 0, 0, 0),
    LIST_TRANSACTIONS: _api("ListTransactions", 0, 2, 0),
    CONSUMER_GROUP_HEARTBEAT: _api("ConsumerGroupHeartbeat", 0, 1, 0),
    CONSUMER_GROUP_DESCRIBE: _api("ConsumerGroupDescribe", 0, 1, 0),
    LIST_CONFIG_RESOURCES: _api("ListConfigResources", 0, 1, 0),
    DESCRIBE_TOPIC_PARTITIONS: _api("DescribeTopicPartitions", 0, 0, 0),
}

MEMBER_APIS: Final = {
    **APIS,
    ADD_RAFT_VOTER: _api("AddRaftVoter", 0, 1, 0),
    REMOVE_RAFT_VOTER: _api("RemoveRaftVoter", 0, 0, 0),
}


def is_flexible(api_key: int, version: int) -> bool:
    """Return whether this version of an API has tagged fields; those that only controllers serve always have."""
    api = APIS.get(api_key)
    return api is None or version >= api.flexible
