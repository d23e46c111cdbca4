"""Show what is in a batch, a segment or any other file of a data directory.

    explain         a map of one batch: every field with its name, bytes and meaning
    explain_file    the same for a batch in a file, and for indexes, snapshots of producers and checkpoints
    Dump            the records of one file as lines of JSON

The package uses `octavo.records`, `octavo.errors` and what `octavo.log` knows of files. Each name is imported when it
is first used, and none of these needs pyarrow or Numba, so that small commands start fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from octavo.on_demand import on_demand

if TYPE_CHECKING:
    from octavo.inspect.bytemap.batches import explain
    from octavo.inspect.bytemap.field import Field
    from octavo.inspect.bytemap.locate import ByteMap, explain_file
    from octavo.inspect.bytemap.meanings import Role
    from octavo.inspect.dump import Dump
    from octavo.inspect.record_lines import Binary

__all__ = ["Binary", "ByteMap", "Dump", "Field", "Role", "explain", "explain_file"]

if not TYPE_CHECKING:  # otherwise type checkers would accept every name as exported
    __getattr__, __dir__ = on_demand(
        globals(),
        {
            "bytemap.batches": ("explain",),
            "bytemap.field": ("Field",),
            "bytemap.locate": ("ByteMap", "explain_file"),
            "bytemap.meanings": ("Role",),
            "dump": ("Dump",),
            "record_lines": ("Binary",),
        },
    )
