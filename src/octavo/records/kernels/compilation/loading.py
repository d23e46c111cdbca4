"""Make kernels callable: interpreted, loaded from the cache, compiled here, or compiled by another process meanwhile.

Only `load_all` waits for another process, and none is needed: if it cannot be started, is killed, or cannot keep what
it compiles, this process compiles the kernel itself. If that fails too, kernels are interpreted, unless OCTAVO_KERNELS
asks for compiled ones.
"""

from __future__ import annotations

import functools
import os
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from octavo.records.kernels.compilation.cache import warn_once

if TYPE_CHECKING:
    from octavo.records.kernels.compilation.elsewhere import Compilation
    from octavo.records.kernels.compilation.machine_code import MachineCode

Kernel = Callable[..., Any]

_PACKAGE: Final = "octavo.records.kernels"

# Kernels that are used together, as module in that package and function. They are compiled together, from both ends.
GROUPS: Final = (
    ("scan.scan", "decode.decode", "checksum.verify", "inflation.inflate.inflate"),
    ("validate.validate", "index.index_batches"),
    ("partition.partition", "encode.encode"),
    ("compaction.filter.filter_batches", "compaction.fill.fill"),
    ("verification.examine.examine", "verification.examine.examine_inflated"),
    ("shredding.json.shred",),
    ("shredding.avro.shred_avro",),
    ("printing.lines.print_lines",),
    ("printing.text.print_records",),
)
_LOOK_AGAIN_S: Final = 0.02  # seconds after which the cache may have a kernel that it did not have

_machine_code: dict[Kernel, Kernel] = {}
_compilations: dict[tuple[str, ...], Compilation] = {}  # those under way
_over: set[tuple[str, ...]] = set()  # groups whose compilation has ended
_looked: dict[Kernel, float] = {}  # when the cache did not have a kernel
_making = threading.RLock()  # only one thread may use Numba at a time; interpreted kernels do not wait


def _start_anew() -> None:
    """Forget in a forked process what only its parent can wait for, and the lock that another thread may have held."""
    global _making
    _making = threading.RLock()
    _compilations.clear()
    _over.clear()
    _looked.clear()


os.register_at_fork(after_in_child=_start_anew)


def as_machine_code(kernel: Kernel) -> Kernel:
    """Return `kernel` as machine code, loaded from the cache or compiled here."""
    made = _machine_code.get(kernel)
    if made is None:
        with _making:
            made = _machine_code.get(kernel)
            if made is None:
                made = _machine_code[kernel] = _loaded(kernel) or _compiled_or_interpreted(kernel)
    return made


def is_loaded(kernel: Kernel) -> bool:
    """Return whether `kernel` is there as machine code. This loads nothing."""
    return kernel in _machine_code


def has_arrived() -> bool:
    """Return whether compiled kernels are there, and no others that this process uses are being compiled."""
    if _machine_code:
        return not _compilations or not _under_way()
    if _compilations:
        return False
    from octavo.records.kernels import scan

    return _look(scan.scan) is not None


def with_swap(kernel: Kernel) -> Kernel:
    """Return `kernel` as machine code, or a function that interprets it until it is compiled."""
    return _machine_code.get(kernel) or _if_ready(kernel) or _until_ready(kernel)


@functools.cache
def _until_ready(kernel: Kernel) -> Kernel:
    def call(*arguments: Any) -> Any:
        return (_machine_code.get(kernel) or _if_ready(kernel) or interpreted(kernel))(*arguments)

    return call


def _if_ready(kernel: Kernel) -> Kernel | None:
    """Return `kernel` if it can be loaded. Otherwise, see to it that it is compiled, and return None."""
    group = _group(kernel)
    if group not in _over and time.monotonic() < _looked.get(kernel, 0.0) + _LOOK_AGAIN_S:
        return None
    if not _making.acquire(blocking=False):
        return None  # another thread is loading or compiling kernels
    try:
        compilation = _compilations.get(group)
        if compilation is not None and compilation.is_over():  # before the cache is looked at
            del _compilations[group]
            _over.add(group)
        made = _look(kernel)
        if made is None and group not in _over and group not in _compilations:
            from octavo.records.kernels.compilation.elsewhere import start

            compilation = start(group)
            if compilation is None:
                _over.add(group)
            else:
                _compilations[group] = compilation
        if made is None and group in _over:
            made = _machine_code[kernel] = _compiled_or_interpreted(kernel)
        return made
    finally:
        _making.release()


