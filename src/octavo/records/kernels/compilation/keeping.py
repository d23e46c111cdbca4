"""Save and load the machine code of kernels in the cache folders.

The name of a file is its key (the kernel and the processor), and a file is first written under another name. So
processes can write at the same time, and no lock is needed. A file begins with the checksum of its content, since a
power cut can leave a file of zeros.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final
from zlib import crc32

from octavo.records.kernels.compilation.cache import folder_to_write_to, folders_to_load_from, warn_once
from octavo.records.kernels.compilation.machine_code import MachineCode, processor

_DIGEST_SIZE: Final = hashlib.sha256().digest_size


def kept(kernel: Callable[..., Any], *, checked: bool) -> MachineCode | None:
    """Return what an earlier process compiled from `kernel`, or None."""
    name = _file_name(kernel)
    for folder in folders_to_load_from(checked=checked):
        content = _read(folder / name)
        if content is not None:
            names, _, object_code = content.partition(b"\n")
            entry, environment, *symbols = json.loads(names)
            return MachineCode(object_code, entry, environment, tuple(symbols))
    return None


def keep(kernel: Callable[..., Any], code: MachineCode, *, checked: bool) -> None:
    """Save a compiled kernel. If that fails, log a warning: the kernel works all the same."""
    folder = folder_to_write_to(checked=checked)
    if folder is None:
        return
    names = json.dumps([code.entry, code.environment, *code.symbols]).encode()
    try:
        _write(folder / _file_name(kernel), names + b"\n" + code.object_code)
    except OSError as error:
        warn_once(f"compiled kernels are not kept in {folder}: {error.strerror}")


@contextmanager
def alone(kernel: Callable[..., Any]) -> Iterator[None]:
    """Wait until no other process is in here with the same kernel."""
    folder = folder_to_write_to()
    if folder is None:
        yield
        return
    descriptor = os.open(folder / ".compiling", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        with suppress(OSError):  # some file systems have no locks; then both compile it
            fcntl.lockf(descriptor, fcntl.LOCK_EX, 1, crc32(_file_name(kernel).encode()))
        yield
    finally:
        os.close(descriptor)


def _file_name(kernel: Callable[..., Any]) -> str:
    key = hashlib.sha256(processor().encode()).hexdigest()[:16]
    return f"{kernel.__module__.rpartition('.')[2]}.{kernel.__qualname__}-{key}.kernel"


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
