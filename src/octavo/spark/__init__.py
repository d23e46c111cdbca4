"""Kafka's log as a Spark data source: `spark.read.format("octavo")` and `spark.readStream.format("octavo")`.

Spark finds the source by itself (see `pyspark_octavo`). If this module is imported before a Spark session is started,
Spark's workers run the same Python as this program, so they find Octavo. This package needs PySpark; the rest of
Octavo does not.
"""

from __future__ import annotations

import os

import octavo.spark.versions  # noqa: F401 - comes first, to refuse a Spark without what the others import
from octavo.spark.interpreter import use_this_python
from octavo.spark.source import OctavoSource

__all__ = ["OctavoSource"]

use_this_python(os.environ)
