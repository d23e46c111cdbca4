"""Show what is in a batch or a segment file.

    explain    a map of one batch: every field with its name, bytes and meaning
    Dump       the records of one file as lines of JSON

The package uses `octavo.records`, `octavo.errors` and the file names of `octavo.log`. It imports neither pyarrow nor
Numba, so that it starts fast.
"""

from __future__ import annotations

from octavo.inspect.bytemap import explain
from octavo.inspect.dump import Binary, Dump
from octavo.inspect.field import Field

__all__ = ["Binary", "Dump", "Field", "explain"]
