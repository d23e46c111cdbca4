"""The exit codes of the `octavo` command."""

from __future__ import annotations

from typing import Final

FINE: Final = 0
DAMAGE_FOUND: Final = 1
COULD_NOT_RUN: Final = 2
INTERRUPTED: Final = 130  # as in shells: 128 + SIGINT
BROKEN_PIPE: Final = 141  # 128 + SIGPIPE
