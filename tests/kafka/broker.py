"""A real broker of Apache Kafka: one KRaft node, broker and controller at once, on loopback.

    with Broker(tmp_path / "data") as broker:
        broker.format()                              # only for a folder that nobody has written yet
        broker.start()                               # returns when clients are served
        client = KafkaConsumer(bootstrap_servers=broker.address)
        broker.stop()                                # or kill()
        assert broker.troubles == []                 # or lines_with("stray"): what it logged since it was started

A folder that something else prepared (Octavo, or another run) is started on as it is: node and cluster are those of its
`meta.properties`. Waiting is asking: nothing here sleeps for a time and hopes.
"""

from __future__ import annotations

import ctypes
import hashlib
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Literal, Self

from tests.kafka import releases
from tests.kafka.client import serves
from tests.ports import free_port, free_ports
from tests.retention import KEPT_FOR_NOW

Quorum = Literal["static", "dynamic"]  # controller.quorum.voters, or controller.quorum.bootstrap.servers (KIP-853)

START_TIMEOUT_S: Final = 240
STOP_TIMEOUT_S: Final = 120
_TROUBLE: Final = re.compile(
    r"stray|recovering|corrupt|invalid messages|truncating|could not find offset index|index file .* rebuil|^ERROR",
    re.IGNORECASE,
)
# The last four where the machine is busy: a heartbeat comes too late, the node is not the leader for a while, a broker
# that is stopped soon has not registered its controller yet, and the controller finds itself slow.
_USUAL: Final = re.compile(
    "__cluster_metadata|ExpiredBrokerHeartbeat|Stopped loading records|ControllerApis.*CONTROLLER_REGISTRATION|"
    "EventPerformanceMonitor"
)
_ASK_AGAIN_S: Final = 0.05  # how long to wait for the process to end before it is asked again
_PR_SET_PDEATHSIG: Final = 1
_LEVELS: Final = {
    "org.apache.kafka.common.config.AbstractConfig": "error",  # prints every setting, twice
    "kafka.server.KafkaConfig": "error",
}
_JAVA: Final = (
    "-Xmx384m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",  # tests are short: quick to start beats quick in the end
    "-XX:-UsePerfData",
    "-Djava.awt.headless=true",
    "-Dorg.slf4j.simpleLogger.showThreadName=false",
    *(f"-Dorg.slf4j.simpleLogger.log.{name}={level}" for name, level in _LEVELS.items()),
)


class BrokerFailed(Exception):
    """The broker did not do what it was told; the text ends in the last lines of its log."""


