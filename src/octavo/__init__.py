"""Octavo: Kafka's log, in Python.

The package itself imports nothing. Programs import only the packages that they need (`octavo.records`, `octavo.log`,
`octavo.spark`, `octavo.inspect`), so that small programs start fast.
"""

__version__ = "0.1.0"
