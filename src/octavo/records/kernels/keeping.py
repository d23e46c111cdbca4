"""Save and load compiled kernels in the cache folders, through the interface that Numba's dispatchers use.

Numba's own cache names its files after the path of the source, and writes an index that two processes can corrupt if
both write it. Here the name of a file is its key (the kernel, its signature and the processor), and a file is first
written under another name. So processes can write at the same time, and no lock is needed. A file begins with the
checksum of its content, since a power cut can leave a file of zeros.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

from octavo.records.kernels.cache import folder_to_write_to, folders_to_load_from, warn_once

_DIGEST_SIZE: Final = hashlib.sha256().digest_size


class KernelCache:
    """The cache of one kernel.

    Dispatchers use it through its methods, which are those of `numba.core.caching._Cache`.
    """

    def __init__(self, kernel: Callable[..., Any], *, checked: bool) -> None:
        self._kernel = kernel
        self._checked = checked
        self._is_on = True

    @property
    def cache_path(self) -> str | None:
        """The folder that kernels are loaded from; only for Numba's statistics."""
        return next(map(str, folders_to_load_from(checked=self._checked)), None)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the kernel that an earlier process compiled, or None."""
        target_context.refresh()
        name = self._file_name(sig, target_context.codegen())
        for folder in folders_to_load_from(checked=self._checked) if self._is_on else ():
            pickled = _read(folder / name)
            if pickled is not None:
                return CompileResult._rebuild(target_context, *pickle.loads(pickled))
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save a compiled kernel. If that fails, log a warning: the kernel works all the same."""
        assert not data.library.has_dynamic_globals, "kernels get all that they use as arguments"
        folder = folder_to_write_to(checked=self._checked) if self._is_on else None
        if folder is None:
            return
        try:
            _write(folder / self._file_name(sig, data.library.codegen), dumps(data._reduce()))
        except OSError as error:
            warn_once(f"compiled kernels are not kept in {folder}: {error.strerror}")

    def enable(self) -> None:
        self._is_on = True

    def disable(self) -> None:
        self._is_on = False

    def flush(self) -> None:
        """Remove nothing: other processes use these files too, and none is ever stale."""

    def _file_name(self, sig: Any, codegen: Any) -> str:
        key = hashlib.sha256(repr((codegen.magic_tuple(), str(sig))).encode()).hexdigest()[:16]
        return f"{self._kernel.__module__.rpartition('.')[2]}.{self._kernel.__qualname__}-{key}.nbc"


def _read(path: Path) -> bytes | None:
    """Return the content of `path`; None if there is no such file, or if it is incomplete."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    content = data[_DIGEST_SIZE:]
    return content if hashlib.sha256(content).digest() == data[:_DIGEST_SIZE] else None


def _write(path: Path, content: bytes) -> None:
    """Write a file atomically; everybody can read it, and only its owner can change it."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(hashlib.sha256(content).digest() + content)
            os.fchmod(descriptor, 0o644)
        Path(name).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise
