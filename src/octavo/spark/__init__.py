"""Kafka's log as a Spark data source: `spark.read.format("octavo")` and `spark.readStream.format("octavo")`.

Spark finds it by itself (`pyspark_octavo`). Importing this imports PySpark; the rest of Octavo does without.
"""

from __future__ import annotations

from octavo.spark.source import OctavoSource

__all__ = ["OctavoSource"]
