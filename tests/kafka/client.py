"""Clients for tests: the smallest there can be, which asks for metadata or sends a batch; and kafka-python's real ones.

Whoever uses the real ones has `pytestmark = OLD_RESOURCES`: they load their schemas in a way that Python warns of.
"""

from __future__ import annotations

import io
import socket
import struct
import warnings
from datetime import timedelta
from typing import Final, NamedTuple, TypeVar

import pytest
from kio.schema.end_txn.v4.request import EndTxnRequest
from kio.schema.end_txn.v4.response import EndTxnResponse
from kio.schema.metadata.v12 import MetadataRequest, MetadataResponse
from kio.schema.produce.v11.request import PartitionProduceData, ProduceRequest, TopicProduceData
from kio.schema.produce.v11.response import ProduceResponse
from kio.schema.request_header.v2 import RequestHeader
from kio.schema.response_header.v1 import ResponseHeader
from kio.schema.types import ProducerId, TopicName, TransactionalId
from kio.serial import entity_reader, entity_writer
from kio.static.primitive import Records, i16, i32, i32Timedelta
from kio.static.protocol import Payload

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
    from kafka.admin import ConfigResource, ConfigResourceType, NewTopic
    from kafka.errors import CoordinatorLoadInProgressError, NotCoordinatorError

__all__ = [
    "ConfigResource",
    "ConfigResourceType",
    "CoordinatorLoadInProgressError",
    "KafkaAdminClient",
    "KafkaConsumer",
    "KafkaProducer",
    "NotCoordinatorError",
    "NewTopic",
    "OLD_RESOURCES",
    "Produced",
    "TopicPartition",
    "ask",
    "end_transaction",
    "metadata",
    "produce",
    "serves",
]

OLD_RESOURCES: Final = pytest.mark.filterwarnings("ignore:.* is deprecated. Use files:DeprecationWarning")
TIMEOUT_S: Final = 30
LOOPBACK: Final = "127.0.0.1"

Answer = TypeVar("Answer", bound=Payload)


def metadata(port: int, *, host: str = LOOPBACK) -> MetadataResponse:
    """All nodes and topics that the broker on `port` knows; raises `OSError` where none answers."""
    question = MetadataRequest(topics=None, allow_auto_topic_creation=False, include_topic_authorized_operations=False)
    return ask(port, question, MetadataResponse, host=host)


class Produced(NamedTuple):
    """What a broker says to a batch."""

    code: int  # of Kafka's errors, 0 for none
    base_offset: int  # of the batch, also if it was there before; -1 where it was refused


def produce(
    port: int, topic: str, partition: int, batch: bytes, *, transactional_id: str | None = None, acks: int = -1
) -> Produced:
    """Send a batch to the broker on `port` of loopback as it is, whatever its producer and sequence are."""
    place = PartitionProduceData(index=i32(partition), records=Records.parse(batch))
    question = ProduceRequest(
        transactional_id=None if transactional_id is None else TransactionalId(transactional_id),
        acks=i16(acks),
        timeout=i32Timedelta.parse(timedelta(seconds=TIMEOUT_S)),
        topic_data=(TopicProduceData(name=TopicName(topic), partition_data=(place,)),),
    )
    [told] = ask(port, question, ProduceResponse).responses
    [answer] = told.partition_responses
    return Produced(int(answer.error_code), answer.base_offset)


def end_transaction(port: int, transactional_id: str, producer_id: int, epoch: int, *, commit: bool) -> int:
    """End a transaction for whoever has this identity; the code of Kafka's error, 0 for none."""
    question = EndTxnRequest(
        transactional_id=TransactionalId(transactional_id),
        producer_id=ProducerId(producer_id),
        producer_epoch=i16(epoch),
        committed=commit,
    )
    return int(ask(port, question, EndTxnResponse).error_code)


def ask(port: int, question: Payload, kind: type[Answer], *, host: str = LOOPBACK) -> Answer:
    """Ask the node on `port`; raises `OSError` where none answers."""
    request = io.BytesIO()
    header = RequestHeader(
        request_api_key=question.__api_key__,
        request_api_version=question.__version__,
        correlation_id=i32(1),
        client_id="octavo-tests",
    )
    entity_writer(RequestHeader)(request, header)
    entity_writer(type(question))(request, question)
    with socket.create_connection((host, port), TIMEOUT_S) as connection:
        connection.sendall(struct.pack(">i", request.tell()) + request.getvalue())
        (size,) = struct.unpack(">i", _receive(connection, 4))
        answer = _receive(connection, size)
    _, at = entity_reader(ResponseHeader)(answer, 0)
    return entity_reader(kind)(answer, at)[0]


def serves(port: int, node_id: int, *, host: str = LOOPBACK) -> bool:
    """Whether a broker answers on `port`, and is let serve by its controller."""
    try:
        return any(broker.node_id == node_id for broker in metadata(port, host=host).brokers)
    except OSError:
        return False


def _receive(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise ConnectionResetError("the broker hung up")
        data += part
    return data
