"""Small requests, made by hand and sent over raw connections: the same bytes for both brokers."""

from __future__ import annotations

import io
import socket
import struct
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import timedelta
from types import TracebackType
from typing import Final, Self

from kio.schema.fetch.v11.request import FetchPartition, FetchRequest, FetchTopic
from kio.schema.list_offsets.v9.request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kio.schema.metadata.v12.request import MetadataRequest, MetadataRequestTopic
from kio.schema.produce.v11.request import PartitionProduceData, ProduceRequest, TopicProduceData
from kio.schema.types import BrokerId, TopicName
from kio.serial import entity_writer
from kio.static.primitive import Records, i8, i16, i32, i32Timedelta, i64
from kio.static.protocol import Payload

from benchmarks.fresh import BATCH
from tests.server.raw import header

_SIZE: Final = struct.Struct(">i")
_PATIENCE_S: Final = 60


def produce(topic: str, batch: bytes = BATCH) -> bytes:
    """Return a request that produces one batch with acks=1."""
    place = PartitionProduceData(index=i32(0), records=Records.parse(batch))
    return _frame(
        ProduceRequest(
            transactional_id=None,
            acks=i16(1),
            timeout=i32Timedelta.parse(timedelta(seconds=_PATIENCE_S)),
            topic_data=(TopicProduceData(name=TopicName(topic), partition_data=(place,)),),
        )
    )


def metadata(topic: str) -> bytes:
    """Return a request for the metadata of one topic."""
    return _frame(
        MetadataRequest(
            topics=(MetadataRequestTopic(topic_id=None, name=TopicName(topic)),),
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=False,
        )
    )


def list_offsets(topic: str) -> bytes:
    """Return a request for the end of one partition."""
    place = ListOffsetsPartition(partition_index=i32(0), current_leader_epoch=i32(-1), timestamp=i64(-1))
    return _frame(
        ListOffsetsRequest(
            replica_id=BrokerId(-1),
            isolation_level=i8(0),
            topics=(ListOffsetsTopic(name=TopicName(topic), partitions=(place,)),),
        )
    )


def fetch(topic: str, offset: int = 0) -> bytes:
    """Return a request for the records of one partition, without a session."""
    place = FetchPartition(
        partition=i32(0),
        current_leader_epoch=i32(-1),
        fetch_offset=i64(offset),
        log_start_offset=i64(-1),
        partition_max_bytes=i32(1 << 20),
    )
    return _frame(
        FetchRequest(
            replica_id=BrokerId(-1),
            max_wait=i32Timedelta.parse(timedelta(seconds=1)),
            min_bytes=i32(1),
            max_bytes=i32(1 << 20),
            isolation_level=i8(0),
            session_id=i32(0),
            session_epoch=i32(-1),
            topics=(FetchTopic(topic=TopicName(topic), partitions=(place,)),),
            forgotten_topics_data=(),
            rack_id="",
        )
    )


def _frame(question: Payload) -> bytes:
    """Return a request with its size and its header."""
    body = io.BytesIO()
    entity_writer(type(question))(body, question)
    begin = header(question.__api_key__, question.__version__, flexible=question.__flexible__)
    return _SIZE.pack(len(begin) + body.tell()) + begin + body.getvalue()


class Connections:
    """Some raw connections to one broker."""

    def __init__(self, address: str, count: int) -> None:
        host, _, port = address.rpartition(":")
        with ExitStack() as opened:
            self._all: Final = [
                opened.enter_context(socket.create_connection((host, int(port)), _PATIENCE_S)) for _ in range(count)
            ]
            self._opened = opened.pop_all()
        for each in self._all:
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer: Final = bytearray(1 << 20)

    def ask(self, request: bytes) -> bytes:
        """Send a request on the first connection, and return the answer. Raises `ConnectionError`."""
        self._all[0].sendall(request)
        return self._answer(self._all[0])

    def ask_all(self, request: bytes, several: int = 1) -> None:
        """Send a request `several` times on each connection without waiting, and receive all answers."""
        for each in self._all:
            each.sendall(request * several)
        self._receive(self._all, several)

    def _receive(self, connections: Sequence[socket.socket], several: int) -> None:
        """Receive `several` answers on each connection, without looking at them: they are of one size."""
        for each in connections:
            size = _SIZE.size + len(self._answer(each))
            left = (several - 1) * size
            while left:
                received = each.recv_into(self._buffer, min(left, len(self._buffer)))
                if not received:
                    raise ConnectionError("the broker closed the connection")
                left -= received

    def _answer(self, connection: socket.socket) -> bytes:
        (size,) = _SIZE.unpack(_exactly(connection, _SIZE.size))
        return _exactly(connection, size)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._opened.close()


def _exactly(connection: socket.socket, size: int) -> bytes:
    received = b""
    while len(received) < size:
        more = connection.recv(size - len(received))
        if not more:
            raise ConnectionError("the broker closed the connection")
        received += more
    return received
