"""Registers Octavo with Spark, which imports every top-level module named `pyspark_*` and takes its `DefaultSource`."""

from octavo.spark import OctavoSource as DefaultSource

__all__ = ["DefaultSource"]
