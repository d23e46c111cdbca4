"""Tables of what is committed in the topics of a broker: one of each format, exported once for all tests."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final, NamedTuple

from pyspark.sql import SparkSession

from octavo.spark.tables.export import ExportSummary, export_logs
from tests.spark.broker import Topics

TOPICS: Final = "plain,codecs,transactions,compacted,cut"


class ExportedTable(NamedTuple):
    """A table that tests may read, and export to if nothing is new."""

    folder: Path
    summary: ExportSummary
    progress: list[tuple[int, int]]  # that was told meanwhile
    warnings: list[str]  # of `pyiceberg`, which warns of much


class ExportedTables:
    """The tables, each of which is exported when it is first asked for."""

    def __init__(self, spark: SparkSession, topics: Topics, folder: Path) -> None:
        self._spark: Final = spark
        self._topics: Final = topics
        self._folder: Final = folder
        self._tables: Final[dict[str, ExportedTable]] = {}

    @property
    def source(self) -> dict[str, str]:
        """What is exported."""
        return {"path": str(self._topics.folder), "subscribe": TOPICS}

    def table(self, format_name: str) -> ExportedTable:
        """Return the table of a format. That of Delta has batch information."""
        if format_name not in self._tables:
            self._tables[format_name] = self._export(format_name)
        return self._tables[format_name]

    def _export(self, format_name: str) -> ExportedTable:
        folder = self._folder / format_name
        progress: list[tuple[int, int]] = []
        warnings: list[str] = []
        listener = logging.Handler(logging.WARNING)
        listener.emit = lambda record: warnings.append(record.getMessage())  # type: ignore[method-assign] # it is ours
        logger = logging.getLogger("pyiceberg")
        logger.addHandler(listener)
        try:
            summary = export_logs(
                self._spark,
                self.source,
                str(folder),
                format=format_name,
                batch_info=format_name == "delta",
                on_progress=lambda *each: progress.append(each),
            )
        finally:
            logger.removeHandler(listener)
        return ExportedTable(folder, summary, progress, warnings)
