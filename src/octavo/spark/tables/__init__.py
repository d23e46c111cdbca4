"""Logs become tables, and tables become logs again. Both are functions that take a SparkSession.

export_logs     add what is new in logs to a table of Parquet files, a Delta table or an Iceberg table, each record once
import_table    make logs of a table again, with the offsets that its rows have
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from octavo.on_demand import on_demand

if TYPE_CHECKING:
    from octavo.spark.tables.export import ExportSummary, export_logs
    from octavo.spark.tables.importing import ImportSummary, import_table

__all__ = ["export_logs", "ExportSummary", "import_table", "ImportSummary"]

__getattr__, __dir__ = on_demand(
    globals(),
    {
        "export": ("ExportSummary", "export_logs"),
        "importing": ("ImportSummary", "import_table"),
    },
)
