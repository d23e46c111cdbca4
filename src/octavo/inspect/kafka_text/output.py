"""The two streams that the text is written to."""

from __future__ import annotations

from typing import BinaryIO, Final

_ENOUGH: Final = 1 << 16


class Output:
    """Standard output, buffered, and standard error. Notes whether damage was met."""

    def __init__(self, out: BinaryIO, err: BinaryIO) -> None:
        self._out = out
        self._err = err
        self._buffer = bytearray()
        self.is_damaged = False

    def write(self, text: str) -> None:
        """Write text as it is, like `System.out.print`."""
        self._buffer += _encode(text)
        if len(self._buffer) > _ENOUGH:
            self.flush()

    def line(self, text: str) -> None:
        """Write a line, like `System.out.println`."""
        self.write(text + "\n")

    def write_bytes(self, data: memoryview) -> None:
        """Write text that is encoded already."""
        if len(data) > _ENOUGH:
            self.flush()
            _write_all(self._out, data)
            return
        self._buffer += data
        if len(self._buffer) > _ENOUGH:
            self.flush()

    def error(self, text: str) -> None:
        """Write a line to standard error, after everything that was written before."""
        self.flush()
        self._out.flush()
        _write_all(self._err, memoryview(_encode(text + "\n")))

    def flush(self) -> None:
        """Hand over what is buffered."""
        data, self._buffer = self._buffer, bytearray()
        _write_all(self._out, memoryview(data))


def _encode(text: str) -> bytes:
    """Encode text in UTF-8. Names of files keep their bytes, whatever they are."""
    return text.encode("utf-8", "surrogateescape")


def _write_all(stream: BinaryIO, data: memoryview) -> None:
    """Write all bytes. If a stream is not buffered, one call may write only a part of them."""
    while data:
        data = data[stream.write(data) :]
