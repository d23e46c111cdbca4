"""The classes of a map of bytes: `Field`, and `Section`, which collects fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from octavo.records.layout import Layout


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field of a batch; or, if `is_group`, a name for the fields that follow at a greater depth.

    Each byte of the batch is in exactly one field that is not a group. The same holds for the decompressed bytes and
    the fields that are `inflated`. A field without bytes reports a problem: something is missing at this position.
    """

    name: str  # the name in the layouts and the docs
    position: int  # position in the buffer; for an inflated field, in the decompressed bytes
    size: int
    value: str  # the meaning of the bytes, for a person to read
    data: memoryview
    depth: int
    is_group: bool = False
    inflated: bool = False
    problem: str | None = None  # the rule that is broken here


class Section:
    """Adds the fields of the bytes in `view` to the list `fields`, one after another."""

    def __init__(self, view: memoryview, fields: list[Field], *, inflated: bool = False) -> None:
        self.view = view
        self.fields = fields
        self.inflated = inflated

    def leaf(self, name: str, start: int, end: int, value: str, depth: int, problem: str | None = None) -> None:
        """Add a field that is not a group. Do nothing if it has neither bytes nor a problem."""
        if end > start or problem:
            self._add(name, start, end, value, depth, problem)

    def group(self, name: str, start: int, end: int, value: str, depth: int, problem: str | None = None) -> None:
        """Add a group: a name for the fields that follow at a greater depth."""
        self._add(name, start, end, value, depth, problem, is_group=True)

    def layout(
        self,
        layout: Layout[Any],
        start: int,
        end: int,
        values: Mapping[str, str],
        depth: int,
        problems: Mapping[str, str | None],
    ) -> int:
        """Add the fields of a structure up to `end`; return the position where they end.

        If the structure is cut off at `end`, the last field has that problem.
        """
        for name, position, size in layout.places():
            at = start + position
            if at + size > end:
                self.leaf(name, at, end, "", depth, f"the bytes end inside {name}")
                return end
            self.leaf(name, at, at + size, values[name], depth, problems.get(name))
        return start + layout.size

    def _add(
        self, name: str, start: int, end: int, value: str, depth: int, problem: str | None, *, is_group: bool = False
    ) -> None:
        self.fields.append(
            Field(
                name=name,
                position=start,
                size=end - start,
                value=value,
                data=self.view[start:end],
                depth=depth,
                is_group=is_group,
                inflated=self.inflated,
                problem=problem,
            )
        )
