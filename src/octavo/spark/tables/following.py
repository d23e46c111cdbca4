"""Export logs as they grow: `follow`."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Final

from octavo.errors import ExportConflict
from octavo.spark.tables.export import Exporter, ExportSummary
from octavo.spark.tables.merging import FEW, merge_files

_log = logging.getLogger("octavo.spark")

MERGE_AFTER: Final = 2 * FEW  # number of new files after which it is looked for some to merge


def follow(
    exporter: Exporter,
    summary: ExportSummary,
    *,
    stop: threading.Event,
    interval_s: float = 10.0,
    on_round: Callable[[ExportSummary], None] | None = None,
) -> None:
    """Export what is new again and again, until `stop` is set, and merge small files. A round is always finished.

    exporter: has the table open
    interval_s: how long to wait from the end of one export to the begin of the next
    on_round: called after each export

    If another export changes the table meanwhile, that is no error: the next export goes on from there.
    """
    began = time.monotonic()
    before = summary.file_count
    while True:
        try:
            exporter.run(summary, must_be_there=summary.rounds == 0, stop=stop)
            if summary.file_count - before >= MERGE_AFTER and not stop.is_set():
                before = summary.file_count
                merged = merge_files(exporter.target, exporter.runner, few=FEW, compression=exporter.compression)
                summary.merged += merged.removed
        except ExportConflict as error:
            _log.warning("%s. The next attempt follows", error)
        summary.seconds = time.monotonic() - began
        if on_round is not None:
            on_round(summary)
        if stop.wait(interval_s):
            return
