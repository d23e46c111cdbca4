"""Leave two pages behind: every byte of a batch, and a report on the data directory."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from octavo.cli.demo.stage import Stage
from octavo.inspect import explain_file
from octavo.inspect.pages.explain_page import explain_page
from octavo.inspect.pages.report_page import report_page
from octavo.inspect.pages.writing import write_page
from octavo.inspect.report.gathering import find_partitions, gather

_OFFSET: Final = 39  # of a transaction in the log of notebooks


def show(stage: Stage, folder: Path, data: Path) -> None:
    """Write the pages into the demo's folder, and say where they are."""
    stage.chapter("See: two pages for a browser")
    (segment,) = (folder / "notebooks-0").glob("*.log")
    batch, report = folder / "batch.html", folder / "report.html"
    write_page(batch, explain_page(explain_file(segment, offset=_OFFSET)))
    summary = gather(data, find_partitions(data), verify=True)
    write_page(report, report_page(summary, f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"))
    stage.say("One file each, which needs no network. Point at bytes or fields, or use the arrow keys.")
    stage.command(str(batch), "every byte of a batch, through its compression")
    stage.command(str(report), f"the data directory: {len(summary.partitions)} partitions, sizes, times, problems")
