"""Serve a data directory from a program that uses asyncio: `serve_async`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

from octavo.server.serving import Server, serve


@asynccontextmanager
async def serve_async(
    data: str | os.PathLike[str] | None = None,
    *,
    listen: str | None = None,
    config: Mapping[str, str] | None = None,
    say: Callable[[str], object] | None = None,
) -> AsyncIterator[Server]:
    """Do what `serve` does, for `async with`. The event loop goes on while the broker starts and stops."""
    starting = asyncio.ensure_future(asyncio.to_thread(serve, data, listen=listen, config=config, say=say))
    try:
        server = await asyncio.shield(starting)
    except asyncio.CancelledError:  # the thread goes on, so there will be a server to close
        server = await starting
        await asyncio.to_thread(server.close)
        raise
    try:
        yield server
    finally:
        await asyncio.shield(asyncio.to_thread(server.close))
