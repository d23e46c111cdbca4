"""Compress and decompress with Kafka's codecs and framing, exactly as lenient and as strict as Kafka's own readers.

    compress    compress one buffer, so that Java can read it
    decompress  decompress one buffer from any writer
    Inflater    decompress many buffers, one after another, into one piece of memory

The input is not trusted. For any input, `decompress` raises nothing but an `OctavoError`, and it allocates no more
memory than `limit` and one block, whatever the input declares. `docs/formats/compression.md` says which library does
the work, and why. A codec's library is imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import Final, Protocol, cast

from octavo.errors import InvalidInput, Unsupported
from octavo.records.compression.output import Output
from octavo.records.layout import Buffer, Codec

DEFAULT_LIMIT: Final = 256 << 20


class _CodecModule(Protocol):
    """The functions that each codec module of this package offers."""

    def compress(self, data: Buffer, level: int | None, magic: int) -> bytes: ...

    def decompress(self, data: memoryview, out: Output, magic: int) -> None: ...


_modules: Final[list[_CodecModule | None]] = [None] * len(Codec)
_NONE: Final[int] = Codec.NONE.value
_ZSTD: Final[int] = Codec.ZSTD.value  # looking up an enum member would take longer than everything else done here


def compress(codec: int, data: Buffer, *, level: int | None = None, magic: int = 2) -> bytes:
    """Compress `data` as Kafka does with `codec` (a `Codec`), by default at Kafka's default level.

    Raises `InvalidInput` if there is no such codec or level, or if messages of `magic` cannot have this codec.
    """
    view = _bytes_of(data)
    if codec == _NONE:
        if level is not None:
            raise InvalidInput(f"no compression has no levels, {level} was asked for")
        return bytes(view)
    module = _module(codec)
    if module is None:
        raise InvalidInput(f"there is no codec {codec}")
    return module.compress(view, level, magic)


def decompress(
    codec: int, data: Buffer, *, limit: int = DEFAULT_LIMIT, magic: int = 2, position: int = 0
) -> memoryview:
    """Return the decompressed `data`, at most `limit` bytes, read-only. Nothing is copied if `codec` is none.

    `magic` is the magic of the batch: lz4 in magic 0 has a wrong header checksum, which is not checked, as in Kafka.
    `position` is only for errors. Raises `Truncated` or `BadCompression` if the stream does not decompress,
    `LimitExceeded` before it allocates more than `limit` bytes, and `Unsupported` if `magic` has no such codec.
    """
    if codec == _NONE:
        return _bytes_of(data).toreadonly()
    out = Output(limit)
    _decompress(codec, data, out, magic, position)
    return out.view().toreadonly()


class Inflater:
    """Decompresses buffers, one after another, into one piece of memory, which is reused after `clear`.

    This is the fast way for many batches: their data end up in one place without another copy, and memory that was
    touched before costs no page faults. An inflater must not be used by several threads at once.
    """

    def __init__(self, *, limit: int = DEFAULT_LIMIT) -> None:
        self._out = Output(limit)

    def add(self, codec: int, data: Buffer, magic: int = 2, position: int = 0) -> tuple[int, int]:
        """Append the decompressed `data` (a copy if `codec` is none), and return its range in `buffer`.

        The limit applies to each call. Raises like `decompress`; in that case, nothing is added.
        """
        out = self._out
        start = out.end
        try:
            _decompress(codec, data, out, magic, position)
        except BaseException:
            out.forget(start)
            raise
        return start, out.end

    @property
    def limit(self) -> int:
        """The most bytes of one buffer."""
        return self._out.limit

    @limit.setter
    def limit(self, limit: int) -> None:
        self._out.limit = limit

    @property
    def end(self) -> int:
        """The end of what was added. A kernel that wrote to what `reserve` returned moves it."""
        return self._out.end

    @end.setter
    def end(self, end: int) -> None:
        self._out.end = end

    def reserve(self, size: int) -> memoryview:
        """Return all memory, of which at least `size` bytes after `end` are free."""
        return self._out.reserve(size)

    @property
    def buffer(self) -> memoryview:
        """Everything that was added since `clear`, writable. `add` may move it; after `clear` it may be overwritten."""
        return self._out.view()

    def clear(self, *, most: int | None = None) -> None:
        """Forget what was added, but keep the memory, unless it is more than `most` bytes."""
        if most is not None and self._out.capacity > most:
            self._out = Output(self._out.limit)
        self._out.forget()


def _decompress(codec: int, data: Buffer, out: Output, magic: int, position: int) -> None:
    view = _bytes_of(data)
    out.begin(position)
    if codec == _NONE:
        out.append(view)
        return
    module = _module(codec)
    if module is None:
        raise Unsupported(position, f"there is no codec {codec}")
    if codec == _ZSTD and magic < 2:
        raise Unsupported(position, f"zstd came with magic 2, messages of magic {magic} cannot have it")
    module.decompress(view, out, magic)


def _bytes_of(data: Buffer) -> memoryview:
    return memoryview(data).cast("B")


def _module(codec: int) -> _CodecModule | None:
    """Return the module of a codec, importing its library, or None if there is no such codec."""
    if not 0 < codec < len(_modules):
        return None
    module = _modules[codec]
    if module is None:
        module = _modules[codec] = cast(_CodecModule, import_module(f"{__name__}.{Codec(codec).name.lower()}"))
    return module
