"""Calls of Kafka's command-line tools, in the order in which they are asked: they build on one another."""

from __future__ import annotations

import json
from typing import Final

from tests.kafka.tools import Call

LINES: Final = "k1:v1\nk2:\nk3:NULL\n\tx:v4\n"


def _reassignment(*topics: tuple[str, int, list[int]]) -> str:
    return json.dumps(
        {
            "version": 1,
            "partitions": [
                {"topic": topic, "partition": number, "replicas": replicas} for topic, number, replicas in topics
            ],
        }
    )


FILES: Final = {
    "cut": json.dumps({"partitions": [{"topic": "orders", "partition": 0, "offset": 2}], "version": 1}),
    "cut_all": json.dumps({"partitions": [{"topic": "orders", "partition": 0, "offset": -1}], "version": 1}),
    "cut_too_far": json.dumps({"partitions": [{"topic": "orders", "partition": 0, "offset": 99}], "version": 1}),
    "moved": json.dumps({"topics": [{"topic": "orders"}], "version": 1}),
    "same": _reassignment(("orders", 0, [1])),
    "elsewhere": _reassignment(("orders", 0, [7])),
    "of_nothing": _reassignment(("missing", 0, [1])),
    "elected": json.dumps({"partitions": [{"topic": "orders", "partition": 0}]}),
    "admin": "request.timeout.ms=20000\n",
    "settings": "retention.ms=1234567\nsegment.bytes=20000000\n",
}

_TOPICS: Final = (
    "topics --list",
    "topics --create --topic orders --partitions 3 --replication-factor 1 --config retention.ms=86400000",
    "topics --create --topic orders",
    "topics --create --topic orders --if-not-exists",
    "topics --create --topic plain",
    "topics --create --topic assigned --replica-assignment 1,1",
    "topics --create --topic assigned2 --replica-assignment 2",
    "topics --create --topic many --replication-factor 2",
    "topics --create --topic none --partitions 0",
    "topics --create --topic bad/name",
    "topics --create --topic a.b",
    "topics --create --topic a_b",
    "topics --create --topic odd --config nonsense=1",
    "topics --create --topic odd --config retention.ms=x",
    "topics --create --topic compacted --config cleanup.policy=compact --config max.message.bytes=2000",
    "topics --list",
    "topics --list --topic orders",
    "topics --list --topic 'or.*|pl.*'",
    "topics --list --exclude-internal",
    "topics --describe",
    "topics --describe --topic orders",
    "topics --describe --topic missing",
    "topics --describe --topic missing --if-exists",
    "topics --describe --topics-with-overrides",
    "topics --describe --under-replicated-partitions",
    "topics --describe --unavailable-partitions",
    "topics --describe --under-min-isr-partitions",
    "topics --describe --at-min-isr-partitions",
    "topics --describe --exclude-internal --partition-size-limit-per-response 1",
    "topics --describe --topic-id AAAAAAAAAAAAAAAAAAAAAQ",
    "topics --alter --topic plain --partitions 3",
    "topics --alter --topic plain --partitions 3",
    "topics --alter --topic plain --partitions 2",
    "topics --alter --topic plain --partitions 4 --replica-assignment 1,1,1,1",
    "topics --alter --topic plain --partitions 5 --replica-assignment 1,1,1,1,2",
    "topics --alter --topic missing --partitions 2",
    "topics --alter --topic missing --partitions 2 --if-exists",
    "topics --delete --topic a.b",
    "topics --delete --topic missing",
    "topics --delete --topic missing --if-exists",
)

