"""Fixtures that all tests share: Java, Apache Kafka as the judge, and the two kinds of kernels.

A test that needs Java asks for the fixture `java`, or for one that does so: those of Kafka and of Spark. That marks it
`java`, which `make check` leaves out. A test that is not marked cannot start Java, whatever machine it runs on.

A test that asks for one of Kafka's is marked `kafka` too. Where Java or Kafka cannot be had such tests are skipped with
the reason; where `CI` is set they fail, so that no green run ever went without its judge.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Final

import hypothesis
import pytest

from tests.kafka import releases
from tests.kafka.judge import Judge
from tests.kafka.releases import KafkaUnavailable, Name
from tests.machines.untried import pytest_unconfigure as pytest_unconfigure  # says at the end what was skipped
from tests.seconds import expected

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell starts what runs in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)

pytest_plugins = ["tests.cores", "tests.soak.plugin"]

hypothesis.settings.register_profile("octavo", deadline=None)  # a busy machine is not a fault
hypothesis.settings.load_profile("octavo")

_KAFKAS: Final = {"kafka", "kafka_broker", "kafka39", "new_broker", "shared_cluster", "topics"}
_SPARKS: Final = {"spark", "topics"}
_NO_JAVA: Final = Path(__file__).parent / "no_java"  # a `java` that only says what to do


@pytest.fixture(params=["interpreted", "compiled"])
def each_kind_of_kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Runs a test twice: one source, and one meaning, whether it is compiled or not. Says which it is."""
    kind: str = request.param
    monkeypatch.setenv("OCTAVO_KERNELS", kind)
    return kind


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Iterator[None]:
    for item in items:
        fixtures = _fixtures(item)
        if "java" in fixtures:
            item.add_marker("java")
        if _KAFKAS & fixtures:
            item.add_marker("kafka")
    yield
    if "PYTEST_XDIST_WORKER" in os.environ:
        items[:] = _spread(items)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says which network the nodes of clusters had, if there were any."""
    reports = (report for key in ("passed", "failed") for report in terminalreporter.getreports(key))
    for network in {value for report in reports for name, value in report.user_properties if name == "network"}:
        terminalreporter.write_line(f"The nodes of clusters talked through {network}.")


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Has a test of what an older Spark lacks pass there only if the test fails with the sentence that says so."""
    marker = pyfuncitem.get_closest_marker("since_spark")
    refusal = None if marker is None else _refusal(*marker.args)
    if refusal is None:
        return (yield)
    with pytest.raises(Exception, match=refusal):
        yield
    return True


def _refusal(needed: str) -> str | None:
    """The end of the sentence by which something is refused that needs a newer Spark, if it is."""
    from pyspark import __version__ as running  # not above: most tests do without

    if tuple(map(int, running.split(".")[:2])) >= tuple(map(int, needed.split("."))):
        return None
    return re.escape(f" needs Spark {needed} or later, and this is Spark {running}")


def _fixtures(item: pytest.Item) -> set[str]:
    return set(getattr(item, "fixturenames", ()))


def _spread(items: list[pytest.Item]) -> list[pytest.Item]:
    """Tests in an order in which each worker starts with what is slow, and no two start the same.

    `worksteal` gives each worker as many tests as the others, and who has done its own takes what another would do
    last. So the first share begins with Spark, the second with Apache Kafka, the third with whatever else takes
    seconds, and what anybody can do quickly stands last in each.
    """
    shares = max(2, int(os.environ["PYTEST_XDIST_WORKER_COUNT"]))
    slow: list[list[pytest.Item]] = [[] for _ in range(shares)]
    quick: list[pytest.Item] = []
    for item in items:
        lane = _lane(item)
        (quick if lane is None else slow[lane % shares]).append(item)
    spread: list[pytest.Item] = []
    size = len(items) / shares
    for number, share in enumerate(slow):
        filled = max(0, round((number + 1) * size) - len(spread) - len(share))
        spread += [*share, *quick[:filled]]
        del quick[:filled]
    return [*spread, *quick]


def _lane(item: pytest.Item) -> int | None:
    """Which worker starts with a test; `None` for one that is quick and needs nothing that is slow to start."""
    fixtures = _fixtures(item)
    if _SPARKS & fixtures:
        return 0
    if _KAFKAS & fixtures and "shared_cluster" not in fixtures:
        return 1
    return 2 if "java" in fixtures or item.nodeid in expected() else None


@pytest.fixture(autouse=True)
def compiled_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has kernels that are not in the cache be compiled by the test that needs them, and not meanwhile.

    Otherwise it would depend on the speed of the machine which of them are interpreted.
    """
    monkeypatch.setattr("octavo.records.kernels.compilation.elsewhere.start", lambda _: None)


@pytest.fixture(autouse=True)
def no_java_unasked(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Has a test fail that starts Java and is not marked so: `make check` would need Java for it."""
    if request.node.get_closest_marker("java") is None:
        monkeypatch.delenv("JAVA_HOME", raising=False)
        monkeypatch.setenv("PATH", str(_NO_JAVA), prepend=os.pathsep)


@pytest.fixture(scope="session")
def java() -> str:
    """The program that runs Java."""
    try:
        return releases.java()
    except KafkaUnavailable as reason:
        releases.do_without(reason)


def _judge(name: Name) -> Iterator[Judge]:
    try:
        judge = Judge(name)
    except KafkaUnavailable as reason:
        releases.do_without(reason)
    with judge:
        yield judge


@pytest.fixture(scope="session")
def kafka(java: str) -> Iterator[Judge]:
    """The newest client library: reads and writes everything."""
    yield from _judge("newest")


@pytest.fixture(scope="session")
def kafka_broker(java: str) -> Iterator[Judge]:
    """The newest release that comes with a broker: `validate` as well."""
    yield from _judge("broker")


@pytest.fixture(scope="session")
def kafka39(java: str) -> Iterator[Judge]:
    """Kafka 3.9: `validate` and `down_convert` as well."""
    yield from _judge("legacy")
