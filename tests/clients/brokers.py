"""The brokers that scenarios run against: `Brokers`, of Octavo or of Apache Kafka."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Final, Protocol, Self

from tests.clients.proxy import Proxy
from tests.kafka.broker import Broker as ApacheKafka
from tests.ports import free_port
from tests.retention import KEPT_FOR_NOW

_PATIENCE_S: Final = 60
# Several tests want a topic to be gone, or a record to be late, and none wants to wait for the files.
_SETTINGS: Final = {
    **KEPT_FOR_NOW,
    "num.partitions": "1",
    # Members that are gone are missed soon.
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "1500",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "100",
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.regex.refresh.interval.ms": "10000",  # the least that Kafka takes
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
}


class Broker(Protocol):
    """A broker in a process of its own."""

    @property
    def address(self) -> str: ...

    @property
    def addresses(self) -> Sequence[str]:
        """Those of all brokers of its cluster: clients may ask any of them."""
        ...

    @property
    def folder(self) -> Path: ...

    def start(self) -> None: ...

    def kill(self) -> None: ...

    def stop(self) -> None: ...


MakeBroker = Callable[[Path, Mapping[str, str]], Broker]


class OctavoBroker:
    """`octavo serve` on a fixed port of loopback."""

    def __init__(self, folder: Path, settings: Mapping[str, str]) -> None:
        self.folder: Final = folder
        self._port: Final = free_port()
        self._config: Final = folder.with_suffix(".properties")
        lines = {"listeners": f"PLAINTEXT://{self.address}", **settings}
        self._config.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
        self._process: subprocess.Popen[str] | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._port}"

    @property
    def addresses(self) -> Sequence[str]:
        return (self.address,)

    def start(self) -> None:
        command = [sys.executable, "-m", "octavo.cli", "serve"]
        command += ["--data", str(self.folder), "--config", str(self._config)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        assert self._process.stdout.readline().startswith("serving ")

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        assert self._end(signal.SIGTERM) == 0

    def _end(self, how: signal.Signals) -> int:
        assert self._process is not None
        assert self._process.stdout is not None
        self._process.send_signal(how)
        code = self._process.wait(_PATIENCE_S)
        self._process.stdout.close()
        return code


class ApacheKafkaBroker:
    """Apache Kafka, as tests/kafka starts it."""

    def __init__(self, folder: Path, settings: Mapping[str, str]) -> None:
        self.folder: Final = folder
        self._broker: Final = ApacheKafka(folder, settings=settings)
        self._broker.format()

    @property
    def address(self) -> str:
        return self._broker.address

    @property
    def addresses(self) -> Sequence[str]:
        return (self.address,)

    def start(self) -> None:
        self._broker.start()

    def kill(self) -> None:
        self._broker.kill()

    def stop(self) -> None:
        self._broker.stop()


class Brokers:
    """The brokers of a test run, each started when it is first asked for."""

    def __init__(self, make: MakeBroker, folder: Path) -> None:
        self._make: Final = make
        self._folder: Final = folder
        self._running: Final = ExitStack()
        self._main: Broker | None = None
        self._strict: Broker | None = None
        self._proxy: Proxy | None = None

    @property
    def main(self) -> Broker:
        """The one for nearly everything. Topics are created on the way."""
        if self._main is None:
            self._main = self._start(self._make(self._folder / "main", _SETTINGS))
        return self._main

    @property
    def strict(self) -> Broker:
        """One that creates no topics on the way, and that may be killed: it is behind `proxy`."""
        if self._strict is None:
            settings = {
                "auto.create.topics.enable": "false",
                "advertised.listeners": f"PLAINTEXT://{self.proxy.address}",
            }
            self._strict = self._start(self._make(self._folder / "strict", _SETTINGS | settings))
            self.proxy.upstream = self._strict.address
        return self._strict

    @property
    def proxy(self) -> Proxy:
        """By which clients reach `strict`."""
        if self._proxy is None:
            self._proxy = self._running.enter_context(Proxy())
        return self._proxy

    def _start(self, broker: Broker) -> Broker:
        broker.start()
        self._running.callback(broker.stop)
        return broker

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._running.close()