def _look(kernel: Kernel) -> Kernel | None:
    """Load `kernel` if the cache has it, unless it did not have it a moment ago."""
    now = time.monotonic()
    if now < _looked.get(kernel, 0.0) + _LOOK_AGAIN_S and _group(kernel) not in _over:
        return None
    with _making:
        made = _machine_code.get(kernel) or _loaded(kernel)
        if made is None:
            _looked[kernel] = time.monotonic()
        else:
            _machine_code[kernel] = made
        return made


def _under_way() -> bool:
    return any(not compilation.is_over() for compilation in list(_compilations.values()))


def load_all() -> None:
    """Load all kernels. Those that are missing are compiled by other processes first, on all cores."""
    from octavo.records.kernels.compilation.elsewhere import start

    compilation = start(tuple(name for group in GROUPS for name in group))
    if compilation is not None:
        compilation.wait()
    for kernel in all_kernels():
        as_machine_code(kernel)


def all_kernels() -> list[Kernel]:
    """Return the functions that `GROUPS` names."""
    return [kernel_named(name) for group in GROUPS for name in group]


def kernel_named(name: str) -> Kernel:
    """Return the function that is called `name` in `GROUPS`."""
    from importlib import import_module

    module, _, function = name.rpartition(".")
    kernel: Kernel = getattr(import_module(f"{_PACKAGE}.{module}"), function)
    return kernel


@functools.cache
def _group(kernel: Kernel) -> tuple[str, ...]:
    name = f"{kernel.__module__}.{kernel.__qualname__}".removeprefix(f"{_PACKAGE}.")
    return next(group for group in GROUPS if name in group)


def _loaded(kernel: Kernel) -> Kernel | None:
    """Load `kernel` from the cache; None if it is not there, or cannot be loaded."""
    try:
        from octavo.records.kernels.compilation.keeping import kept

        checked = _checked()
        code = kept(kernel, checked=checked)
        return None if code is None else _callable(code, kernel, checked)
    except Exception as error:  # whatever it is: it can be compiled again
        warn_once(f"kernels that are in the cache cannot be loaded: {error!r}")
        return None


def _compiled_here(kernel: Kernel) -> Kernel:
    """Compile `kernel` in this process, and keep it for others."""
    from octavo.records.kernels.compilation.compiled import compile_kernel
    from octavo.records.kernels.compilation.keeping import keep

    checked = _checked()
    code = compile_kernel(kernel)
    keep(kernel, code, checked=checked)
    return _callable(code, kernel, checked)


def _compiled_or_interpreted(kernel: Kernel) -> Kernel:
    """Compile `kernel` in this process; if that is impossible, log a warning and interpret it.

    If OCTAVO_KERNELS asks for compiled kernels, the error is raised instead.
    """
    try:
        return _compiled_here(kernel)
    except Exception as error:  # whatever it is: the work can be done without
        if os.environ.get("OCTAVO_KERNELS", "auto") != "auto":
            raise
        warn_once(f"kernels cannot be compiled, so that all work takes a hundred times as long: {error!r}")
        return interpreted(kernel)


def _callable(code: MachineCode, kernel: Kernel, checked: bool) -> Kernel:
    from octavo.records.kernels.compilation.machine_code import load

    function = load(code, kernel)
    return _with_types_checked(function, kernel) if checked else function


def _with_types_checked(function: Kernel, kernel: Kernel) -> Kernel:
    from octavo.records.kernels.compilation.signatures import type_mismatch

    def call(*arguments: Any) -> Any:
        mismatch = type_mismatch(kernel, arguments)
        if mismatch is not None:
            raise TypeError(mismatch)
        return function(*arguments)

    return call


def _checked() -> bool:
    return os.environ.get("OCTAVO_KERNELS") == "checked"


@functools.cache
def interpreted(kernel: Kernel) -> Kernel:
    """Wrap `kernel` to run on memoryviews of its arrays: their items are plain integers, which never overflow."""

    def call(*arguments: Any) -> Any:
        return kernel(*map(_view, arguments))

    return call


def _view(argument: Any) -> Any:
    if isinstance(argument, tuple):
        return type(argument)(*map(_view, argument))
    return memoryview(argument) if hasattr(argument, "__array_interface__") else argument
