"""A package that adds a format of values to Octavo, installed as pip would install it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

_SOURCE: Final = '''
"""Values as their lengths: a format that needs the name of its column, and does not like exclamation marks."""

import json

import pyarrow as pa

from octavo.values import Decoded, ValueDecoder, ValueFormat


class LengthDecoder(ValueDecoder):
    format = "length"

    def __init__(self, name):
        self.schema = pa.schema([(name, pa.int64())])

    def decode(self, values):
        raw = values.to_pylist()
        loud = [value is not None and b"!" in value for value in raw]
        sizes = [None if value is None or bad else len(value) for value, bad in zip(raw, loud)]
        columns = pa.RecordBatch.from_arrays([pa.array(sizes, pa.int64())], schema=self.schema)
        return Decoded(columns, pa.array(["the value is loud" if bad else None for bad in loud], pa.string()))

    def to_text(self):
        return json.dumps({"format": self.format, "message": self.schema.names[0]})


class LengthFormat(ValueFormat):
    needs = ("message",)

    def decoder(self, *, schema=None, schema_folder=None, message=None):
        return LengthDecoder(message)


FORMAT = LengthFormat()
'''


def install(folder: Path, module: str, *, name: str = "length") -> None:
    """Put the module and its metadata into a folder, which then has to be on `sys.path`."""
    (folder / f"{module}.py").write_text(_SOURCE)
    info = folder / f"{module}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[octavo.values]\n{name} = {module}:FORMAT\n")
