"""The classes of a map of bytes: `Field`, and `Section`, which collects fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from octavo.inspect.bytemap.meanings import Role, meaning_of
from octavo.records.layout import Layout


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field of a batch or a file; or, if `is_group`, a name for the fields that follow at a greater depth.

    Each byte of the batch is in exactly one field that is not a group. The same holds for the decompressed bytes and
    the fields that are `inflated`. A field without bytes reports a problem: something is missing at this position.
    """

    name: str  # the name in the layouts and the docs
    position: int  # position in the buffer or file; for an inflated field, in the decompressed bytes
    size: int
    value: str  # what the bytes say, for a person to read
    data: memoryview
    depth: int
    role: Role  # what fields of this name are for; decides the colour
    meaning: str  # what fields of this name mean, in one sentence
    is_group: bool = False
    inflated: bool = False
    problem: str | None = None  # the rule that is broken here


class Section:
    """Adds the fields of the bytes in `view` to the list `fields`, one after another.

    inside: the names of the groups that the bytes lie in, from the outermost; the meaning of a field depends on them
    origin: the position in the file at which `view` begins
    """

    def __init__(
        self,
        view: memoryview,
        fields: list[Field],
        *,
        inflated: bool = False,
        inside: tuple[str, ...] = (),
        origin: int = 0,
    ) -> None:
        self.view = view
        self.fields = fields
        self.inflated = inflated
        self._groups = list(inside)
        self._origin = origin

    def leaf(self, name: str, start: int, end: int, value: str, depth: int, problem: str | None = None) -> None:
        """Add a field that is not a group. Do nothing if it has neither bytes nor a problem."""
        if end > start or problem:
            self._add(name, start, end, value, depth, problem)

    def group(self, name: str, start: int, end: int, value: str, depth: int, problem: str | None = None) -> None:
        """Add a group: a name for the fields that follow at a greater depth."""
        self._add(name, start, end, value, depth, problem, is_group=True)
        self._groups[depth:] = [_without_number(name)]

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

    def decompressed(self, data: memoryview) -> Section:
        """Return a section for the decompressed bytes of the group that was added last."""
        return Section(data, self.fields, inflated=True, inside=tuple(self._groups))

    def _add(
        self, name: str, start: int, end: int, value: str, depth: int, problem: str | None, *, is_group: bool = False
    ) -> None:
        inside = self._groups[depth - 1] if 0 < depth <= len(self._groups) else ""
        role, meaning = meaning_of(inside, _without_number(name))
        self.fields.append(
            Field(
                name=name,
                position=self._origin + start,
                size=end - start,
                value=value,
                data=self.view[start:end],
                depth=depth,
                role=Role.GROUP if is_group else Role.UNREAD if role is Role.GROUP else role,
                meaning=meaning,
                is_group=is_group,
                inflated=self.inflated,
                problem=problem,
            )
        )


def _without_number(name: str) -> str:
    """Return the name without the number of a record, header or entry at its end."""
    return name.rstrip("0123456789").rstrip(" ")
