"""Find the control records in columns of records, and turn each distinct content into text once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from octavo.errors import FormatError
from octavo.inspect.control import control_text
from octavo.records import Record
from octavo.records.arrow.numbers import from_numpy, to_numpy


class ControlRows(NamedTuple):
    """The control records of a chunk."""

    rows: npt.NDArray[np.intp]
    which: npt.NDArray[np.intp]  # for each of these rows: the index of its text
    texts: list[str]  # each distinct content as JSON; empty for one that cannot be read
    bad: tuple[int, FormatError] | None  # the first row that cannot be read, and the error at the start of its batch


def control_rows(chunk: pa.RecordBatch) -> ControlRows | None:
    """Find the control records of a chunk; None if it has none. Its columns are those that `json_lines` prints."""
    is_control = chunk.column("isControl")
    if not is_control.true_count:
        return None
    rows = np.flatnonzero(to_numpy(is_control))
    taken = from_numpy(rows.astype(np.int64), pa.int64())
    keys, values = (chunk.column(name).take(taken).dictionary_encode() for name in ("key", "value"))
    key_of, value_of = (to_numpy(pc.fill_null(each.indices, -1)).astype(np.int64) for each in (keys, values))
    contents = key_of * (len(values.dictionary) + 1) + value_of
    _, firsts, which = np.unique(contents, return_index=True, return_inverse=True)
    texts = []
    bad: tuple[int, FormatError] | None = None
    for first in firsts.tolist():
        row = int(rows[first])
        key, value, position = (chunk.column(name)[row].as_py() for name in ("key", "value", "position"))
        try:
            texts.append(control_text(Record(key=key, value=value), position))
        except FormatError as error:
            texts.append("")
            bad = (row, error) if bad is None or row < bad[0] else bad
    return ControlRows(rows, which, texts, bad)
