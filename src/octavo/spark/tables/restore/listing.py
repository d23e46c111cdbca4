"""Find the files of a table, whoever wrote it: `parquet_files`, `delta_files` and `iceberg_files`.

A row that the table no longer has must not come back. So tables are refused in which rows are deleted by other means
than by removing files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from octavo.errors import BadTable
from octavo.spark.files import FoundPath, Root, children, shown
from octavo.spark.tables.restore.runs import DataFile
from octavo.spark.tables.written import parse_path

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from pyiceberg.table import Table

_TOPIC: Final = "topic="


def parquet_files(paths: Iterable[FoundPath]) -> list[DataFile]:
    """Return the files in folders of Parquet files, or single ones.

    As in Spark, whatever begins with `_` or `.` is no part of the table, and `topic=…` in a path is a column.
    """
    return [
        _data_file(Root(_address(found.root, found.path, path)), path.relative_to(found.path))
        for found in paths
        for path in _walk(found)
    ]


def delta_files(table: DeltaTable, root: Root) -> list[DataFile]:
    """Return the files of a Delta table. Raises `BadTable` if rows are deleted that are still in the files."""
    features = table.protocol().reader_features or ()
    if table.metadata().configuration.get(_MAPPING, "none") != "none":
        raise BadTable(shown(root.address), "its columns have other names in the files (column mapping)")
    if "deletionVectors" in features and any(batch.num_rows for batch in table.deletion_vectors()):
        raise BadTable(shown(root.address), "rows are deleted that are still in its files: REORG it first, with PURGE")
    actions: Any = table.get_add_actions()
    files = []
    for path, partition in zip(
        actions.column("path").to_pylist(), actions.column("partition").to_pylist(), strict=True
    ):
        path = unquote(path)
        place = PurePosixPath(path)
        file = _data_file(Root(path if "://" in path else below(root, place)), place)
        files.append(file if not partition or "topic" not in partition else file._replace(topic=partition["topic"]))
    return files


_MAPPING: Final = "delta.columnMapping.mode"


def iceberg_files(table: Table, root: Root) -> list[DataFile]:
    """Return the files of an Iceberg table. Raises `BadTable` if rows are deleted that are still in the files."""
    files = []
    base = table.location().rstrip("/") + "/"
    for task in table.scan().plan_files():
        path = task.file.file_path
        if task.delete_files:
            raise BadTable(shown(path), "rows are deleted that are still in this file: rewrite the table's files first")
        place = PurePosixPath(path.removeprefix(base))
        file = Root(below(root, place) if path.startswith(base) else path.removeprefix("file://"))
        files.append(_data_file(file, place, has_topics=True))
    return files


def below(root: Root, path: PurePosixPath) -> str:
    """Return the address of a file below a root."""
    return _address(root, root.path(), root.path() / path)


def _data_file(root: Root, path: PurePosixPath | Path, *, has_topics: bool = False) -> DataFile:
    """Return a file. Its path in the table tells the topic, unless the file has a column for that."""
    parts = path.parts
    own = parse_path("/".join(parts[-3:]))
    if own is not None:
        return DataFile(root, own.topic, is_exported=True)
    named = [unquote(part.removeprefix(_TOPIC)) for part in parts[:-1] if part.startswith(_TOPIC)]
    return DataFile(root, named[-1] if named and not has_topics else None)


def _walk(found: FoundPath) -> Iterator[Path]:
    storage = found.root.storage()
    if not storage.is_folder(found.path):
        yield found.path
        return
    waiting = [found.path]
    while waiting:
        folder = waiting.pop()
        for name, is_folder in sorted(children(storage, folder).items()):
            if name.startswith(("_", ".")):
                continue
            if is_folder:
                waiting.append(folder / name)
            else:
                yield folder / name


def _address(root: Root, base: Path, path: Path) -> str:
    """Return the address of a path in the file system of `root`, of which `base` is the path."""
    if root.is_local:
        return str(path)
    address, question, query = root.address.partition("?")
    if path == base:
        return root.address
    return f"{address.rstrip('/')}/{path.relative_to(base)}{question}{query}"
