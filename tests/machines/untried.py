"""The last line of a test run: how many tests were not tried, and why.

Tests that need a program which is not there are skipped with the reason (`tests.kafka.releases.do_without`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest


def pytest_unconfigure(config: pytest.Config) -> None:
    """Write the line, after everything else that pytest writes."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and (skipped := reporter.stats.get("skipped")):
        reporter.write_line(untried(_reason(report) for report in skipped))


def untried(reasons: Iterable[str]) -> str:
    """The line for tests that were skipped for these reasons."""
    counted = Counter(reasons).most_common()
    parts = [f"{_tests(count)} ({reason.rstrip('.')})" for reason, count in counted]
    return f"Not tried: {', '.join(parts)}."


def _tests(count: int) -> str:
    return "1 test" if count == 1 else f"{count:,} tests"


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    why = report.longrepr
    text = why[2] if isinstance(why, tuple) else str(why)
    return text.removeprefix("Skipped: ")
