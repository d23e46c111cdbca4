"""Report results: as a table for people, as JSON for programs."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from benchmarks.measure import Result

_PACKAGES: Final = (
    "octavo",
    "numpy",
    "pyarrow",
    "numba",
    "aiokafka",
    "confluent-kafka",
    "kafka-python",
    "cramjam",
    "lz4",
    "zstandard",
    "isal",
)
_SCALES: Final = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
_PLAIN_UNITS: Final = ("MiB", "s", "ms", "us", "modules")  # printed without k or M


def as_json(
    name: str, results: Sequence[Result], *, repeat: int, quick: bool, details: dict[str, Any]
) -> dict[str, Any]:
    """Return the results of one run for JSON, with the machine, the versions and the options."""
    return {
        "benchmark": name,
        "ok": all(result.ok is not False for result in results),
        "results": [result.as_json() for result in results],
        "repeat": repeat,
        "quick": quick,
        "machine": machine(),
        "versions": versions(),
        **({"details": details} if details else {}),
    }


def print_table(name: str, results: Sequence[Result]) -> None:
    """Print the results with their targets."""
    table = Table(title=f"{name}: {machine()}")
    table.add_column("what")
    for heading in ("octavo", "other", "ratio", "target"):
        table.add_column(heading, justify="right")
    table.add_column("")
    for result in results:
        table.add_row(
            result.name,
            _amount(result.ours, result.unit),
            _amount(result.peer, result.unit),
            f"{result.ratio:.2f}",
            "" if result.target is None else f"{result.target:g}",
            {None: "", True: "[green]reached[/]", False: "[red]missed[/]"}[result.ok],
        )
    Console(width=None if os.environ.get("COLUMNS") else 120).print(table)


def _amount(number: float, unit: str) -> str:
    if unit not in _PLAIN_UNITS:
        for scale, letter in _SCALES:
            if number >= scale:
                return f"{number / scale:.3g} {letter} {unit}"
    return f"{number:.3g} {unit}"


def machine() -> str:
    """Describe processor, cores and Python version, but nothing that identifies the machine's owner."""
    model = platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = [line for line in cpuinfo.read_text().splitlines() if line.startswith("model name")]
        model = lines[0].partition(":")[2].strip() if lines else model
    return f"{os.cpu_count()} cores of {model}, Python {platform.python_version()}"


def versions() -> dict[str, str]:
    """Return the versions of all packages that are measured or used."""
    found = {}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
