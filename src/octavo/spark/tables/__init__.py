"""Logs become tables: topics are exported to Parquet, Delta or Iceberg, each record once.

written     what a task reports about a file that it has written
progress    how far an export has come, by partition
target      what a table format has to do, so that it can be exported to
delta       Delta tables
iceberg     Iceberg tables
"""

from __future__ import annotations
