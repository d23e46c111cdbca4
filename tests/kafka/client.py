"""Clients for tests: the smallest there can be, which asks a broker for its metadata; and kafka-python's real ones.

Whoever uses the real ones has `pytestmark = OLD_RESOURCES`: they load their schemas in a way that Python warns of.
"""

from __future__ import annotations

import io
import socket
import struct
import warnings
from typing import Final

import pytest
from kio.schema.metadata.v12 import MetadataRequest, MetadataResponse
from kio.schema.request_header.v2 import RequestHeader
from kio.schema.response_header.v1 import ResponseHeader
from kio.serial import entity_reader, entity_writer
from kio.static.primitive import i16, i32

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
    from kafka.admin import ConfigResource, ConfigResourceType

__all__ = [
    "ConfigResource",
    "ConfigResourceType",
    "KafkaAdminClient",
    "KafkaConsumer",
    "KafkaProducer",
    "OLD_RESOURCES",
    "TopicPartition",
    "metadata",
    "serves",
]

OLD_RESOURCES: Final = pytest.mark.filterwarnings("ignore:.* is deprecated. Use files:DeprecationWarning")
TIMEOUT_S: Final = 5


def metadata(port: int) -> MetadataResponse:
    """All nodes and topics that the broker on `port` of loopback knows; raises `OSError` where none answers."""
    request = io.BytesIO()
    header = RequestHeader(
        request_api_key=i16(MetadataRequest.__api_key__),
        request_api_version=MetadataRequest.__version__,
        correlation_id=i32(1),
        client_id="octavo-tests",
    )
    entity_writer(RequestHeader)(request, header)
    question = MetadataRequest(topics=None, allow_auto_topic_creation=False, include_topic_authorized_operations=False)
    entity_writer(MetadataRequest)(request, question)
    with socket.create_connection(("127.0.0.1", port), TIMEOUT_S) as connection:
        connection.sendall(struct.pack(">i", request.tell()) + request.getvalue())
        (size,) = struct.unpack(">i", _receive(connection, 4))
        answer = _receive(connection, size)
    _, at = entity_reader(ResponseHeader)(answer, 0)
    return entity_reader(MetadataResponse)(answer, at)[0]


def serves(port: int, node_id: int) -> bool:
    """Whether a broker answers on `port`, and is let serve by its controller."""
    try:
        return any(broker.node_id == node_id for broker in metadata(port).brokers)
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