_CONFIGS: Final = (
    "configs --describe --entity-type topics --entity-name orders",
    "configs --describe --entity-type topics --entity-name orders --all",
    "configs --describe --topic missing",
    "configs --describe --entity-type topics",
    "configs --describe --entity-type brokers --entity-name 1",
    "configs --describe --entity-type brokers --entity-default",
    "configs --describe --entity-type brokers",
    "configs --describe --entity-type brokers --entity-name 9",
    "configs --alter --topic orders --add-config retention.ms=3600000,cleanup.policy=[compact,delete]",
    "configs --describe --topic orders",
    "configs --alter --topic orders --add-config-file {settings}",
    "configs --describe --topic orders",
    "configs --alter --topic orders --delete-config retention.ms,cleanup.policy",
    "configs --alter --topic orders --delete-config retention.ms",
    "configs --alter --topic orders --delete-config nonsense",
    "configs --alter --topic orders --add-config nonsense=1",
    "configs --alter --topic orders --add-config retention.ms=soon",
    "configs --alter --topic orders --add-config retention.ms=-5",
    "configs --alter --topic missing --add-config retention.ms=1",
    "configs --describe --topic orders",
    "configs --alter --entity-type brokers --entity-default --add-config log.retention.ms=123456789",
    "configs --describe --entity-type brokers --entity-default",
    "configs --describe --topic plain --all",
    "configs --alter --entity-type brokers --entity-name 1 --add-config message.max.bytes=2000000",
    "configs --alter --entity-type brokers --entity-name 1 --delete-config message.max.bytes",
    "configs --alter --entity-type brokers --entity-default --delete-config log.retention.ms",
    "configs --alter --entity-type brokers --entity-name 1 --add-config log.dirs=/nowhere",
    "configs --describe --entity-type users",
    "configs --alter --entity-type users --entity-name ann --add-config producer_byte_rate=1000000",
    "configs --alter --entity-type clients --entity-name app --add-config consumer_byte_rate=2000000",
    "configs --alter --entity-type users --entity-default --add-config request_percentage=200",
    "configs --alter --entity-type users --entity-name ann --add-config nonsense=1",
    "configs --describe --entity-type users",
    "configs --describe --entity-type clients --entity-name app",
    "configs --describe --entity-type users --entity-name ann --entity-type clients --entity-default",
    "configs --alter --entity-type users --entity-name ann --delete-config producer_byte_rate",
    "configs --alter --entity-type users --entity-default --delete-config request_percentage",
    "configs --describe --entity-type users",
    "configs --describe --entity-type client-metrics",
    "configs --describe --entity-type ips",
)

_RECORDS: Final = (
    Call("console-producer --topic plain --reader-property parse.key=true --reader-property key.separator=:", LINES),
    Call(
        "console-producer --topic orders --property parse.key=true --property key.separator=: "
        "--property null.marker=NULL",
        LINES,
    ),
    Call("console-producer --topic compacted --compression-codec zstd --sync", "without a key\n"),
    Call("console-producer --topic compacted --producer-property acks=1", "x" * 3000 + "\n"),
    Call("console-producer --topic compacted --reader-property parse.key=true", "key\tvalue\n"),
    Call(
        "console-producer --topic assigned --property parse.key=true --property parse.headers=true "
        "--compression-codec lz4",
        "h1:a,h2:b\tkey\tvalue\nh:\t\tempty\n",
    ),
)

_READING: Final = (
    "console-consumer --topic orders --partition 0 --offset earliest --max-messages 1",
    "console-consumer --topic orders --partition 1 --offset earliest --max-messages 1 --property print.key=true",
    "console-consumer --topic orders --partition 2 --offset 1 --max-messages 1 --isolation-level read_committed",
    "console-consumer --topic orders --partition 2 --offset latest --timeout-ms 100",
    "console-consumer --topic assigned --partition 1 --offset 0 --max-messages 2 --formatter-property print.key=true "
    "--formatter-property print.headers=true --formatter-property print.offset=true "
    "--formatter-property print.partition=true",
    "console-consumer --topic assigned --partition 1 --offset earliest --max-messages 2 --property print.key=true "
    "--property print.headers=true --property print.epoch=true",
    "get-offsets",
    "get-offsets --topic orders",
    "get-offsets --topic orders --time earliest",
    "get-offsets --topic orders --time latest",
    "get-offsets --topic compacted --time max-timestamp",
    "get-offsets --topic orders --time earliest-local",
    "get-offsets --topic orders --time latest-tiered",
    "get-offsets --topic orders --time earliest-pending-upload",
    "get-offsets --topic orders --time 1",
    "get-offsets --topic orders --time 99999999999999",
    "get-offsets --topic orders --partitions 0,2",
    "get-offsets --topic-partitions orders:1-2,plain:0",
    "get-offsets --topic missing",
    "get-offsets --topic orders --partitions 9",
    "get-offsets --exclude-internal-topics",
    "delete-records --offset-json-file {cut}",
    "delete-records --offset-json-file {cut_too_far}",
    "get-offsets --topic orders --time earliest",
    "delete-records --offset-json-file {cut_all} --command-config {admin}",
    "get-offsets --topic orders --time earliest",
)

