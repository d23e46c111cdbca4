"""Divides the time of a kind of soak among its tests, and gives them seeds. `python -m tests.soak` runs all kinds.

A test that can go on for any time asks for the fixture `soak`, and takes seeds from it until its share is over. Any
other one is done once, if there is time for it. The mark says how many seconds a test needs at least, if that is more
than a few: `@pytest.mark.soak(90)`.
"""

from __future__ import annotations

import datetime
import faulthandler
import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.soak.sharing import Claim, divide, turned

SEEDS_OF_A_RUN: Final = 100_003  # a prime, so that a run begins at another place of whatever is counted by seeds
_STDERR: Final = 2
_USUAL_S: Final = 5.0  # for a test that says nothing else
_ALONE_S: Final = 30.0  # for a test that nobody gave a share


def run_of_the_day() -> int:
    """The number of a run, where nothing is known of earlier ones."""
    return (datetime.date.today() - datetime.date(2025, 1, 1)).days


class Soak:
    """The share of one test: seeds, and the time for them."""

    def __init__(self, shares: Shares, seconds: float) -> None:
        self._shares: Final = shares
        self._begin: Final = time.monotonic()
        self.seconds: Final = seconds
        self.seed = shares.only if shares.only is not None else shares.run * SEEDS_OF_A_RUN
        self.cases = 0
        self.lasts = False  # a case takes as long as it is given

    @property
    def left(self) -> float:
        """Seconds that are left of the share, which may be over."""
        return self._begin + self.seconds - time.monotonic()

    def seeds(self) -> Iterator[int]:
        """One seed after the other: at least one, and no more when it would take longer than there is time."""
        began = time.monotonic()
        while True:
            self.cases += 1
            self._shares.note(self.seed)
            yield self.seed
            average = (time.monotonic() - began) / self.cases
            if self._shares.only is not None or self.left < average:
                return
            self.seed += 1

    def rounds(self) -> Iterator[int]:
        """Numbers from 0 on until the share is over, for one long case that follows from `seed`."""
        self.lasts = True
        self._shares.note(self.seed)
        began = time.monotonic()
        number = 0
        while number == 0 or self.left > (time.monotonic() - began) / number:
            self.cases += 1
            yield number
            number += 1

    def whole(self) -> float:
        """Return the seconds for one case, from `seed`, that takes as long as it is given."""
        self.lasts = True
        self.cases = 1
        self._shares.note(self.seed)
        return max(self.left, 1.0)


class Shares:
    """Plug-in of pytest that runs tests in their turn until the time is over."""

    def __init__(self, config: pytest.Config) -> None:
        self.only: Final[int | None] = config.getoption("--soak-seed")
        given = config.getoption("--soak-run")
        self.run: Final[int] = run_of_the_day() if given is None else given
        self._seconds: Final[float | None] = config.getoption("--soak-seconds")
        self._begin: Final = time.monotonic()
        report: Path | None = config.getoption("--soak-report")
        self._report: Final = None if report is None else report.open("a", buffering=1)
        self._now: Final = None if report is None else report.with_suffix(".now").open("w+b", buffering=0)
        self._share = _ALONE_S if self._seconds is None else self._seconds
        self._test = ""
        self._soak: Soak | None = None
        self._outcomes: set[str] = set()

    @property
    def _left(self) -> float:
        assert self._seconds is not None
        return self._begin + self._seconds - time.monotonic()

    def of_test(self) -> Soak:
        """The share of the test that begins."""
        self._soak = Soak(self, self._share)
        return self._soak

    def note(self, seed: int | None) -> None:
        """Say what is being done, for whoever finds that it does not end."""
        if self._now is not None:
            self._now.seek(0)
            self._now.truncate()
            self._now.write(json.dumps({"test": self._test, "seed": seed}).encode())

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Run what there is time for, if this is given some. What waits goes on in the next run."""
        if self._seconds is None or session.config.option.collectonly or session.testsfailed:
            return None
        waiting = turned(session.items, self.run)
        item = self._take(waiting, self._left, anyway=True)
        while item is not None:
            self._share = self._share_of(item, waiting)
            # Whatever has to be torn down depends on which is the next one, so that it is chosen before this one ends.
            following = self._take(waiting, self._left - self._share)
            self._do(item, following)
            if session.shouldfail or session.shouldstop:
                break
            item = self._take(waiting, self._left) if following is None else following
            if item is following and item is not None and self._left < _cost(item) / 2:
                waiting.insert(0, item)
                break
        self._tell(left=[each.nodeid for each in waiting])
        return True

    def _take(self, waiting: list[pytest.Item], left: float, *, anyway: bool = False) -> pytest.Item | None:
        """Take the next one that there is time for, or `anyway` the first one."""
        for number, item in enumerate(waiting):
            if anyway or _cost(item) <= left:
                return waiting.pop(number)
        return None

    def _share_of(self, item: pytest.Item, waiting: list[pytest.Item]) -> float:
        claims = [Claim(each.nodeid, _cost(each), float(_is_endless(each))) for each in (item, *waiting)]
        return divide(claims, self._left).get(item.nodeid, _cost(item))

    def _do(self, item: pytest.Item, following: pytest.Item | None) -> None:
        self._test, self._soak = item.nodeid, None
        self._outcomes.clear()
        self.note(None)
        began = time.monotonic()
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        outcome = next((each for each in ("failed", "skipped") if each in self._outcomes), "passed")
        told = {"test": item.nodeid, "took": time.monotonic() - began, "outcome": outcome}
        self._tell(**{"cases": 1, **told, **self._of_share()})

    def _of_share(self) -> dict[str, Any]:
        soak = self._soak
        if soak is None:
            return {}
        return {"cases": soak.cases, "seed": soak.seed, "share": soak.seconds if soak.lasts else None}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._outcomes.add(report.outcome)

    def _tell(self, **what: Any) -> None:
        if self._report is not None:
            self._report.write(json.dumps(what) + "\n")

    def pytest_unconfigure(self) -> None:
        for file in (self._report, self._now):
            if file is not None:
                file.close()


def _cost(item: pytest.Item) -> float:
    """How many seconds a test takes at least, on two cores that have nothing else to do."""
    marker = item.get_closest_marker("soak")
    return float(marker.args[0]) if marker is not None and marker.args else _USUAL_S


def _is_endless(item: pytest.Item) -> bool:
    return "soak" in getattr(item, "fixturenames", ())


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("soak")
    group.addoption("--soak-seconds", type=float, metavar="N", help="how long the tests may take together")
    group.addoption("--soak-run", type=int, metavar="N", help="which seeds and tests have their turn; else by the day")
    group.addoption("--soak-seed", type=int, metavar="N", help="only the case of this seed")
    group.addoption("--soak-report", type=Path, metavar="FILE", help="where each test is told as a line of JSON")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Shares(config), "soak-shares")
    if config.getoption("--soak-report") is not None:
        # Before it ends what hangs, `tests.soak` asks where that is. This is not captured yet.
        faulthandler.register(signal.SIGUSR1, file=os.fdopen(os.dup(_STDERR), "w"), all_threads=True)


@pytest.fixture
def soak(request: pytest.FixtureRequest) -> Soak:
    """The test's share of the soak."""
    shares = request.config.pluginmanager.get_plugin("soak-shares")
    assert isinstance(shares, Shares)
    return shares.of_test()
