"""Maps of bytes: every field of a batch or a file, with its name, bytes, value and meaning.

    explain         one batch of any format, through its compression
    explain_file    the entries of an index, a snapshot of producers or a checkpoint
    Field, Role     what a map consists of
    HexRow          the bytes of a map in rows, cut at the borders of fields

Damage does not end a map: what is wrong stands at the field where it is found.
"""

from __future__ import annotations