_CLUSTER: Final = (
    "log-dirs --describe",
    "log-dirs --describe --topic-list orders",
    "log-dirs --describe --broker-list 1",
    "log-dirs --describe --broker-list 1,2",
    "cluster cluster-id",
    "cluster list-endpoints",
    "cluster list-endpoints --include-fenced-brokers",
    "broker-api-versions",
    "metadata-quorum describe --status",
    "metadata-quorum describe --replication",
    "metadata-quorum describe --replication --human-readable",
    "features upgrade --metadata 4.0-IV3",
    "features downgrade --metadata 3.9 --dry-run",
    "features upgrade --feature metadata.version=99",
    "client-metrics --list",
    "client-metrics --describe",
    "client-metrics --alter --name mine --metrics org.apache.kafka. --interval 60000",
    "client-metrics --list",
    "client-metrics --describe --name mine",
    "client-metrics --delete --name mine",
    "client-metrics --list",
    "leader-election --election-type preferred --topic orders --partition 0",
    "leader-election --election-type preferred --all-topic-partitions",
    "leader-election --election-type unclean --path-to-json-file {elected}",
    "leader-election --election-type preferred --topic missing --partition 0",
    "reassign-partitions --list",
    "reassign-partitions --generate --topics-to-move-json-file {moved} --broker-list 1",
    "reassign-partitions --execute --reassignment-json-file {same}",
    "reassign-partitions --verify --reassignment-json-file {same}",
    "reassign-partitions --execute --reassignment-json-file {elsewhere}",
    "reassign-partitions --execute --reassignment-json-file {of_nothing}",
    "reassign-partitions --list",
    "acls --list",
    "acls --add --allow-principal User:ann --operation Read --topic orders",
    "transactions describe-producers --topic orders --partition 0",
    "delegation-tokens --describe",
)

_GROUPS: Final = (
    "console-consumer --topic assigned --group readers --from-beginning --max-messages 2",
    "consumer-groups --list",
    "consumer-groups --list --state --type",
    "consumer-groups --describe --group readers",
    "consumer-groups --describe --group readers --state",
    "consumer-groups --describe --group readers --members --verbose",
    "consumer-groups --describe --group missing",
    "consumer-groups --reset-offsets --group readers --topic assigned --to-earliest --dry-run",
    "consumer-groups --reset-offsets --group readers --topic assigned:1 --shift-by -1 --execute",
    "consumer-groups --reset-offsets --group fresh --topic assigned --to-latest --execute",
    "consumer-groups --describe --all-groups",
    "consumer-groups --validate-regex assigned.*",
    "configs --alter --entity-type groups --entity-name readers --add-config consumer.heartbeat.interval.ms=6000",
    "configs --alter --entity-type groups --entity-name readers --add-config consumer.session.timeout.ms=1000",
    "configs --describe --entity-type groups --entity-name readers",
    "configs --describe --entity-type groups",
    "configs --alter --entity-type groups --entity-name readers --delete-config consumer.heartbeat.interval.ms",
    "configs --describe --entity-type groups --entity-name readers",
    "consumer-groups --delete-offsets --group readers --topic assigned",
    "consumer-groups --delete-offsets --group missing --topic assigned",
    "consumer-groups --delete --group readers",
    "consumer-groups --delete --group missing",
    "consumer-groups --list",
)

_LOAD: Final = (
    "producer-perf-test --topic plain --num-records 100 --record-size 50 --throughput -1",
    "topics --delete --topic 'or.*'",
    "topics --delete --topic assigned",
)

CALLS: Final = [
    *map(Call, _TOPICS),
    *map(Call, _CONFIGS),
    *_RECORDS,
    *map(Call, _READING),
    *map(Call, _CLUSTER),
    *map(Call, _GROUPS),
    *map(Call, _LOAD),
]
