"""Kernels: plain functions over flat arrays that do all the work on whole segments.

Each kernel has one Python source. `kernels()` returns kernels that run interpreted, on memoryviews, or compiled by
Numba. Interpreted ones process two to seven megabytes a second. Loading compiled kernels takes less than a tenth of a
second, and compiling them several. So they are loaded when there is a quarter of a megabyte to process, and compiled
when there are two. Other processes compile them; meanwhile, interpreted kernels do the work, and each is replaced as
soon as it is compiled, between two calls. Only a call that is given so much that interpreting would take longer than
compiling waits for that.
The environment variable `OCTAVO_KERNELS` overrides the choice: `interpreted`, `compiled` (which waits for what is not
compiled), or `checked` (compiled, with every array access checked, for tests).
"""

from __future__ import annotations

import os
import threading
from typing import Final

from octavo.errors import InvalidInput
from octavo.records.kernels.compilation.loading import Kernel as Kernel
from octavo.records.kernels.compilation.loading import as_machine_code, has_arrived, interpreted, with_swap
from octavo.records.kernels.compilation.loading import is_loaded as is_loaded

MODES = ("auto", "interpreted", "compiled", "checked")
# Bytes that are processed by interpreted kernels before compiled ones are loaded, or compiled if there are none.
WORTH_LOADING = 256 << 10
WORTH_COMPILING = 2 << 20
WORTH_WAITING = 16 << 20  # bytes for one call that would take longer if interpreted than compiling does


class Kernels:
    """The set of all kernels, either interpreted or compiled.

    With `swaps`, a kernel that is not compiled yet is interpreted until it is.
    """

    def __init__(self, *, compiled: bool, swaps: bool = False) -> None:
        self.compiled: Final = compiled
        self._swaps: Final = swaps

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
        from octavo.records.kernels.inflation import inflate

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
        from octavo.records.kernels.compaction import fill

        return self._made(fill.fill)

    @property
    def filter_batches(self) -> Kernel:
        from octavo.records.kernels.compaction import filter as filtering

        return self._made(filtering.filter_batches)

    @property
    def examine(self) -> Kernel:
        from octavo.records.kernels.verification import examine

        return self._made(examine.examine)

    @property
    def examine_inflated(self) -> Kernel:
        from octavo.records.kernels.verification import examine

        return self._made(examine.examine_inflated)

    @property
    def shred(self) -> Kernel:
        from octavo.records.kernels.shredding import json

        return self._made(json.shred)

    @property
    def shred_avro(self) -> Kernel:
        from octavo.records.kernels.shredding import avro

        return self._made(avro.shred_avro)

    @property
    def print_lines(self) -> Kernel:
        from octavo.records.kernels.printing import lines

        return self._made(lines.print_lines)

    @property
    def print_records(self) -> Kernel:
        from octavo.records.kernels.printing import text

        return self._made(text.print_records)

    @property
    def checks_fast(self) -> bool:
        """Whether these kernels compute checksums faster than one library call per batch."""
        if not self.compiled:
            return False
        from octavo.records.kernels.compilation.machine_code import checks_fast

        return checks_fast()

    @property
    def is_waiting(self) -> bool:
        """Whether kernels of this set are interpreted only until they are compiled."""
        return self._swaps and not self.compiled and not has_arrived()

    def _made(self, kernel: Kernel) -> Kernel:
        if self._swaps:
            return with_swap(kernel)
        return as_machine_code(kernel) if self.compiled else interpreted(kernel)


_compiled = Kernels(compiled=True)
_interpreted = Kernels(compiled=False)
_arriving = Kernels(compiled=False, swaps=True)
_arrived = Kernels(compiled=True, swaps=True)
_seen = 0
_seeing = threading.Lock()


def _renew_lock() -> None:
    """Replace the lock in a forked process, which has none of the threads that may have held it."""
    global _seeing
    _seeing = threading.Lock()


os.register_at_fork(after_in_child=_renew_lock)


def must_load(size: int) -> bool:
    """Return whether `kernels(size)` would load compiled kernels first, if they are not loaded."""
    mode = os.environ.get("OCTAVO_KERNELS", "auto")
    return _seen + size >= WORTH_LOADING if mode == "auto" else mode != "interpreted"


def kernels(size: int, *, at_once: bool = False) -> Kernels:
    """Return the kernels with which to process `size` more bytes: compiled ones once that pays off.

    `at_once` says that all of them go into one call.
    """
    global _seen
    mode = os.environ.get("OCTAVO_KERNELS", "auto")
    if mode not in MODES:
        raise InvalidInput(f"OCTAVO_KERNELS is {mode!r}; it can be {', '.join(MODES)}")
    if mode != "auto":
        return _interpreted if mode == "interpreted" else _compiled
    with _seeing:
        _seen += size
    if _seen < WORTH_LOADING:
        return _interpreted
    if has_arrived():
        return _arrived
    if at_once and size >= WORTH_WAITING:
        return _compiled
    return _arriving if _seen >= WORTH_COMPILING else _interpreted
