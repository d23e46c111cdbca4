"""kcat, the command: `Kcat`."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import IO, Any, Final, NoReturn

from tests.clients.driver import (
    LARGEST_RECORD,
    PATIENCE_S,
    CannotDo,
    ClientError,
    ConsumeSettings,
    Headers,
    ProduceSettings,
    Record,
    Start,
)
from tests.clients.kcat_groups import KcatGroups, KcatTransactions

# Between records, and between a key and a value: nothing that is in a record.
_BEHIND_RECORD: Final = (b"\x01\x02\x03\x04\x05\x06", r"\x01\x02\x03\x04\x05\x06")
_BEHIND_KEY: Final = (b"\x06\x05\x04\x03\x02\x01", r"\x06\x05\x04\x03\x02\x01")
_STARTS: Final = {"earliest": "beginning", "latest": "end"}
_FORMAT: Final = r"%p %o %T %K %S %h\n%k%s"  # both lengths are -1 for null
_CODES: Final = {"Broker: Message size too large": 10, "Broker: Unknown topic or partition": 3}


class Kcat:
    """A driver that runs kcat for each call."""

    def __init__(self, address: str) -> None:
        self._command: Final = ["kcat", "-b", address, "-m", str(PATIENCE_S), "-X", "reconnect.backoff.max.ms=500"]
        self.groups: Final = KcatGroups(self._command)
        self.transactions: Final = KcatTransactions()

    def produce(self, topic: str, records: Sequence[Record], settings: ProduceSettings) -> list[int]:
        if any(record.timestamp_ms is not None for record in records):
            raise CannotDo("it has no option for the time of a record")
        names = {
            "compression.type": settings.get("compression"),
            "acks": settings.get("acks"),
            "enable.idempotence": settings.get("idempotence"),
            "batch.size": settings.get("batch_bytes"),
            "linger.ms": 1,
            "message.max.bytes": LARGEST_RECORD,
        }
        options = [f"{name}={str(value).lower()}" for name, value in names.items() if value is not None]
        for (partition, *_), run in groupby(sorted(records, key=lambda record: record.partition), key=_shape):
            self._produce(topic, partition, list(run), [part for option in options for part in ("-X", option)])
        return [-1] * len(records)

    def _produce(self, topic: str, partition: int, records: Sequence[Record], options: Sequence[str]) -> None:
        """Produce records that have the same headers, and of which all or none have a key and a value."""
        key, value = records[0].key, records[0].value
        arguments: list[str | bytes] = [
            "-P",
            "-E",
            "-t",
            topic,
            "-p",
            str(partition),
            "-D",
            _BEHIND_RECORD[1],
            *options,
        ]
        if key is not None:
            arguments += ["-K", _BEHIND_KEY[1]]
        if value is None:
            arguments.append("-Z")
        if (key is None and b"" in {record.value for record in records}) or (key == b"" and value is None):
            raise CannotDo("it takes an empty line for no record, and with -Z an empty key for null")
        if any(b"\0" in (content or b"") for _, content in records[0].headers):
            raise CannotDo("its headers are arguments of a command, which end at a zero")
        for name, content in records[0].headers:
            arguments += ["-H", name.encode() + (b"" if content is None else b"=" + content)]
        lines = [
            (b"" if record.key is None else record.key + _BEHIND_KEY[0]) + (record.value or b"") for record in records
        ]
        self._run(*arguments, stdin=b"".join(line + _BEHIND_RECORD[0] for line in lines))

    def consume(
        self, topic: str, partition: int, start: Start, count: int, settings: ConsumeSettings
    ) -> Iterator[Record]:
        arguments = ["-C", "-E", "-u", "-q", "-t", topic, "-p", str(partition), "-c", str(count), "-f", _FORMAT]
        arguments += ["-o", _STARTS[start] if isinstance(start, str) else str(start)]
        arguments += ["-X", "topic.auto.offset.reset=earliest"]
        if (size := settings.get("partition_bytes")) is not None:
            arguments += ["-X", f"max.partition.fetch.bytes={size}"]
        if (wait_ms := settings.get("max_wait_ms")) is not None:
            arguments += ["-X", f"fetch.wait.max.ms={wait_ms}", "-X", f"socket.timeout.ms={wait_ms + 60_000}"]
        limit = ["timeout", str(PATIENCE_S)]
        with subprocess.Popen([*limit, *self._command, *arguments], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            try:
                for _ in range(count):
                    yield _read(process.stdout)
            finally:
                process.terminate()

    def offset_for_time(self, topic: str, partition: int, timestamp_ms: int) -> int | None:
        told = self._run("-Q", "-t", f"{topic}:{partition}:{timestamp_ms}")
        offset = int(told.split()[-1])
        return None if offset < 0 else offset

    def offsets(self, topic: str, partition: int) -> tuple[int, int]:
        earliest, end = (self.offset_for_time(topic, partition, special) for special in (-2, -1))
        assert earliest is not None
        assert end is not None
        return earliest, end

    def partitions(self, topic: str, *, may_create: bool) -> int:
        (found,) = self._metadata("-t", topic, "-X", f"allow.auto.create.topics={str(may_create).lower()}")
        return len(found["partitions"])

    def list_topics(self) -> list[str]:
        return [topic["topic"] for topic in self._metadata()]

    def create_topic(self, topic: str, partitions: int, config: Mapping[str, str]) -> None:
        _refuse()

    def add_partitions(self, topic: str, total: int) -> None:
        _refuse()

    def delete_topic(self, topic: str) -> None:
        _refuse()

    def describe_config(self, topic: str) -> dict[str, str]:
        _refuse()

    def replace_config(self, topic: str, config: Mapping[str, str]) -> None:
        _refuse()

    def change_config(self, topic: str, config: Mapping[str, str | None]) -> None:
        _refuse()

    def delete_records(self, topic: str, partition: int, before: int) -> int:
        _refuse()

    def close(self) -> None:
        self.groups.close()

    # Inside

    def _run(self, *arguments: str | bytes, stdin: bytes = b"") -> bytes:
        done = subprocess.run([*self._command, *arguments], input=stdin, capture_output=True, timeout=PATIENCE_S)
        failed = re.search(r"Delivery failed for message: (.*)|ERROR: .*: (Broker: .*)", done.stderr.decode())
        if failed is not None or done.returncode:
            reason = "" if failed is None else (failed[1] or failed[2])
            raise ClientError(_CODES.get(reason), f"exit code {done.returncode}: {done.stderr.decode()}")
        return done.stdout

    def _metadata(self, *arguments: str) -> list[dict[str, Any]]:
        return list(json.loads(self._run("-L", "-J", *arguments))["topics"])


def _shape(record: Record) -> tuple[int, Headers, bool, bool, bool, bool]:
    """Return what records have in common that one process produces."""
    return (
        record.partition,
        record.headers,
        record.key is None,
        record.value is None,
        record.key == b"",
        not record.value,
    )


def _read(stdout: IO[bytes]) -> Record:
    head = stdout.readline()
    if not head:
        raise ClientError(None, f"no record within {PATIENCE_S} s")
    partition, offset, timestamp_ms, key_size, value_size, *named = head.rstrip(b"\n").split(b" ", 5)
    return Record(
        key=_read_bytes(stdout, int(key_size)),
        value=_read_bytes(stdout, int(value_size)),
        headers=_headers(named[0]) if named else (),
        timestamp_ms=int(timestamp_ms),
        partition=int(partition),
        offset=int(offset),
    )


def _read_bytes(stdout: IO[bytes], size: int) -> bytes | None:
    return None if size < 0 else stdout.read(size)


def _headers(text: bytes) -> Headers:
    """Return headers that kcat has printed, which no test gives commas, and whose value none makes `NULL`."""
    pairs = [pair.partition(b"=")[::2] for pair in text.split(b",") if pair]
    return tuple((name.decode(), None if value == b"NULL" else value) for name, value in pairs)


def _refuse() -> NoReturn:
    raise CannotDo("it does not administer topics")
