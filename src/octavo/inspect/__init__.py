"""Looking at bytes.

    explain    a map of one batch: every field by name, with its bytes and what they say
    Dump       the records of one file as lines of JSON

Imports `octavo.records` and `octavo.errors` only, and neither pyarrow nor Numba: looking at a file starts at once.
"""

from __future__ import annotations

from octavo.inspect.bytemap import explain
from octavo.inspect.dump import Binary, Dump
from octavo.inspect.field import Field

__all__ = ["Binary", "Dump", "Field", "explain"]
