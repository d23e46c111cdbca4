"""What the tasks of an export do: read segments, and write data files. Spark gets nothing but what was written."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Final

from octavo.errors import BadDirectory, DataLoss
from octavo.spark.options import Options
from octavo.spark.slices import Task
from octavo.spark.tables.columns import TableColumns, by_day, by_partition
from octavo.spark.tables.data_files import DataFiles
from octavo.spark.tables.place import FilePlace
from octavo.spark.tables.written import WrittenFile

_log = logging.getLogger("octavo.spark")

_ATTEMPTS: Final = 4


@dataclass(frozen=True)
class ExportJob:
    """What all tasks of a round have in common."""

    options: Options
    columns: TableColumns
    place: FilePlace

    def run(self, task: Task) -> list[WrittenFile]:
        """Read the slices of a task, and write their rows to data files.

        Compaction may replace a segment at the very moment when it is read: then the task begins anew.
        """
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                return self._attempt(task)
            except DataLoss:
                raise
            except BadDirectory as error:
                if attempt == _ATTEMPTS:
                    raise
                _log.warning("an attempt to export failed: %s. The next attempt begins", error)
        raise AssertionError  # the last attempt returns or raises

    def _attempt(self, task: Task) -> list[WrittenFile]:
        from octavo.spark.task_reader import TaskReader

        ends = {piece.partition: piece.end_offset for piece in task.slices}
        files = DataFiles(self.place, self.columns.table, ends)
        try:
            for batch in TaskReader(self.options, self.columns.source).read(task):
                for partition, rows in by_partition(self.columns.rows(batch)):
                    for day, rows_of_day in by_day(rows):
                        files.add(partition, day, rows_of_day)
            return files.finish()
        except BaseException:
            files.discard()
            raise
