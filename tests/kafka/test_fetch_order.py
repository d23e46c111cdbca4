"""A client whose answers are small gets records of all partitions, in the same order as from Apache Kafka."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from octavo.broker.wire import api_keys as keys
from octavo.server.serving import serve
from tests.kafka.conftest import NewBroker
from tests.retention import KEPT_FOR_NOW
from tests.server.conversation import Conversation
from tests.unit.log.logs import make_batch

TOPIC = "many"
PARTITIONS = 50
BATCHES = 4
ANSWERS = 3 * PARTITIONS
NO_SESSION = {"session_id": 0, "session_epoch": -1}


def test_small_answers_have_records_of_all_partitions_as_those_of_kafka(new_broker: NewBroker, tmp_path: Path) -> None:
    kafka = new_broker(tmp_path / "kafka", settings={"auto.create.topics.enable": "false"})
    kafka.format()
    kafka.start()
    with (
        serve(tmp_path / "ours", config=KEPT_FOR_NOW) as server,
        Conversation(kafka.address) as theirs,
        Conversation(server.bootstrap_servers) as ours,
    ):
        orders = []
        for client in (ours, theirs):
            fill(client)
            orders.append(order_of_records(client))
            first = dict.fromkeys(range(PARTITIONS), 0)
            assert [with_records(fetch(client, first, **NO_SESSION)) for _ in range(2)] == [[0], [0]]
    assert orders[0] == orders[1]
    assert sorted(orders[0][1 : PARTITIONS + 1]) == list(range(PARTITIONS))  # the first answer gives the order


def fill(client: Conversation) -> None:
    """Create the topic, and give every partition some batches of one record."""
    topic = {"name": TOPIC, "num_partitions": PARTITIONS, "replication_factor": 1, "assignments": [], "configs": []}
    client.ask(keys.CREATE_TOPICS, 5, {"topics": [topic], "timeout_ms": 30_000, "validate_only": False})
    places = [{"index": number, "records": make_batch(1)} for number in range(PARTITIONS)]
    data = [{"name": TOPIC, "partition_data": places}]
    content = {"transactional_id": None, "acks": 1, "timeout_ms": 30_000, "topic_data": data}
    done = 0
    while done < BATCHES:  # Kafka's leaders begin a moment after the topic is created
        answer = client.raw_answer(keys.PRODUCE, 9, content)
        done += all(each.error_code == 0 for each in answer.responses[0].partition_responses)


def order_of_records(client: Conversation) -> list[int]:
    """Return the partitions that had records, answer by answer, in a session that has room for one batch."""
    positions = dict.fromkeys(range(PARTITIONS), 0)
    answer = fetch(client, positions, session_id=0, session_epoch=0)
    session_id, order = answer.session_id, []
    for epoch in range(1, ANSWERS + 1):
        [number] = with_records(answer)
        order.append(number)
        positions[number] += 1
        answer = fetch(client, {number: positions[number]}, session_id=session_id, session_epoch=epoch)
    return order


def fetch(client: Conversation, positions: dict[int, int], **session: int) -> Any:
    partitions = [
        {
            "partition": number,
            "current_leader_epoch": -1,
            "fetch_offset": offset,
            "log_start_offset": -1,
            "partition_max_bytes": 1 << 20,
        }
        for number, offset in positions.items()
    ]
    content = {
        "replica_id": -1,
        "max_wait_ms": 500,
        "min_bytes": 1,
        "max_bytes": 1,
        "isolation_level": 0,
        "topics": [{"topic": TOPIC, "partitions": partitions}],
        "forgotten_topics_data": [],
        "rack_id": "",
        **session,
    }
    return client.raw_answer(keys.FETCH, 11, content)


def with_records(answer: Any) -> list[int]:
    return [each.partition_index for topic in answer.responses for each in topic.partitions if each.records]
