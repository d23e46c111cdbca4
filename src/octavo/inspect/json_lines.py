"""Print columns of records as lines of JSON, many records at a time.

The lines are those of `record_lines`. No Python object is made for a record; control records are turned into
text once for each distinct content.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from octavo.inspect.control_rows import control_rows
from octavo.inspect.decoding.record_decoding import RecordDecoding
from octavo.inspect.descriptions import TIMESTAMP_TYPES
from octavo.records.arrow.flat_columns import columns_of
from octavo.records.arrow.numbers import from_numpy, to_numpy
from octavo.records.arrow.schema import FIELDS
from octavo.records.kernels import Kernels
from octavo.records.kernels.printing import lines
from octavo.records.layout import Codec, TimestampType

COLUMNS: Final = tuple(name for name in FIELDS if name != "timestamp")

_ENCODE: Final = json.JSONEncoder(separators=(",", ":")).encode
_ROOM: Final = 1 << 20
_CODECS: Final = [codec.name.lower() for codec in Codec]
_END: Final = b"}\n"


class LinePrinter:
    """Prints chunks of records (`to_arrow` with `COLUMNS`) of one file."""

    def __init__(
        self, topic: str | None, partition: int | None, file: str, form: int, decoding: RecordDecoding | None = None
    ) -> None:
        """`form` is how bytes are printed (`kernels.printing.scalars`)."""
        self._form: Final = form
        self._decoding: Final = decoding
        self._out: npt.NDArray[np.uint8] = np.empty(_ROOM, np.uint8)
        named = _ENCODE({"topic": topic, "partition": partition})[:-1]
        # The order is that of the constants in `lines`.
        self._shared: Final = [
            f'{named},"offset":'.encode(),
            b',"timestamp":',
            b',"value":',
            b',"headers":[',
            b'],"producerId":',
            b',"producerEpoch":',
            b',"sequence":',
            f',"file":{_ENCODE(file)},"position":'.encode(),
        ]
        assert len(self._shared) == lines.SHARED_FRAGMENTS

    def print(self, kernels: Kernels, chunk: pa.RecordBatch) -> Iterator[memoryview]:
        """Yield the lines of a chunk in pieces. Each is valid only until the next is asked for."""
        rows = columns_of(chunk, 0).rows
        numbers, fragments = self._numbers(chunk)
        limits = np.cumsum([0, *map(len, fragments)], dtype=np.int64)
        text = np.frombuffer(b"".join(fragments), np.uint8)
        row = 0
        while row < chunk.num_rows:
            row, size, needed = kernels.print_lines(rows, numbers, limits, text, self._form, row, self._out)
            if size:
                yield self._out.data[:size]
            elif row < chunk.num_rows:
                self._out = np.empty(needed, np.uint8)

    def _numbers(self, chunk: pa.RecordBatch) -> tuple[npt.NDArray[np.int64], list[bytes]]:
        """Return the table of numbers for the kernel, and the fragments that it refers to."""
        fragments = list(self._shared)
        numbers = np.empty((chunk.num_rows, lines.NUMBER_COLUMNS), np.int64)
        for place, name in (
            (lines.PRODUCER_ID, "producerId"),
            (lines.PRODUCER_EPOCH, "producerEpoch"),
            (lines.SEQUENCE, "sequence"),
            (lines.LEADER_EPOCH, "leaderEpoch"),
            (lines.POSITION, "position"),
        ):
            numbers[:, place] = _numpy(chunk, name)
        kinds = _numpy(chunk, "timestampType")
        first = len(fragments) - min(TimestampType)
        fragments += [f',"timestampType":"{TIMESTAMP_TYPES[kind]}","key":'.encode() for kind in sorted(TimestampType)]
        numbers[:, lines.KEY_FRAGMENT] = kinds + first
        self._put_flags(chunk, numbers, fragments)
        numbers[:, lines.LAST_FRAGMENT] = len(fragments)
        fragments.append(_END)
        if self._decoding is not None:
            self._put_decoded(self._decoding, chunk, numbers, fragments)
        controls = control_rows(chunk)
        if controls is not None:
            numbers[controls.rows, lines.LAST_FRAGMENT] = len(fragments) + controls.which
            fragments += [f',"control":{text}'.encode() + _END for text in controls.texts]
        return numbers, fragments

    @staticmethod
    def _put_decoded(
        decoding: RecordDecoding, chunk: pa.RecordBatch, numbers: npt.NDArray[np.int64], fragments: list[bytes]
    ) -> None:
        """Add a fragment for every record that is decoded: all but control records."""
        rows = np.flatnonzero(_numpy(chunk, "isControl") == 0)
        keys, values = (chunk.column(name).take(from_numpy(rows, pa.int64())).to_pylist() for name in ("key", "value"))
        numbers[rows, lines.LAST_FRAGMENT] = np.arange(len(fragments), len(fragments) + len(rows))
        fragments += [record.members.encode() + _END for record in decoding.decode(keys, values)]

    def _put_flags(self, chunk: pa.RecordBatch, numbers: npt.NDArray[np.int64], fragments: list[bytes]) -> None:
        """Add a fragment for every combination of a batch's flags that occurs."""
        codecs = chunk.column("compression").dictionary_encode()
        codec_numbers = np.array([_CODECS.index(name) for name in codecs.dictionary.to_pylist()], np.int64)
        codec = codec_numbers[to_numpy(codecs.indices)]
        magic = _numpy(chunk, "magic").astype(np.int64)
        combined = ((codec * 3 + magic) * 2 + _numpy(chunk, "isControl")) * 2 + _numpy(chunk, "isTransactional")
        fragment_of = np.zeros(len(_CODECS) * 12, np.int64)
        for each in np.flatnonzero(np.bincount(combined)).tolist():
            fragment_of[each] = len(fragments)
            flags = {
                "isTransactional": bool(each & 1),
                "isControl": bool(each >> 1 & 1),
                "magic": each // 4 % 3,
                "compression": _CODECS[each // 12],
            }
            fragments.append(f',{_ENCODE(flags)[1:-1]},"leaderEpoch":'.encode())
        numbers[:, lines.FLAGS_FRAGMENT] = fragment_of[combined]


def _numpy(chunk: pa.RecordBatch, name: str) -> npt.NDArray[Any]:
    return to_numpy(chunk.column(name))
