"""Apache Kafka's broker as a peer: tuned to be fast once it is warm, with its default number of threads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from benchmarks.measure import tell
from tests.kafka.broker import Broker

_JAVA: Final = ("-Xmx1g", "-XX:+UseSerialGC", "-XX:-UsePerfData", "-Djava.awt.headless=true")
DEFAULTS: Final = {  # of Kafka; the broker of tests has fewer threads, and more heartbeats, which are work as well
    "num.network.threads": "3",
    "num.io.threads": "8",
    "broker.heartbeat.interval.ms": "2000",
}


class WarmBroker(Broker):
    """A broker whose JVM may compile all that is worth it."""

    @property
    def pid(self) -> int:
        """The process id of the broker, which runs."""
        assert self._process is not None
        return self._process.pid

    def _command(self, main: str, *arguments: str) -> Sequence[str]:
        java, *_ = super()._command(main)
        return [java, *_JAVA, "-cp", ":".join(map(str, self.release.jars)), main, *arguments]


@contextmanager
def warm_broker(folder: Path, settings: Mapping[str, str] | None = None) -> Iterator[WarmBroker]:
    """Run a broker on a new folder. Raises `KafkaUnavailable`."""
    tell("Apache Kafka starts")
    with WarmBroker(folder, settings={**DEFAULTS, **(settings or {})}) as broker:
        broker.format()
        broker.start()
        yield broker
        broker.stop()
