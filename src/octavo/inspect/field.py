"""What a map of bytes is made of: `Field`, and `Section`, which writes fields down."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from octavo.records.layout import Layout


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field of a batch; or, where `is_group`, a name for those that follow it at a greater depth.

    The fields that are no groups tile their bytes: each byte is in exactly one. `inflated` ones tile what the batch's
    compressed stream decompresses to. One of no bytes is there for its problem only: something is missing here.
    """

    name: str  # as the layouts and the docs have it
    position: int  # in the buffer; of an inflated field, in the decompressed bytes
    size: int
    value: str  # what the bytes say, for a person to read
    data: memoryview
    depth: int
    is_group: bool = False
    inflated: bool = False
    problem: str | None = None  # the rule that is broken here


class Section:
    """A stretch of bytes whose fields are written down, one after another, into `fields`."""

    def __init__(self, view: memoryview, fields: list[Field], *, inflated: bool = False) -> None:
        self.view = view
        self.fields = fields
        self.inflated = inflated

    def leaf(self, name: str, start: int, end: int, value: str, depth: int, problem: str | None = None) -> None:
        """Writes down a field; nothing where it has neither bytes nor a problem."""
        if end > start or problem:
            self._add(name, start, end, value, depth, problem)

    def group(self, name: str, start: int, end: int, value: str, depth: int, problem: str | None = None) -> None:
        """Writes down a name for the fields that follow at a greater depth."""
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
        """Writes down the fields of a structure, as far as they lie before `end`; returns where they end."""
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
