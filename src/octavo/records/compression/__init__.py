"""Codecs, framed as Kafka frames them and read as leniently, and as strictly, as Kafka's own readers read.

    compress    one buffer, so that Java reads it
    decompress  one buffer, whoever wrote it
    Inflater    many buffers, one after another, into one piece of memory

Bytes are not trusted: nothing that leaves `decompress` for any input is other than an `OctavoError`, and no
more memory than `limit` and one block is taken, whatever the input declares. Which library does the
work, and why, is in `docs/formats/compression.md`. A codec's library is imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import Final, Protocol, cast

from octavo.errors import InvalidInput, Unsupported
from octavo.records.compression.output import Output
from octavo.records.layout import Buffer, Codec

DEFAULT_LIMIT: Final = 256 << 20


class _CodecModule(Protocol):
    """What each module of this package offers."""

    def compress(self, data: Buffer, level: int | None, magic: int) -> bytes: ...

    def decompress(self, data: memoryview, out: Output, magic: int) -> None: ...


_modules: Final[list[_CodecModule | None]] = [None] * len(Codec)
_NONE: Final[int] = Codec.NONE.value
_ZSTD: Final[int] = Codec.ZSTD.value  # an enum's member takes longer to look up than all else that is done here


def compress(codec: int, data: Buffer, *, level: int | None = None, magic: int = 2) -> bytes:
    """`data` as Kafka writes it with `codec` (a `Codec`), at Kafka's default level unless told otherwise.

    Raises `InvalidInput` where there is no such codec or level, or no such codec for messages of `magic`.
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
    """What `data` decompresses to, at most `limit` bytes, read-only. Nothing is copied where `codec` is none.

    `magic` is that of the batch: lz4 in magic 0 carries a wrong checksum, which goes unchecked as in Kafka.
    `position` is only for errors: `Truncated` and `BadCompression` where the stream does not decompress,
    `LimitExceeded` before more than `limit` bytes are taken, `Unsupported` where `magic` has no such codec.
    """
    if codec == _NONE:
        return _bytes_of(data).toreadonly()
    out = Output(limit)
    _decompress(codec, data, out, magic, position)
    return out.view().toreadonly()


class Inflater:
    """Decompresses one buffer after another into one piece of memory, which is used again after `clear`.

    This is the fast way for many batches: their data end up in one place without another copy, and memory
    that was touched before costs no page faults. Not for several threads at once.
    """

    def __init__(self, *, limit: int = DEFAULT_LIMIT) -> None:
        self._out = Output(limit)

    def add(self, codec: int, data: Buffer, magic: int = 2, position: int = 0) -> tuple[int, int]:
        """Appends what `data` decompresses to (a copy where `codec` is none); says where in `buffer` that is.

        The limit counts for each call. Raises as `decompress` does, and then has added nothing.
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
    def buffer(self) -> memoryview:
        """All that was added since `clear`, writable. `add` may move it, `clear` lets it be overwritten."""
        return self._out.view()

    def clear(self) -> None:
        """Forgets what was added and keeps the memory."""
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
    """The module of a codec, whose libraries come with it. None where there is no such codec."""
    if not 0 < codec < len(_modules):
        return None
    module = _modules[codec]
    if module is None:
        module = _modules[codec] = cast(_CodecModule, import_module(f"{__name__}.{Codec(codec).name.lower()}"))
    return module
