"""Kernels: plain functions over flat arrays that do all the work on whole segments.

Each kernel has one Python source. `kernels()` returns kernels that run interpreted, on memoryviews, or compiled by
Numba. Loading compiled kernels takes about a second; in that time, interpreted ones process two to seven megabytes. So
compiled kernels are loaded only when there are megabytes to process.
The environment variable `OCTAVO_KERNELS` overrides the choice: `interpreted`, `compiled`, or `checked` (compiled, with
every array access checked, for tests).
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from octavo.errors import InvalidInput

if TYPE_CHECKING:
    from octavo.records.kernels.machine_code import MachineCode

Kernel = Callable[..., Any]

MODES = ("auto", "interpreted", "compiled", "checked")
WORTH_COMPILING = 2 << 20  # bytes processed by interpreted kernels before compiled ones are loaded


class Kernels:
    """The set of all kernels, either interpreted or compiled."""

    def __init__(self, *, compiled: bool) -> None:
        self.compiled: Final = compiled

    @property
    def scan(self) -> Kernel:
        from octavo.records.kernels import scan

        return self._made(scan.scan)

    @property
    def decode(self) -> Kernel:
        from octavo.records.kernels import decode

        return self._made(decode.decode)

    @property
    def inflate(self) -> Kernel:
        from octavo.records.kernels import inflate

        return self._made(inflate.inflate)

    @property
    def encode(self) -> Kernel:
        from octavo.records.kernels import encode

        return self._made(encode.encode)

    @property
    def verify(self) -> Kernel:
        from octavo.records.kernels import checksum

        return self._made(checksum.verify)

    @property
    def validate(self) -> Kernel:
        from octavo.records.kernels import validate

        return self._made(validate.validate)

    @property
    def index_batches(self) -> Kernel:
        from octavo.records.kernels import index

        return self._made(index.index_batches)

    @property
    def partition(self) -> Kernel:
        from octavo.records.kernels import partition

        return self._made(partition.partition)

    @property
    def fill(self) -> Kernel:
        from octavo.records.kernels import compaction_fill

        return self._made(compaction_fill.fill)

    @property
    def filter_batches(self) -> Kernel:
        from octavo.records.kernels import compaction_filter

        return self._made(compaction_filter.filter_batches)

    @property
    def checks_fast(self) -> bool:
        """Whether these kernels compute checksums faster than one library call per batch."""
        if not self.compiled:
            return False
        from octavo.records.kernels.machine_code import checks_fast

        return checks_fast()

    def _made(self, kernel: Kernel) -> Kernel:
        return _as_machine_code(kernel) if self.compiled else _on_views(kernel)


_compiled = Kernels(compiled=True)
_interpreted = Kernels(compiled=False)
_seen = 0
_seeing = threading.Lock()


def kernels(size: int) -> Kernels:
    """Return the kernels with which to process `size` more bytes: compiled ones once that pays off."""
    global _seen
    mode = os.environ.get("OCTAVO_KERNELS", "auto")
    if mode not in MODES:
        raise InvalidInput(f"OCTAVO_KERNELS is {mode!r}; it can be {', '.join(MODES)}")
    if mode == "auto":
        with _seeing:
            _seen += size
        return _compiled if _seen >= WORTH_COMPILING else _interpreted
    return _interpreted if mode == "interpreted" else _compiled


_machine_code: dict[Kernel, Kernel] = {}
_compiling = threading.Lock()  # only one thread may use Numba at a time; interpreted kernels do not wait


def _renew_locks() -> None:
    """Replace the locks in a forked process, which has none of the threads that may have held them."""
    global _seeing, _compiling
    _seeing = threading.Lock()
    _compiling = threading.Lock()


os.register_at_fork(after_in_child=_renew_locks)


def _as_machine_code(kernel: Kernel) -> Kernel:
    """Return `kernel` compiled, or loaded from the cache."""
    made = _machine_code.get(kernel)
    if made is None:
        with _compiling:
            made = _machine_code.get(kernel)
            if made is None:
                made = _machine_code[kernel] = _loaded(kernel) or _compiled_here(kernel)
    return made


def _loaded(kernel: Kernel) -> Kernel | None:
    """Load `kernel` from the cache; None if it is not there."""
    from octavo.records.kernels.keeping import kept

    checked = _checked()
    code = kept(kernel, checked=checked)
    return None if code is None else _callable(code, kernel, checked)


def _compiled_here(kernel: Kernel) -> Kernel:
    """Compile `kernel` in this process, and keep it for others."""
    from octavo.records.kernels.compiled import compile_kernel
    from octavo.records.kernels.keeping import keep

    checked = _checked()
    code = compile_kernel(kernel)
    keep(kernel, code, checked=checked)
    return _callable(code, kernel, checked)


def _callable(code: MachineCode, kernel: Kernel, checked: bool) -> Kernel:
    from octavo.records.kernels.machine_code import load

    function = load(code, kernel)
    return _with_types_checked(function, kernel) if checked else function


def _with_types_checked(function: Kernel, kernel: Kernel) -> Kernel:
    from octavo.records.kernels.compiled import type_mismatch

    def call(*arguments: Any) -> Any:
        mismatch = type_mismatch(kernel, arguments)
        if mismatch is not None:
            raise TypeError(mismatch)
        return function(*arguments)

    return call


def _checked() -> bool:
    return os.environ.get("OCTAVO_KERNELS") == "checked"


@functools.cache
def _on_views(kernel: Kernel) -> Kernel:
    """Wrap `kernel` to run on memoryviews of its arrays: their items are plain integers, which never overflow."""

    def call(*arguments: Any) -> Any:
        return kernel(*map(_view, arguments))

    return call


def _view(argument: Any) -> Any:
    if isinstance(argument, tuple):
        return type(argument)(*map(_view, argument))
    return memoryview(argument) if hasattr(argument, "__array_interface__") else argument
