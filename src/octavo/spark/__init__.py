"""Kafka's log as a Spark data source: `spark.read.format("octavo")` and `spark.readStream.format("octavo")`.

Spark finds it by itself (`pyspark_octavo`). Importing this before a session is started has Spark's workers run the
Python that this program runs, which has Octavo. It imports PySpark; the rest of Octavo does without.
"""

from __future__ import annotations

import os

from octavo.spark.interpreter import use_this_python
from octavo.spark.source import OctavoSource

__all__ = ["OctavoSource"]

use_this_python(os.environ)