class Broker:
    """One node on one or several data folders. A context manager, which leaves no process behind."""

    def __init__(
        self,
        *folders: Path,
        settings: Mapping[str, str] | None = None,
        quorum: Quorum = "static",
        release: releases.Name = "broker",
        options: Sequence[str] | None = None,
        logs_requests: bool = False,
    ) -> None:
        """`settings` replace, or are added to, those of server.properties; raises `KafkaUnavailable`.

        logs_requests: every request that the node answers is in its log, field by field
        """
        assert folders
        self.folders: Final = folders
        self.release: Final = releases.find(release)
        self._java = releases.java()
        self._options = _class_archive(self.release) if options is None else options
        if logs_requests:
            self._options = [*self._options, "-Dorg.slf4j.simpleLogger.log.kafka.request.logger=trace"]
        self._settings = dict(settings or {})
        self._quorum = quorum
        self._port, self._controller_port = free_ports(2)
        self._process: subprocess.Popen[bytes] | None = None
        self._work = folders[0].parent / f"{folders[0].name}.broker"
        self._work.mkdir(parents=True, exist_ok=True)
        self._log = self._work / "log"
        self._log.touch()

    @property
    def address(self) -> str:
        """What a client's bootstrap.servers takes."""
        return f"127.0.0.1:{self._port}"

    @property
    def port(self) -> int:
        """Where it listens, on loopback."""
        return self._port

    @property
    def controller_address(self) -> str:
        """Where the controller listens."""
        return f"127.0.0.1:{self._controller_port}"

    @property
    def node_id(self) -> int:
        """The node that the folder belongs to; 1 where nobody has said so yet."""
        told = self._meta_property("node.id") or self._meta_property("broker.id")
        return int(told) if told else 1

    @property
    def cluster_id(self) -> str | None:
        """The cluster that the folder belongs to."""
        return self._meta_property("cluster.id")

    @property
    def lines(self) -> list[str]:
        """Every line that was logged since the last start."""
        return self._log.read_text("utf-8", errors="replace").splitlines()

    def lines_with(self, *words: str) -> list[str]:
        """The lines that have one of `words` in them, in any case."""
        pattern = re.compile("|".join(map(re.escape, words)), re.IGNORECASE)
        return [line for line in self.lines if pattern.search(line)]

    @property
    def troubles(self) -> list[str]:
        """What the broker had to mend, put aside or give up in its partitions; not what it always does at a start."""
        return [line for line in self.lines if _TROUBLE.search(line) and not _USUAL.search(line)]

    # Doing

    def take_part_in(self, other: Broker, *, node_id: int) -> None:
        """Be a broker of the cluster whose controller is `other`; before it is formatted."""
        self._settings |= {
            "process.roles": "broker",
            "node.id": str(node_id),
            "listeners": f"PLAINTEXT://{self.address}",
            "advertised.listeners": f"PLAINTEXT://{self.address}",
            "controller.quorum.voters": f"{other.node_id}@{other.controller_address}",
        }

    def take_part_by(self, bootstrap: str, *, node_id: int, settings: Mapping[str, str]) -> None:
        """Be a broker of the cluster whose controllers are found at `bootstrap`; before it is formatted."""
        self._settings |= {
            "process.roles": "broker",
            "node.id": str(node_id),
            "listeners": f"PLAINTEXT://{self.address}",
            "advertised.listeners": f"PLAINTEXT://{self.address}",
            "controller.quorum.bootstrap.servers": bootstrap,
            **settings,
        }

    def ask_itself_through(self, address: str) -> str:
        """Have its requests to itself, such as those that write markers, go to `address`; return whom they are for."""
        inside = f"127.0.0.1:{free_port()}"
        others = f"PLAINTEXT://{self.address},CONTROLLER://{self.controller_address}"
        self._settings |= {
            "listeners": f"{others},INSIDE://{inside}",
            "advertised.listeners": f"{others},INSIDE://{address}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,INSIDE:PLAINTEXT",
            "inter.broker.listener.name": "INSIDE",
        }
        return inside

    def format(self, *, cluster_id: str = "b2N0YXZvIGluIGEgdGVzdA", metadata_version: str | None = None) -> None:
        """Has Kafka's own tool make the folders a node's; raises `BrokerFailed`."""
        arguments = ["format", "--cluster-id", cluster_id, "--config", str(self._write_settings())]
        if self._quorum == "dynamic":
            arguments.append("--standalone")
        if metadata_version is not None:
            arguments += ["--release-version", metadata_version]
        with self._log.open("wb") as log:
            done = subprocess.run(self._command("kafka.tools.StorageTool", *arguments), stdout=log, stderr=log)
        if done.returncode != 0:
            raise self._failed("the folder was not formatted")

    def start(self) -> None:
        """Starts the node and returns when it serves clients; raises `BrokerFailed`, and then it does not run."""
        self.launch()
        self.await_ready()

    def launch(self) -> None:
        """Starts the node, and returns at once: several can start at the same time."""
        assert self._process is None, "it runs already"
        command = self._command("kafka.Kafka", str(self._write_settings()))
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=die_with_parent
            )

    def await_ready(self) -> None:
        """Returns when the node serves clients; raises `BrokerFailed`, and then it does not run."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self.is_ready():
            if self._ended(_ASK_AGAIN_S):
                self._process = None
                raise self._failed("the broker ended while it started")
            if time.monotonic() > deadline:
                self.kill()
                raise self._failed(f"the broker serves nobody after {START_TIMEOUT_S} s")

    def is_ready(self) -> bool:
        """Whether it serves clients."""
        return serves(self._port, self.node_id)

    def stop(self) -> None:
        """Has the node shut down cleanly; raises `BrokerFailed` where it has to be killed."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGTERM)
        if not self._ended(STOP_TIMEOUT_S):
            self.kill()
            raise self._failed(f"the broker was still there {STOP_TIMEOUT_S} s after SIGTERM")
        self._process = None

    @property
    def runs(self) -> bool:
        """Whether it was started, and neither stopped nor killed since."""
        return self._process is not None

    @property
    def process_id(self) -> int:
        """Of the node that runs, for signals such as SIGSTOP."""
        assert self._process is not None, "it does not run"
        return self._process.pid

    def kill(self) -> None:
        """Ends the node at once, as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    # Inside

    def _ended(self, timeout_s: float) -> bool:
        assert self._process is not None
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    def _command(self, main: str, *arguments: str) -> Sequence[str]:
        jars = ":".join(map(str, self.release.jars))
        return [self._java, *_JAVA, *self._options, "-cp", jars, main, *arguments]

    @property
    def settings(self) -> dict[str, str]:
        """All lines of its server.properties."""
        settings = {
            "process.roles": "broker,controller",
            "node.id": str(self.node_id),
            "listeners": f"PLAINTEXT://{self.address},CONTROLLER://{self.controller_address}",
            "advertised.listeners": f"PLAINTEXT://{self.address},CONTROLLER://{self.controller_address}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": ",".join(map(str, self.folders)),
            # One node is all there is.
            "offsets.topic.num.partitions": "1",
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.num.partitions": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "share.coordinator.state.topic.num.partitions": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            **KEPT_FOR_NOW,
            # What would only make tests wait, or use memory.
            "group.initial.rebalance.delay.ms": "0",
            "controller.quorum.election.timeout.ms": "200",
            "broker.heartbeat.interval.ms": "100",
            "broker.session.timeout.ms": "6000",  # after a crash, as long as this nobody else is node 1
            "initial.broker.registration.timeout.ms": "30000",
            "log.cleaner.dedupe.buffer.size": str(4 << 20),
            "num.network.threads": "1",
            "num.io.threads": "2",
            "num.replica.fetchers": "1",
            "background.threads": "2",
        }
        if self._quorum == "static":
            settings["controller.quorum.voters"] = f"{self.node_id}@{self.controller_address}"
        else:
            settings["controller.quorum.bootstrap.servers"] = self.controller_address
        return settings | self._settings

    def _write_settings(self) -> Path:
        path = self._work / "server.properties"
        path.write_text("".join(f"{name}={value}\n" for name, value in self.settings.items()), "utf-8")
        return path

    def _meta_property(self, name: str) -> str | None:
        for folder in self.folders:
            path = folder / "meta.properties"
            if path.exists():
                found = re.search(rf"^{re.escape(name)}=(.*)$", path.read_text("utf-8"), re.MULTILINE)
                if found is not None:
                    return found[1].strip()
        return None

    def _failed(self, what: str) -> BrokerFailed:
        return BrokerFailed("\n".join([what, *self.lines[-30:]]))


def _class_archive(release: releases.Release) -> Sequence[str]:
    """The option for an archive of Kafka's classes as Java has them when they are loaded and verified.

    With it a broker starts in half the time. It is made by the first that needs it, of a broker that starts and stops.
    """
    java = Path(releases.java()).resolve()
    made_from = (java, java.stat().st_mtime_ns, release.jars)
    digest = hashlib.sha256(repr(made_from).encode()).hexdigest()[:12]
    archive = releases.BUILD / f"classes-{release.version}-{digest}.jsa"
    with releases.lock(releases.BUILD / "classes.lock"):  # several test workers start at once
        if not archive.exists():
            with tempfile.TemporaryDirectory(dir=releases.BUILD) as folder:
                unfinished = Path(folder, archive.name)
                option = f"-XX:ArchiveClassesAtExit={unfinished}"
                with Broker(Path(folder, "data"), release=release.name, options=[option]) as broker:
                    broker.format()
                    broker.start()
                    broker.stop()
                unfinished.rename(archive)
    return [f"-XX:SharedArchiveFile={archive}"]


def die_with_parent() -> None:
    """Have Linux end this process with the one that started it: no test run leaves one behind, however it ends."""
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is not None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
