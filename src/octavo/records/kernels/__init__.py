"""The kernels: plain functions over flat arrays that do all the work on whole segments.

Each is one Python source. `kernels()` gives them interpreted, on memoryviews, or compiled by Numba, whichever pays:
loading compiled kernels takes about a second, in which interpreted ones get through some megabytes. The environment
variable `OCTAVO_KERNELS` decides instead where it is set to `interpreted`, `compiled`, or `checked` (compiled, with
every access checked: for tests).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import cached_property
from typing import Any, Final

from octavo.errors import InvalidInput

Kernel = Callable[..., Any]

MODES = ("auto", "interpreted", "compiled", "checked")
WORTH_COMPILING = 16 * 2**20  # bytes seen by interpreted kernels, after which compiled ones are loaded


class Kernels:
    """The kernels that `octavo.records.arrow` calls, all interpreted or all compiled."""

    def __init__(self, *, compiled: bool) -> None:
        self.compiled: Final = compiled

    @cached_property
    def scan(self) -> Kernel:
        from octavo.records.kernels import scan

        return self._made(scan.scan)

    @cached_property
    def decode(self) -> Kernel:
        from octavo.records.kernels import decode

        return self._made(decode.decode)

    @cached_property
    def encode(self) -> Kernel:
        from octavo.records.kernels import encode

        return self._made(encode.encode)

    @cached_property
    def verify(self) -> Kernel:
        from octavo.records.kernels import checksum

        return self._made(checksum.verify)

    @cached_property
    def checks_fast(self) -> bool:
        """Whether they compute checksums faster than a library that is called for every batch."""
        if not self.compiled:
            return False
        from octavo.records.kernels.compiled import CHECKS_FAST

        return CHECKS_FAST

    def _made(self, kernel: Kernel) -> Kernel:
        if not self.compiled:
            return _on_views(kernel)
        from octavo.records.kernels.compiled import compile_kernel

        with _lock:
            return compile_kernel(kernel)


_lock = threading.Lock()
_compiled = Kernels(compiled=True)
_interpreted = Kernels(compiled=False)
_seen = 0


def kernels(size: int) -> Kernels:
    """The kernels for work on `size` more bytes."""
    global _seen
    mode = os.environ.get("OCTAVO_KERNELS", "auto")
    if mode not in MODES:
        raise InvalidInput(f"OCTAVO_KERNELS is {mode!r}; it can be {', '.join(MODES)}")
    if mode == "auto":
        with _lock:
            _seen += size
        return _compiled if _seen >= WORTH_COMPILING else _interpreted
    return _interpreted if mode == "interpreted" else _compiled


def _on_views(kernel: Kernel) -> Kernel:
    """`kernel` on memoryviews of the arrays it is given: their items are plain integers, which never overflow."""

    def call(*arguments: Any) -> Any:
        return kernel(*map(_view, arguments))

    return call


def _view(argument: Any) -> Any:
    if isinstance(argument, tuple):
        return type(argument)(*map(_view, argument))
    return memoryview(argument) if hasattr(argument, "__array_interface__") else argument
