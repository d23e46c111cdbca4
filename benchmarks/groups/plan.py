"""Plans for the load generator: requests made beforehand, and what it does with their answers.

The generator is a small program in C. One in Python would take longer than the brokers do, and that would be all that
is measured.
"""

from __future__ import annotations

import hashlib
import shutil
import struct
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from benchmarks.broker.passes import Pass
from benchmarks.broker.served import Served
from benchmarks.data import FOLDER
from octavo.broker.wire.api_keys import APIS, FIND_COORDINATOR
from octavo.broker.wire.messages import Struct, write_request
from octavo.client.connection import BrokerConnection
from octavo.errors import ErrorCode
from tests.kafka.releases import KafkaUnavailable
from tests.server.raw import header

_NONE: Final = -1
_NUMBER: Final = struct.Struct("=i")
_NUMBERS: Final = struct.Struct("=12i")
_COPY: Final = struct.Struct("=4i")
_SIZE: Final = struct.Struct(">i")
_PASSING: Final = {
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.CONCURRENT_TRANSACTIONS,
}


class Copy(NamedTuple):
    """Bytes of an answer that go into the frame of a step."""

    begin: int  # in the answer
    step: int
    to: int  # in the frame
    size: int


@dataclass(frozen=True)
class Step:
    """A request, and what its answer has to be."""

    frame: bytes
    error_at: int = _NONE
    proceed: int = ErrorCode.NONE  # with this code the next step follows
    retry: int = ErrorCode.NONE  # with this code the step is repeated
    batch_at: int = _NONE
    sequences: int = 0  # that each round adds to the sequence number of the batch
    epoch_at: int = _NONE  # where the answer has a member's epoch; then the step is repeated until that is reached
    wanted_epoch: int = 0
    wanted_partitions: int = 0
    learner: int = 0  # the step that is told the epoch and the assignment
    epoch_to: int = 0
    copies: Sequence[Copy] = ()

    def encode(self) -> bytes:
        """Return the step as the program reads it."""
        numbers = _NUMBERS.pack(
            len(self.frame),
            self.error_at,
            self.proceed,
            self.retry,
            self.batch_at,
            self.sequences,
            self.epoch_at,
            self.wanted_epoch,
            self.wanted_partitions,
            self.learner,
            self.epoch_to,
            len(self.copies),
        )
        return numbers + self.frame + b"".join(_COPY.pack(*each) for each in self.copies)


@dataclass
class Plan:
    """What is sent on each connection. The first connection is the first to send."""

    connections: list[tuple[int, Sequence[Step]]] = field(default_factory=list)  # rounds, and the steps of a round

    def add(self, *steps: Step, rounds: int = 1) -> None:
        """Add a connection."""
        self.connections.append((rounds, steps))

    def encode(self) -> bytes:
        """Return the plan as the program reads it."""
        parts = [_NUMBER.pack(len(self.connections))]
        for rounds, steps in self.connections:
            parts += (_NUMBER.pack(rounds), _NUMBER.pack(len(steps)))
            parts += [each.encode() for each in steps]
        return b"".join(parts)

    def run(self, broker: Served) -> Pass:
        """Connect, and then do everything. Raises `RuntimeError` if an answer is not what it has to be."""
        host, _, port = broker.address.rpartition(":")
        with tempfile.NamedTemporaryFile() as file:
            file.write(self.encode())
            file.flush()
            with subprocess.Popen(
                [_compiled(), host, port, file.name], stdin=subprocess.PIPE, stdout=subprocess.PIPE
            ) as process:
                assert process.stdin is not None
                assert process.stdout is not None
                try:
                    process.stdout.readline()
                    before = broker.cpu_seconds()
                    process.stdin.write(b"\n")
                    process.stdin.flush()
                    answer = process.stdout.readline()
                    cpu_seconds = broker.cpu_seconds() - before
                finally:
                    process.stdin.close()
        if not answer:
            raise RuntimeError(f"{broker.name} refused something: what raw_load.c wrote to standard error says what")
        return Pass(float(answer), cpu_seconds)


def frame(api_key: int, version: int, content: Mapping[str, Any]) -> bytes:
    """Return a request with its size and its header."""
    flexible = version >= APIS[api_key].flexible
    inside = header(api_key, version, client_id="load", flexible=flexible) + write_request(api_key, version, content)
    return _SIZE.pack(len(inside)) + inside


def position(api_key: int, version: int, content: Mapping[str, Any], name: str) -> int:
    """Return where a field of the request is in its frame."""
    one, other = (frame(api_key, version, {**content, name: number}) for number in (0, -1))
    return next(at for at, (a, b) in enumerate(zip(one, other, strict=True)) if a != b)


def error_position(api_key: int, version: int, before: int = 4) -> int:
    """Return where an answer has its error code, after so many bytes of the body: usually the throttle time."""
    return (5 if version >= APIS[api_key].flexible else 4) + before


def connect(broker: Served) -> BrokerConnection:
    """Return a connection for what is prepared."""
    host, _, port = broker.address.rpartition(":")
    return BrokerConnection(host, int(port))


def find_coordinator(connection: BrokerConnection, key: str, *, transactional: bool = False) -> None:
    """Wait until a group or a transactional id has a coordinator: the first one has its topic created."""
    content = {"key_type": int(transactional), "coordinator_keys": [key], "key": key}
    while connection.ask(FIND_COORDINATOR, content).coordinators[0].error_code:
        time.sleep(0.1)


def ask_until_loaded(
    connection: BrokerConnection, api_key: int, content: Mapping[str, Any], newest: int | None = None
) -> Struct:
    """Ask a coordinator, again if it is still loading its partition."""
    while True:
        answer = connection.ask(api_key, content, newest=newest)
        if answer.error_code not in _PASSING:
            return answer
        time.sleep(0.1)


@cache
def _compiled() -> Path:
    """Return the program, which is compiled if it is missing. Raises `KafkaUnavailable` without a compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        raise KafkaUnavailable("this benchmark needs a C compiler (`cc`).")
    source = Path(__file__).parent / "raw_load.c"
    target = FOLDER / f"raw_load-{hashlib.sha256(source.read_bytes()).hexdigest()[:12]}"
    if not target.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        subprocess.run([compiler, "-O2", "-o", target, source], check=True)
    return target
