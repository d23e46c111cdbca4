"""Read the application transactions of a Delta table from its log, and whether it was restored after the last one.

`deltalake` tells the version of one application id, and reads the log again for each. An export has an id for every
partition, and has to know which there are. So this reads them all at once, as Delta's protocol says: from the newest
checkpoint, and from the commits after it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, cast

from octavo.errors import BadTable
from octavo.spark.files import RemoteStorage, Root, shown

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

LOG: Final = "_delta_log"
_CHECKPOINT: Final = re.compile(r"([0-9]{20})\.checkpoint(?:\.[0-9]{10}\.([0-9]{10})|\.[0-9a-f-]{36})?\.(parquet|json)")


def read_transactions(root: Root, version: int, prefix: str) -> dict[str, int]:
    """Return the versions of all application ids that begin with `prefix`, as of a version of the table.

    Raises `BadTable` if the log is not complete, or not a log.
    """
    from pyarrow import ArrowInvalid
    from pyarrow.fs import FileSelector

    filesystem, folder = _log_of(root)
    names = {info.base_name for info in filesystem.get_file_info(FileSelector(folder))}
    base, checkpoint = _newest_checkpoint(names, version)
    found: dict[str, int] = {}
    try:
        for name in checkpoint:
            found.update(_in_checkpoint(filesystem, f"{folder}/{name}", prefix))
        for number in range(base + 1, version + 1):
            with filesystem.open_input_stream(f"{folder}/{number:020d}.json") as file:
                found.update(_in_lines(file.read(), prefix))
    except (FileNotFoundError, ArrowInvalid, AttributeError, KeyError, TypeError, ValueError) as error:
        raise BadTable(shown(root.address), f"the log of this Delta table cannot be read: {error}") from None
    return found


def find_restore(root: Root, version: int, app_id: str) -> str | None:
    """Return what the newest RESTORE was told, if there is one after the last commit of an application; else None.

    Commits that were cleaned up meanwhile tell nothing. Raises `BadTable` if a commit cannot be read.
    """
    filesystem, folder = _log_of(root)
    for number in range(version, -1, -1):
        try:
            with filesystem.open_input_stream(f"{folder}/{number:020d}.json") as file:
                data = file.read()
            if any(name == app_id for name, _ in _in_lines(data, app_id)):
                return None
            information = [json.loads(line)["commitInfo"] for line in data.splitlines() if b'"commitInfo"' in line]
            for each in information:
                if each.get("operation") == "RESTORE":
                    given = each.get("operationParameters") or {}
                    return ", ".join(f"{name} {value}" for name, value in given.items() if value is not None)
        except FileNotFoundError:
            return None
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise BadTable(shown(root.address), f"the log of this Delta table cannot be read: {error}") from None
    return None


def _log_of(root: Root) -> tuple[FileSystem, str]:
    """Return the file system and the folder of a table's log."""
    from pyarrow.fs import LocalFileSystem

    filesystem = LocalFileSystem() if root.is_local else cast(RemoteStorage, root.storage()).filesystem
    return filesystem, str(root.path() / LOG)


def _newest_checkpoint(names: set[str], version: int) -> tuple[int, list[str]]:
    """Return the version and the files of the newest complete checkpoint that is not after a version; -1 if none is."""
    checkpoints: dict[int, list[str]] = {}
    for name in names:
        match = _CHECKPOINT.fullmatch(name)
        if match is None or int(match[1]) > version:
            continue
        if match[2] is None:  # a checkpoint in one file, or the main file of one with sidecars, which have only files
            checkpoints[int(match[1])] = [name]
        else:
            checkpoints.setdefault(int(match[1]), []).extend([name] if _is_complete(name, match[2], names) else [])
    newest = max((number for number, files in checkpoints.items() if files), default=-1)
    return newest, checkpoints.get(newest, [])


def _is_complete(name: str, parts: str, names: set[str]) -> bool:
    """Whether all parts of a checkpoint in several files are there."""
    begin = name[: -len(".0000000001.0000000002.parquet")]
    return all(f"{begin}.{part:010d}.{parts}.parquet" in names for part in range(1, int(parts) + 1))


def _in_checkpoint(filesystem: FileSystem, path: str, prefix: str) -> Iterator[tuple[str, int]]:
    from pyarrow.parquet import ParquetFile

    if path.endswith(".json"):
        with filesystem.open_input_stream(path) as file:
            yield from _in_lines(file.read(), prefix)
        return
    with ParquetFile(filesystem.open_input_file(path)) as checkpoint:
        for batch in checkpoint.iter_batches(columns=["txn.appId", "txn.version"]):
            for transaction in batch.column(0).drop_null().to_pylist():
                if transaction["appId"] is not None:
                    yield from _ours(transaction, prefix)


def _in_lines(data: bytes, prefix: str) -> Iterator[tuple[str, int]]:
    for line in data.splitlines():
        if b'"txn"' in line and (transaction := json.loads(line).get("txn")) is not None:
            yield from _ours(transaction, prefix)


def _ours(transaction: Any, prefix: str) -> Iterator[tuple[str, int]]:
    app_id, version = transaction["appId"], transaction["version"]
    if app_id.startswith(prefix):
        yield app_id, int(version)
