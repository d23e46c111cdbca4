"""Errors of tables that logs are exported to."""

from __future__ import annotations

from os import PathLike, fspath

from octavo.errors.root import OctavoError


class TableError(OctavoError):
    """The table at `path` cannot do what the caller asked for."""

    def __init__(self, path: str | PathLike[str], problem: str) -> None:
        super().__init__(fspath(path), problem)
        self.path = fspath(path)
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.path}: {self.problem}" if self.path else self.problem


class BadTable(TableError):
    """The table at `path` is not in a state that an export leaves behind."""


class ExportConflict(TableError):
    """Nothing was added, because the table or the log at `path` has changed meanwhile. A later attempt may succeed.

    Another export has changed the table, or a topic was deleted and created again while it was exported.
    """
