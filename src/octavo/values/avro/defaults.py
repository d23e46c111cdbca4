"""Defaults of fields, as a schema has them in JSON: `value_of_default`."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from octavo.values.avro.schema import AvroType


def value_of_default(default: Any, kind: AvroType) -> Any:
    """Return a default as Arrow takes it for the column of its type.

    Bytes are text in JSON, one character each. A field that a record's default leaves out has its own default. Raises
    errors of Python's if it does not fit.
    """
    match kind.kind:
        case "optional":
            assert kind.items is not None  # it has
            return None if default is None else value_of_default(default, kind.items)
        case "record":
            return {
                field.name: value_of_default(
                    default.get(field.name, field.default) if field.has_default else default[field.name], field.type
                )
                for field in kind.fields
            }
        case "array":
            assert kind.items is not None  # it has
            return [value_of_default(item, kind.items) for item in default]
        case "map":
            assert kind.items is not None  # it has
            return [(key, value_of_default(value, kind.items)) for key, value in default.items()]
        case "bytes" | "fixed":
            return default.encode("latin-1")
        case "bytes decimal" | "fixed decimal":
            unscaled = int.from_bytes(default.encode("latin-1"), "big", signed=True)
            return Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -kind.column.scale))
    return default * kind.factor if isinstance(default, int) and kind.factor > 1 else default
