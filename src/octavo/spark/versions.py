"""What the Sparks differ in on which Octavo runs, from 4.0 on.

What an older Spark lacks is looked for by name, not by number: a vendor's Spark may have it earlier. Classes that it
does not have are replaced by empty ones, so that the rest of the package imports them from here and is the same for
all. Before one of them would be needed, `check_stream_limits` and `check_stream_writes` refuse it.
"""

from __future__ import annotations

from importlib.util import find_spec
from inspect import signature
from typing import TYPE_CHECKING, Final

import pyspark

from octavo.errors import SparkTooOld

if find_spec("pyspark.sql.datasource") is None:
    raise SparkTooOld('format("octavo")', "4.0", pyspark.__version__)

from pyspark.sql import datasource  # after the check, because this module is what may be missing

_HAS_LIMITS: Final = find_spec("pyspark.sql.streaming.datasource") is not None
_HAS_STREAM_WRITER: Final = hasattr(datasource, "DataSourceStreamArrowWriter")

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

if TYPE_CHECKING or _HAS_LIMITS:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxBytes,
        ReadMaxRows,
        ReadMinRows,
        SupportsTriggerAvailableNow,
    )
else:

    class ReadLimit:
        """Stands for the class of Spark 4.2, as do those below."""

    class ReadAllAvailable(ReadLimit):
        pass

    class ReadMaxBytes(ReadLimit):
        pass

    class ReadMaxRows(ReadLimit):
        pass

    class ReadMinRows(ReadLimit):
        pass

    class SupportsTriggerAvailableNow:
        pass


if TYPE_CHECKING or _HAS_STREAM_WRITER:
    from pyspark.sql.datasource import DataSourceStreamArrowWriter
else:

    class DataSourceStreamArrowWriter(datasource.DataSourceStreamWriter):
        """Stands for the class of Spark 4.1."""


__all__ = [
    "DataSourceStreamArrowWriter",
    "ReadAllAvailable",
    "ReadLimit",
    "ReadMaxBytes",
    "ReadMaxRows",
    "ReadMinRows",
    "SupportsTriggerAvailableNow",
    "arrow_schema",
    "check_stream_limits",
    "check_stream_writes",
]


def arrow_schema(schema: StructType) -> pa.Schema:
    """Return the Arrow schema that Spark expects of batches with this schema."""
    from pyspark.sql.pandas.types import to_arrow_schema

    if "timezone" in signature(to_arrow_schema).parameters:
        return to_arrow_schema(schema, timezone="UTC")
    return to_arrow_schema(schema)  # before 4.2, the time zone is always UTC


def check_stream_limits(options: list[str]) -> None:
    """Check that this Spark limits micro-batches, if `options` of a stream do. Raises `SparkTooOld`.

    A limit could be kept without its help, but with trigger availableNow an older Spark would stop after the first
    micro-batch, and what is left would go unnoticed.
    """
    if options and not _HAS_LIMITS:
        raise SparkTooOld(f"a stream with {' and '.join(options)}", "4.2", pyspark.__version__)


def check_stream_writes() -> None:
    """Check that this Spark gives the rows of a stream as Arrow batches. Raises `SparkTooOld`."""
    if not _HAS_STREAM_WRITER:
        instead = "; until then, write in foreachBatch, with the options txnAppId and txnVersion"
        raise SparkTooOld('writeStream.format("octavo")', "4.1", pyspark.__version__, instead)
