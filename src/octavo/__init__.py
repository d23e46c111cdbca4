"""Octavo: Kafka's log, in Python.

The package itself imports nothing: each layer (`octavo.records`, `octavo.inspect`, `octavo.cli`) is
imported by whoever needs it, so that small programs start fast.
"""

__version__ = "0.1.0"
