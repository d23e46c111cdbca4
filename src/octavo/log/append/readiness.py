"""What a thread that must not pause has to know of appends: `is_quick`, `prepare`, `settle` and `Allowance`.

The first append of a process imports NumPy, and a quarter of a megabyte later kernels are loaded. Until that is done,
and while kernels are being compiled, a thread that must not pause leaves appends to other threads. Later it leaves
those to them whose records turn out to be long: a few kilobytes can be decompressed to hundreds of megabytes. And it
leaves those to them that have to be compressed, which can take a second for a megabyte, and those before which a
segment has to be written to the disk.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import Any, Final

from octavo.errors.root import Signal
from octavo.log.ownership.fork_safe import make_rlock

_QUICKLY_INFLATED: Final = 4 << 20  # bytes of decompressed records that are checked without a noticeable pause
_QUICKLY_INTERPRETED: Final = 32 << 10  # bytes; interpreted kernels take up to 20 ms for so many

_PREPARING: Final = make_rlock()  # two threads that import the same modules may each wait for the other
_is_prepared = False
_is_loaded = False  # nothing is left to be loaded
_is_settled = False


class TakesLong(Signal):
    """The thread has an allowance, and an append takes longer than that. None of its records was appended."""


class MustCompress(TakesLong):
    """The topic wants another codec than the records have."""


class MustWait(TakesLong):
    """Another thread changes the log, or the append waits for the disk, such as one that begins a segment."""


class Unfinished(TakesLong):
    """Records were appended, but a thread that may pause has to `finish` what a coordinator does then."""

    def __init__(self, finish: Callable[[], None]) -> None:
        self.finish: Final = finish


class Unperformed(TakesLong):
    """Something that a coordinator does after an append is not done, or only a part: `effect` is what is left."""

    def __init__(self, effect: Any) -> None:
        self.effect: Final = effect


class Allowance(threading.local):
    """How many bytes of decompressed records the current thread may still check before `TakesLong` is raised."""

    left: int | None = None  # None: as many as there are


ALLOWANCE: Final = Allowance()


def is_quick(size: int) -> bool:
    """Return whether so many bytes can be checked and appended without a pause."""
    global _is_loaded
    if _is_loaded:
        return True
    if not _is_prepared:
        return False
    from octavo.records.kernels import is_loaded, must_load, validate

    _is_loaded = is_loaded(validate.validate)
    return _is_loaded or (size <= _QUICKLY_INTERPRETED and not must_load(_QUICKLY_INTERPRETED))


def quickly_inflated(size: int) -> int:
    """Return to how many bytes an append of so many, which `is_quick`, may be decompressed without a pause."""
    return _QUICKLY_INFLATED if _is_loaded else _QUICKLY_INTERPRETED - size


class _WithoutPause:
    """A context manager by hand, which takes a quarter of the time: each request of a group needs it."""

    def __enter__(self) -> None:
        ALLOWANCE.left = quickly_inflated(0)

    def __exit__(self, *_: object) -> None:
        ALLOWANCE.left = None


_WITHOUT_PAUSE: Final = _WithoutPause()


def without_pause() -> contextlib.AbstractContextManager[None]:
    """Have `TakesLong` raised in the body of a `with` where the current thread would pause."""
    return _WITHOUT_PAUSE


def prepare() -> None:
    """Import what every append needs. Call this in a thread that may pause.

    If the first import of NumPy is interrupted, the process can never import it again. Interrupts come in the main
    thread, so that another one imports it. If another thread is at it already, this waits for that one.
    """
    if not _is_prepared:
        with _PREPARING:
            _prepare()


def _prepare() -> None:
    global _is_prepared
    if not _is_prepared:
        if threading.current_thread() is threading.main_thread():
            importing = threading.Thread(target=_try_to_import, name="octavo-importing")
            with contextlib.suppress(RuntimeError):  # there can be no more threads
                importing.start()
                importing.join()
        _import_all()
        _is_prepared = True


def _try_to_import() -> None:
    with contextlib.suppress(Exception):  # whoever waits for this tries again, and is told why it fails
        _import_all()


def _import_all() -> None:
    import octavo.log.append.validator  # noqa: F401 # it imports all else


def settle() -> None:
    """Give back the memory that only loading needs, as soon as all is loaded. Call this in a thread that may pause."""
    global _is_settled
    if _is_settled:
        return
    from octavo.records.kernels import is_loaded, validate

    if is_loaded(validate.validate):
        from octavo.records.kernels.compilation.compiler_pages import give_back_pages

        _is_settled = True
        give_back_pages()
