"""Which function answers which API."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from octavo.broker.answers import Answer
from octavo.broker.apis.acls import create_acls, delete_acls, describe_acls
from octavo.broker.apis.add_offsets_to_txn import add_offsets_to_txn
from octavo.broker.apis.add_partitions_to_txn import add_partitions_to_txn
from octavo.broker.apis.alter_configs import alter_configs, incremental_alter_configs
from octavo.broker.apis.alter_replica_log_dirs import alter_replica_log_dirs
from octavo.broker.apis.api_versions import api_versions
from octavo.broker.apis.client_quotas import alter_client_quotas, describe_client_quotas
from octavo.broker.apis.consumer_group_describe import consumer_group_describe
from octavo.broker.apis.consumer_group_heartbeat import consumer_group_heartbeat
from octavo.broker.apis.create_partitions import create_partitions
from octavo.broker.apis.create_topics import create_topics
from octavo.broker.apis.delegation_tokens import (
    create_delegation_token,
    describe_delegation_token,
    expire_delegation_token,
    renew_delegation_token,
)
from octavo.broker.apis.delete_groups import delete_groups
from octavo.broker.apis.delete_records import delete_records
from octavo.broker.apis.delete_topics import delete_topics
from octavo.broker.apis.describe_cluster import describe_cluster
from octavo.broker.apis.describe_configs import describe_configs
from octavo.broker.apis.describe_groups import describe_groups
from octavo.broker.apis.describe_log_dirs import describe_log_dirs
from octavo.broker.apis.describe_producers import describe_producers
from octavo.broker.apis.describe_quorum import describe_quorum
from octavo.broker.apis.describe_topic_partitions import describe_topic_partitions
from octavo.broker.apis.describe_transactions import describe_transactions
from octavo.broker.apis.elect_leaders import elect_leaders
from octavo.broker.apis.end_txn import end_txn
from octavo.broker.apis.fetch import fetch
from octavo.broker.apis.find_coordinator import find_coordinator
from octavo.broker.apis.heartbeat import heartbeat
from octavo.broker.apis.init_producer_id import init_producer_id
from octavo.broker.apis.join_group import join_group
from octavo.broker.apis.leave_group import leave_group
from octavo.broker.apis.list_config_resources import list_config_resources
from octavo.broker.apis.list_groups import list_groups
from octavo.broker.apis.list_offsets import list_offsets
from octavo.broker.apis.list_transactions import list_transactions
from octavo.broker.apis.metadata import metadata
from octavo.broker.apis.offset_commit import offset_commit
from octavo.broker.apis.offset_delete import offset_delete
from octavo.broker.apis.offset_fetch import offset_fetch
from octavo.broker.apis.offset_for_leader_epoch import offset_for_leader_epoch
from octavo.broker.apis.produce import produce
from octavo.broker.apis.reassignments import alter_partition_reassignments, list_partition_reassignments
from octavo.broker.apis.sasl import sasl_authenticate, sasl_handshake
from octavo.broker.apis.sync_group import sync_group
from octavo.broker.apis.txn_offset_commit import txn_offset_commit
from octavo.broker.apis.unregister_broker import unregister_broker
from octavo.broker.apis.update_features import update_features
from octavo.broker.apis.user_scram_credentials import alter_user_scram_credentials, describe_user_scram_credentials
from octavo.broker.apis.write_txn_markers import write_txn_markers
from octavo.broker.request import Request
from octavo.broker.wire import api_keys

if TYPE_CHECKING:
    from octavo.broker.broker import Broker

Handler = Callable[["Broker", Request], Answer]

HANDLERS: Final[dict[int, Handler]] = {
    api_keys.PRODUCE: produce,
    api_keys.FETCH: fetch,
    api_keys.LIST_OFFSETS: list_offsets,
    api_keys.METADATA: metadata,
    api_keys.OFFSET_COMMIT: offset_commit,
    api_keys.OFFSET_FETCH: offset_fetch,
    api_keys.FIND_COORDINATOR: find_coordinator,
    api_keys.JOIN_GROUP: join_group,
    api_keys.HEARTBEAT: heartbeat,
    api_keys.LEAVE_GROUP: leave_group,
    api_keys.SYNC_GROUP: sync_group,
    api_keys.DESCRIBE_GROUPS: describe_groups,
    api_keys.LIST_GROUPS: list_groups,
    api_keys.DELETE_GROUPS: delete_groups,
    api_keys.OFFSET_DELETE: offset_delete,
    api_keys.CONSUMER_GROUP_HEARTBEAT: consumer_group_heartbeat,
    api_keys.CONSUMER_GROUP_DESCRIBE: consumer_group_describe,
    api_keys.API_VERSIONS: api_versions,
    api_keys.CREATE_TOPICS: create_topics,
    api_keys.INIT_PRODUCER_ID: init_producer_id,
    api_keys.ALTER_CONFIGS: alter_configs,
    api_keys.INCREMENTAL_ALTER_CONFIGS: incremental_alter_configs,
    api_keys.CREATE_PARTITIONS: create_partitions,
    api_keys.DELETE_RECORDS: delete_records,
    api_keys.DELETE_TOPICS: delete_topics,
    api_keys.ADD_PARTITIONS_TO_TXN: add_partitions_to_txn,
    api_keys.ADD_OFFSETS_TO_TXN: add_offsets_to_txn,
    api_keys.END_TXN: end_txn,
    api_keys.WRITE_TXN_MARKERS: write_txn_markers,
    api_keys.TXN_OFFSET_COMMIT: txn_offset_commit,
    api_keys.DESCRIBE_TRANSACTIONS: describe_transactions,
    api_keys.LIST_TRANSACTIONS: list_transactions,
    api_keys.DESCRIBE_CLUSTER: describe_cluster,
    api_keys.DESCRIBE_CONFIGS: describe_configs,
    api_keys.DESCRIBE_LOG_DIRS: describe_log_dirs,
    api_keys.DESCRIBE_PRODUCERS: describe_producers,
    api_keys.DESCRIBE_TOPIC_PARTITIONS: describe_topic_partitions,
    api_keys.ELECT_LEADERS: elect_leaders,
    api_keys.OFFSET_FOR_LEADER_EPOCH: offset_for_leader_epoch,
    api_keys.ALTER_PARTITION_REASSIGNMENTS: alter_partition_reassignments,
    api_keys.LIST_PARTITION_REASSIGNMENTS: list_partition_reassignments,
    api_keys.CREATE_ACLS: create_acls,
    api_keys.DELETE_ACLS: delete_acls,
    api_keys.DESCRIBE_ACLS: describe_acls,
    api_keys.ALTER_REPLICA_LOG_DIRS: alter_replica_log_dirs,
    api_keys.ALTER_CLIENT_QUOTAS: alter_client_quotas,
    api_keys.DESCRIBE_CLIENT_QUOTAS: describe_client_quotas,
    api_keys.CREATE_DELEGATION_TOKEN: create_delegation_token,
    api_keys.DESCRIBE_DELEGATION_TOKEN: describe_delegation_token,
    api_keys.EXPIRE_DELEGATION_TOKEN: expire_delegation_token,
    api_keys.RENEW_DELEGATION_TOKEN: renew_delegation_token,
    api_keys.DESCRIBE_QUORUM: describe_quorum,
    api_keys.LIST_CONFIG_RESOURCES: list_config_resources,
    api_keys.SASL_AUTHENTICATE: sasl_authenticate,
    api_keys.SASL_HANDSHAKE: sasl_handshake,
    api_keys.UNREGISTER_BROKER: unregister_broker,
    api_keys.UPDATE_FEATURES: update_features,
    api_keys.ALTER_USER_SCRAM_CREDENTIALS: alter_user_scram_credentials,
    api_keys.DESCRIBE_USER_SCRAM_CREDENTIALS: describe_user_scram_credentials,
}
assert HANDLERS.keys() == api_keys.APIS.keys()


def member_handlers() -> dict[int, Handler]:
    """Return the handlers of a member of a cluster. A broker that is alone does without what they import."""
    from octavo.broker.member.config_forwarding import alter_configs_by_controller
    from octavo.broker.member.forwarding import FORWARDED, forward

    handlers: dict[int, Handler] = {
        **HANDLERS,
        **dict.fromkeys(FORWARDED, forward),
        api_keys.ALTER_CONFIGS: alter_configs_by_controller,
        api_keys.INCREMENTAL_ALTER_CONFIGS: alter_configs_by_controller,
    }
    assert handlers.keys() == api_keys.MEMBER_APIS.keys()
    return handlers
