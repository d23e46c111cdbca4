"""Octavo: Kafka's log, in Python.

The package itself imports next to nothing. Programs import only the packages that they need (`octavo.records`,
`octavo.log`, `octavo.spark`, `octavo.inspect`), so that small programs start fast. `octavo.serve` and
`octavo.serve_async` start a broker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from octavo.on_demand import on_demand

if TYPE_CHECKING:
    from octavo.server.serving import serve
    from octavo.server.serving_async import serve_async

__all__ = ["serve", "serve_async"]
__version__ = "0.1.0"
__getattr__, __dir__ = on_demand(globals(), {"server.serving": ("serve",), "server.serving_async": ("serve_async",)})
