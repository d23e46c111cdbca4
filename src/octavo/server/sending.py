"""Send a part of a file through a socket: `send_file`. The kernel does it where its `sendfile` has Linux's form.

Elsewhere the bytes are read and written. macOS has a `sendfile` too, of another form and with other errors; what is
used instead is the same everywhere, and so is tested on Linux.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable
from typing import Final

_STEP: Final = 256 << 10  # bytes that are read at a time

MORE_FOLLOWS: Final[int] = getattr(socket, "MSG_MORE", 0)  # for `send`: a hint, which only Linux knows


def copy_to_socket(to: int, source: int, position: int, size: int, /) -> int:
    """Send so many bytes of a file, or as many as a socket takes. Returns their number; 0 at the end of the file.

    Raises `BlockingIOError` if the socket takes nothing, and `ConnectionError` if nobody is there any more.
    """
    sent = 0
    while sent < size:
        data = os.pread(source, min(size - sent, _STEP), position + sent)
        if not data:
            break
        try:
            written = os.write(to, data)
        except BlockingIOError:
            if not sent:
                raise
            break
        sent += written
        if written < len(data):
            break
    return sent


send_file: Callable[[int, int, int, int], int] = copy_to_socket
if sys.platform == "linux" and hasattr(os, "sendfile"):
    send_file = os.sendfile
