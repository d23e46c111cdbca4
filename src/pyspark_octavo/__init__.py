"""Where Spark looks: it imports every top-level module named `pyspark_*`, and registers its `DefaultSource`."""

from octavo.spark import OctavoSource as DefaultSource

__all__ = ["DefaultSource"]
